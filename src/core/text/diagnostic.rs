//! Errors in files that people write: what is wrong, where, and how to correct it.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde_json::{Value, json};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// One error in one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub file: PathBuf,
    /// The whole text of the file, to show the line.
    pub text: Arc<str>,
    /// Byte offsets into `text`; empty at 0 if the error is about the file itself.
    pub span: Range<usize>,
    /// What is wrong, such as "unknown role".
    pub title: String,
    /// The text under the caret: the reason and the correction.
    pub label: String,
    /// Another position in the same file that belongs to the error, with a text.
    pub also: Option<(Range<usize>, String)>,
    /// A next step, if there is one.
    pub help: Option<String>,
}

/// A file that was read, to create problems from.
#[derive(Debug, Clone)]
pub struct Source {
    /// The path as the user wrote it.
    pub file: PathBuf,
    pub text: Arc<str>,
    /// The text that problems show; as long as `text`.
    shown: Arc<str>,
}

impl Source {
    pub fn new(file: impl Into<PathBuf>, text: impl Into<Arc<str>>) -> Source {
        let text = text.into();
        Source {
            file: file.into(),
            shown: text.clone(),
            text,
        }
    }

    /// The same, with the values of these keys shown in no problem: what stands behind `key =`, up to the end of the line.
    pub fn hiding(mut self, keys: &[&str]) -> Source {
        let mut shown = self.text.as_bytes().to_vec();
        for range in values_of(&self.text, keys) {
            shown[range].fill(b'*');
        }
        // Whole characters were replaced by ASCII, so it stays UTF-8.
        self.shown = String::from_utf8(shown).unwrap_or_default().into();
        self
    }

    pub fn problem(
        &self,
        span: Range<usize>,
        title: impl Into<String>,
        label: impl Into<String>,
    ) -> Problem {
        Problem {
            file: self.file.clone(),
            text: self.shown.clone(),
            span,
            title: title.into(),
            label: label.into(),
            also: None,
            help: None,
        }
    }
}

impl Problem {
    /// An error about the file itself, for example that it can't be read.
    pub fn of_file(
        file: impl Into<PathBuf>,
        title: impl Into<String>,
        label: impl Into<String>,
    ) -> Problem {
        Source::new(file, "").problem(0..0, title, label)
    }

    pub fn with_help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    pub fn with_also(mut self, span: Range<usize>, label: impl Into<String>) -> Problem {
        self.also = Some((span, label.into()));
        self
    }

    /// The line (from 1) at which the span begins.
    pub fn line(&self) -> usize {
        line_of(&self.text, self.span.start)
    }

    /// The column (from 1, in characters) at which the span begins.
    pub fn column(&self) -> usize {
        let start = floor(&self.text, self.span.start);
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        self.text[line_start..start].chars().count() + 1
    }

    /// Everything in one line, for lists.
    pub fn in_short(&self) -> String {
        let (file, title, label) = (self.file.display(), &self.title, &self.label);
        match self.text.is_empty() {
            true => format!("{file}: {title}: {label}"),
            false => format!("{file}:{}: {title}: {label}", self.line()),
        }
    }

    /// The same for programs.
    pub fn to_json(&self) -> Value {
        json!({
            "file": self.file,
            "line": self.line(),
            "column": self.column(),
            "text": self.text.lines().nth(self.line() - 1).unwrap_or_default(),
            "error": self.title,
            "detail": self.label,
            "also_line": self.also.as_ref().map(|(span, _)| line_of(&self.text, span.start)),
            "help": self.help,
        })
    }

    fn group(&self) -> Group<'_> {
        let title = Level::ERROR.primary_title(self.title.as_str());
        let file = self.file.display().to_string();
        let group = if self.text.is_empty() {
            title
                .element(Origin::path(file))
                .element(Level::NOTE.message(self.label.as_str()))
        } else {
            title.element(self.snippet(file))
        };
        match &self.help {
            Some(help) => group.element(Level::HELP.message(help.as_str())),
            None => group,
        }
    }

    fn snippet(&self, file: String) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
        let primary = AnnotationKind::Primary
            .span(whole_characters(&self.text, &self.span))
            .label(self.label.as_str());
        let also = self.also.iter().map(|(span, label)| {
            AnnotationKind::Context
                .span(whole_characters(&self.text, span))
                .label(label.as_str())
        });
        Snippet::source(&*self.text)
            .path(file)
            .annotation(primary)
            .annotations(also)
    }
}

/// Wide enough that no label is cut; the lines that people write are short.
const WIDTH: usize = 300;

/// All problems for a person, in the style of a compiler, in the order of their lines.
pub fn render(problems: &[Problem], colour: bool) -> String {
    let renderer = if colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let renderer = renderer.decor_style(DecorStyle::Ascii).term_width(WIDTH);
    let reports = problems
        .iter()
        .map(|problem| renderer.render(&[problem.group()]));
    reports.collect::<Vec<_>>().join("\n\n")
}

/// Where the values of these keys stand, whether the file is TOML or not.
fn values_of<'t>(text: &'t str, keys: &'t [&str]) -> impl Iterator<Item = Range<usize>> + 't {
    let named = |before: &str| {
        let name = before.trim_end().trim_end_matches(['"', '\'']);
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
        let name = name.rsplit(|c| !is_part(c)).next().unwrap_or_default();
        // A key that is misspelled has the value all the same.
        nearest(name, keys.iter().copied()).is_some()
    };
    let mut start = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let begins = start;
        start += line.len();
        let line = line.trim_end();
        let mut signs = line.match_indices('=');
        let (at, _) = signs.find(|(at, _)| named(&line[..*at]))?;
        let value = line[at + 1..].trim_start();
        Some(begins + line.len() - value.len()..begins + line.len())
    })
}

fn line_of(text: &str, offset: usize) -> usize {
    let end = offset.min(text.len());
    text.as_bytes()[..end]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

/// The renderer needs spans inside the text that don't cut a character.
fn whole_characters(text: &str, span: &Range<usize>) -> Range<usize> {
    let start = floor(text, span.start);
    let mut end = span.end.clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

/// The known word that was probably meant, if one is near enough to help.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| {
            let distance = strsim::osa_distance(&lower, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `a`, `b` or `c`.
pub fn one_of<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match words.as_slice() {
        [] => String::new(),
        [only] => only.clone(),
        [init @ .., last] => format!("{} or {last}", init.join(", ")),
    }
}

/// All errors of a configuration, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&render(&self.problems, false))
    }
}

impl std::error::Error for ConfigError {}

impl ConfigError {
    /// In one line, for callers that can request more.
    pub fn in_short(&self) -> String {
        match self.problems.as_slice() {
            [one] => format!("{}: {}", one.file.display(), one.title),
            several if several.iter().all(|one| one.file == several[0].file) => {
                let file = several[0].file.display();
                format!("{} faults in {file}", several.len())
            }
            several => format!("{} faults in the configuration", several.len()),
        }
    }
}

impl From<Vec<Problem>> for ConfigError {
    fn from(problems: Vec<Problem>) -> ConfigError {
        ConfigError {
            problems: tidy(problems),
        }
    }
}

/// slots.toml first and in the order of the file, without duplicates: an error in [defaults] appears with every slot, one in a
/// policy with every slot of the role.
fn tidy(mut problems: Vec<Problem>) -> Vec<Problem> {
    let first = problems.first().map(|problem| problem.file.clone());
    problems.sort_by_key(|problem| {
        let elsewhere = (Some(&problem.file) != first.as_ref()).then(|| problem.file.clone());
        (elsewhere, problem.span.start, problem.span.end)
    });
    let mut once: Vec<Problem> = Vec::new();
    for problem in problems {
        if !once.contains(&problem) {
            once.push(problem);
        }
    }
    once
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Source {
        Source::new(
            "slots.toml",
            "[[slot]]\nname = \"é\"\nrole = \"reveiwer\"\n",
        )
    }

    #[test]
    fn shows_the_line_with_a_caret_under_the_word() {
        let at = source().text.find("\"rev").unwrap();
        let problem = source().problem(at..at + 10, "unknown role", "no policies/reveiwer.toml");
        insta::assert_snapshot!(render(&[problem.with_help("write one")], false), @r#"
        error: unknown role
         --> slots.toml:3:8
          |
        3 | role = "reveiwer"
          |        ^^^^^^^^^^ no policies/reveiwer.toml
          |
          = help: write one
        "#);
    }

    #[test]
    fn a_file_that_is_not_there_has_no_line() {
        let problem = Problem::of_file("gone.toml", "can't be read", "no such file");
        insta::assert_snapshot!(render(&[problem], false), @"
        error: can't be read
        --> gone.toml
         = note: no such file
        ");
    }

    #[test]
    fn json_counts_characters_not_bytes() {
        let at = source().text.rfind('"').unwrap();
        let value = source().problem(at..at + 1, "t", "l").to_json();
        assert_eq!((&value["line"], &value["column"]), (&json!(3), &json!(17)));
        assert_eq!(value["text"], "role = \"reveiwer\"");
    }

    #[test]
    fn a_span_beyond_the_text_or_inside_a_character_is_mended() {
        let cut = source().text.find('é').unwrap() + 1;
        for span in [cut..cut, cut..cut + 1, 9999..99999] {
            let shown = render(&[source().problem(span, "t", "l")], false);
            assert!(shown.contains("slots.toml:"), "{shown}");
        }
    }

    #[test]
    fn suggests_only_what_is_near() {
        let roles = ["reader", "coder", "reviewer"];
        assert_eq!(nearest("reveiwer", roles), Some("reviewer"));
        assert_eq!(nearest("Coder", roles), Some("coder"));
        assert_eq!(nearest("writer-of-docs", roles), None);
    }

    #[test]
    fn lists_words_as_a_sentence_does() {
        assert_eq!(one_of(["a", "b", "c"]), "`a`, `b` or `c`");
        assert_eq!(one_of(["a"]), "`a`");
    }
}
