//! Programs that change everything below a directory, as `tables/trees.toml` lists them.

use super::programs::{ByName, by_name};
use super::{base_name, has_short, has_word, is_one_of_long};
use crate::core::policy::shell::Word;
use serde::Deserialize;
use std::sync::LazyLock;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct File {
    changes: Vec<Row>,
    unpacks: Vec<Row>,
    follows: Vec<Row>,
    formats: Vec<Formats>,
    kinds: Vec<TreeKind>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Row {
    names: String,
    short: String,
    long: String,
    words: String,
    looks: String,
    unless: String,
    into: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct TreeKind {
    name: String,
    endings: String,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Formats {
    names: String,
    endings: String,
    writes: String,
    looks: String,
    whole: bool,
}

struct Table {
    changes: ByName<Row>,
    unpacks: ByName<Row>,
    follows: ByName<Row>,
    formats: ByName<Formats>,
    kinds: ByName<TreeKind>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let file = read().unwrap_or_default();
    Table {
        changes: by_name(file.changes, |row| &row.names),
        unpacks: by_name(file.unpacks, |row| &row.names),
        follows: by_name(file.follows, |row| &row.names),
        formats: by_name(file.formats, |row| &row.names),
        kinds: by_name(file.kinds, |row| &row.name),
    }
});

/// A test proves that the file can be parsed.
fn read() -> Result<File, toml::de::Error> {
    toml::from_str(include_str!("../tables/trees.toml"))
}

impl Row {
    /// Whether the arguments have the options that make it do so.
    fn is_active(&self, arguments: &[Word]) -> bool {
        let is_plain = self.short.is_empty() && self.long.is_empty() && self.words.is_empty();
        // The first word of tar may be a cluster without a dash.
        let first = arguments.first().map_or("", |word| word.text.as_str());
        let in_old_style = || {
            let is_tar = has_word(&self.names, "tar") && !first.starts_with('-');
            is_tar && first.contains(|c| self.short.contains(c))
        };
        let is = |word: &Word| {
            has_short(&word.text, &self.short, "")
                || is_one_of_long(&word.text, &self.long)
                || has_word(&self.words, &word.text)
        };
        let only_looks = |word: &Word| has_short(&word.text, &self.looks, "");
        let is_excluded = |word: &Word| has_word(&self.unless, &word.text);
        (is_plain || arguments.iter().any(is) || in_old_style())
            && !arguments
                .iter()
                .any(|word| only_looks(word) || is_excluded(word))
    }

    /// The values of the options in `into`.
    fn directories<'w>(&self, arguments: &'w [Word]) -> Vec<&'w str> {
        let value = |(at, word): (usize, &'w Word)| {
            let text = word.text.as_str();
            let mut options = self.into.split_ascii_whitespace();
            let option = options.find(|option| match option.starts_with("--") {
                true => is_one_of_long(text, option),
                false => text.starts_with(option),
            })?;
            match (text.split_once('='), option.starts_with("--")) {
                (Some((_, value)), true) => Some(value),
                _ if text.len() > option.len() && !option.starts_with("--") => {
                    Some(&text[option.len()..])
                }
                _ => arguments.get(at + 1).map(|word| word.text.as_str()),
            }
        };
        arguments.iter().enumerate().filter_map(value).collect()
    }
}

/// The endings of the files that ripgrep counts to a type.
pub fn endings_of_type(name: &str) -> Option<Vec<String>> {
    let kind = TABLE.kinds.get(name)?;
    let endings = kind.endings.split_ascii_whitespace();
    Some(endings.map(str::to_owned).collect())
}

/// Whether a program, with these arguments, changes everything below its directories.
pub fn changes_below(program: &str, arguments: &[Word]) -> bool {
    let row = TABLE.changes.get(base_name(program));
    row.is_some_and(|row| row.is_active(arguments))
}

/// Where a program puts files whose names come from its input; `None` if it does not do so.
pub fn unpacked_into<'w>(program: &str, arguments: &'w [Word]) -> Option<Vec<&'w str>> {
    let row = TABLE.unpacks.get(base_name(program))?;
    row.is_active(arguments).then_some(())?;
    let mut directories = row.directories(arguments);
    if directories.is_empty() {
        directories.push(".");
    }
    Some(directories)
}

/// Whether a program follows the links below its directories.
pub fn follows_links(program: &str, arguments: &[Word]) -> bool {
    let row = TABLE.follows.get(base_name(program));
    row.is_some_and(|row| row.is_active(arguments))
}

/// A program that rewrites files with certain extensions.
pub struct Formatter {
    endings: &'static str,
    /// It processes the working directory.
    pub takes_all: bool,
}

impl Formatter {
    pub fn changes(&self, name: &str) -> bool {
        let mut endings = self.endings.split_ascii_whitespace();
        self.endings.is_empty() || endings.any(|ending| name.ends_with(ending))
    }
}

/// The formatter, if the program is one and its arguments make it change files.
pub fn formatter(program: &str, arguments: &[Word]) -> Option<Formatter> {
    let row = TABLE.formats.get(base_name(program))?;
    let has = |list: &str| {
        let mut words = arguments.iter().map(|word| word.text.split('=').next());
        words.any(|word| has_word(list, word.unwrap_or_default()))
    };
    ((row.writes.is_empty() || has(&row.writes)) && !has(&row.looks)).then_some(())?;
    let is_operand =
        |word: &Word| !word.text.starts_with('-') && !has_word(&row.writes, &word.text);
    Some(Formatter {
        endings: &row.endings,
        takes_all: row.whole && !arguments.iter().any(is_operand),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Word> {
        let word = |text: &str| Word {
            text: text.to_owned(),
            ..Word::default()
        };
        text.split_whitespace().map(word).collect()
    }

    #[test]
    fn the_file_can_be_read_and_each_program_stands_once_in_a_list() {
        let file = read().expect("a good file");
        let formats = file.formats.iter().map(|row| &row.names);
        let lists: [Vec<&String>; 4] = [
            file.changes.iter().map(|row| &row.names).collect(),
            file.unpacks.iter().map(|row| &row.names).collect(),
            file.follows.iter().map(|row| &row.names).collect(),
            formats.collect(),
        ];
        for list in lists {
            let mut names: Vec<&str> = list.iter().flat_map(|names| names.split(' ')).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all);
            assert!(!names.contains(&""));
        }
    }

    #[test]
    fn where_an_archive_goes_is_told_by_its_options() {
        for (command, into) in [
            ("xf a.tar", Some(vec!["."])),
            ("-xf a.tar -C out", Some(vec!["out"])),
            ("-xf a.tar -Cout", Some(vec!["out"])),
            ("--extract --file=a.tar --directory=out", Some(vec!["out"])),
            ("-tf a.tar", None),
            ("czf a.tgz src", None),
        ] {
            assert_eq!(unpacked_into("tar", &words(command)), into, "{command}");
        }
        assert_eq!(
            unpacked_into("7z", &words("x a.7z -oout")),
            Some(vec!["out"])
        );
    }

    #[test]
    fn a_formatter_that_only_looks_is_none() {
        for (program, arguments, is_one) in [
            ("prettier", "--check .", false),
            ("prettier", "--write .", true),
            ("black", ".", true),
            ("black", "--check .", false),
            ("ruff", "check .", false),
            ("ruff", "check --fix .", true),
            ("cargo", "fmt", true),
            ("cargo", "fmt --check", false),
            ("cargo", "test", false),
        ] {
            let found = formatter(program, &words(arguments));
            assert_eq!(found.is_some(), is_one, "{program} {arguments}");
        }
    }
}
