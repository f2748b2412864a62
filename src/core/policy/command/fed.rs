//! Names of files that one part of a command finds and hands to another: through `xargs`, or by `find -exec`. They are not
//! known, but it is known where they lie and how they end.

use super::Command;
use super::places::Directories;
use crate::core::policy::Decision;
use crate::core::policy::harm;
use crate::core::policy::judge::Case;
use crate::core::policy::paths::{PathPattern, Place};
use crate::core::policy::rule::Meaning;
use crate::core::policy::shell::Word;
use crate::core::policy::tools::Access;

/// Where the names come from.
#[derive(Debug, Clone, Default)]
pub struct Source {
    places: Vec<Place>,
    /// How every name ends; none if that is not known.
    endings: Vec<String>,
    /// Names are told apart by zero bytes, or given to the program one by one.
    exact: bool,
}

/// Programs that pass on some of the lines that they read.
const FILTERS: &str = "grep egrep fgrep sort uniq head tail";

/// Programs that show nothing of what is in a file.
const COUNT: &str =
    "wc ls du stat file md5sum sha1sum sha256sum sha512sum basename dirname realpath";

/// What feeds the command at this place, if it reads names from a part before it in the same pipe.
pub fn source(
    case: &Case<'_>,
    commands: &[Command<'_>],
    at: usize,
    text: &str,
    directories: &Directories,
) -> Option<Source> {
    let is_exact = |word: &Word| word.text == "-0" || word.text == "--null";
    let exact = commands[at].simple.words.iter().skip(1).any(is_exact);
    let mut at = at;
    loop {
        let before = at.checked_sub(1)?;
        is_piped(commands, before, at, text).then_some(())?;
        let words = commands[before].stripped.words;
        let name = words.first()?.text.as_str();
        let is_filter = harm::has_word(FILTERS, name) && reads_its_input(commands, before, text);
        if !is_filter {
            let source = found_by(case, words, directories)?;
            return Some(Source { exact, ..source });
        }
        at = before;
    }
}

fn is_piped(commands: &[Command<'_>], from: usize, to: usize, text: &str) -> bool {
    let end = commands[from].simple.start + commands[from].simple.text.len();
    let between = text.get(end..commands[to].simple.start);
    between.is_some_and(|between| between.trim() == "|")
}

fn reads_its_input(commands: &[Command<'_>], at: usize, text: &str) -> bool {
    at > 0 && is_piped(commands, at - 1, at, text)
}

/// What a command prints that looks for files.
pub fn found_by(case: &Case<'_>, words: &[Word], directories: &Directories) -> Option<Source> {
    let (name, arguments) = words.split_first()?;
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let (places, endings) = match (name.text.as_str(), texts.as_slice()) {
        ("find", _) => found_by_find(&texts)?,
        ("git", ["ls-files", rest @ ..]) => (vec!["."], endings(rest.iter().copied())),
        ("git", ["diff", rest @ ..]) if rest.contains(&"--name-only") => {
            let named = rest.iter().skip_while(|word| **word != "--");
            (vec!["."], endings(named.copied()))
        }
        _ => return None,
    };
    let all = directories.all().iter();
    let places = all.flat_map(|cwd| places.iter().map(|text| case.ground.place(text, cwd)));
    let places: Vec<Place> = places.collect();
    let is_inside = |place: &Place| case.ground.is_inside(place) && place.doubt.is_none();
    places.iter().all(is_inside).then_some(Source {
        places,
        endings,
        exact: true,
    })
}

/// How all of these patterns end; nothing if one of them has no plain end.
fn endings<'w>(patterns: impl Iterator<Item = &'w str>) -> Vec<String> {
    let patterns = patterns.filter(|pattern| !pattern.starts_with('-'));
    let ends: Option<Vec<String>> = patterns.map(ending).collect();
    ends.unwrap_or_default()
}

/// How every name ends that a pattern stands for: at least a dot and a letter, or a whole name.
fn ending(pattern: &str) -> Option<String> {
    let end = pattern.rsplit(['*', '?', ']', '/']).next()?;
    let is_telling = end.len() >= 2 && end.contains('.') && !end.contains(['[', '\\']);
    is_telling.then(|| end.to_owned())
}

fn found_by_find<'w>(texts: &[&'w str]) -> Option<(Vec<&'w str>, Vec<String>)> {
    let is_path = |text: &&&str| !text.starts_with(['-', '(', '!']);
    let mut places: Vec<&str> = texts.iter().take_while(is_path).copied().collect();
    if places.is_empty() {
        places.push(".");
    }
    // Links lead anywhere.
    let follows =
        |text: &&str| matches!(*text, "-L" | "-H" | "-follow" | "-lname" | "-files0-from");
    (!texts.iter().any(follows)).then_some(())?;
    let mut names = Vec::new();
    for (at, _) in texts
        .iter()
        .enumerate()
        .filter(|(_, text)| matches!(**text, "-name" | "-iname"))
    {
        let is_negated = at > 0 && matches!(texts[at - 1], "-not" | "!");
        names.extend(texts.get(at + 1).filter(|_| !is_negated).copied());
    }
    let branches = texts
        .iter()
        .filter(|text| matches!(**text, "-o" | "-or" | ","))
        .count();
    let is_whole = names.len() > branches;
    let ends = if is_whole {
        endings(names.into_iter())
    } else {
        Vec::new()
    };
    Some((places, ends))
}

impl Source {
    /// Whether a program that only reads may be given these names: none of them is one that a rule restricts.
    pub fn is_open(&self, case: &Case<'_>, words: &[Word]) -> bool {
        let restricts = |rule: &crate::core::policy::Rule| match &rule.meaning {
            Meaning::Path(Access::Read, pattern) if rule.decision > Decision::Allow => {
                self.may_name(case, pattern)
            }
            _ => false,
        };
        if case.policy.rules().any(restricts) {
            return false;
        }
        let counts = words
            .first()
            .is_some_and(|name| harm::has_word(COUNT, &name.text))
            || only_lists(words);
        // A name with a space in it is two names to xargs.
        self.exact
            || counts
            || !self
                .places
                .iter()
                .any(|place| case.ground.has_odd_names(place))
    }

    fn may_name(&self, case: &Case<'_>, pattern: &PathPattern) -> bool {
        let below = |place: &Place| {
            place
                .ways()
                .any(|path| pattern.may_match_below(path, &case.ground))
        };
        if !self.places.iter().any(below) {
            return false;
        }
        let is_there = |place: &Place| {
            let mut ways = place.ways();
            ways.any(|path| pattern.begins_above(path, &case.ground))
        };
        if self.places.iter().any(is_there) {
            return true;
        }
        let ends = |name: &str| {
            self.endings
                .iter()
                .any(|ending| name.ends_with(ending.as_str()))
        };
        match (self.endings.is_empty(), pattern.literal_name()) {
            (true, _) => true,
            (false, Some(name)) => ends(name),
            (false, None) => match pattern.ending() {
                Some(end) => self
                    .endings
                    .iter()
                    .any(|own| own.ends_with(end) || end.ends_with(own.as_str())),
                None => pattern.existing(&case.ground).is_none_or(|found| {
                    let is_directory_of_any = pattern.reaches_below();
                    let named = |place: &Place| place.written.to_str().is_none_or(ends);
                    found
                        .iter()
                        .any(|place| is_directory_of_any || named(place))
                }),
            },
        }
    }
}

/// `grep -l` and `-c` name files and count lines.
fn only_lists(words: &[Word]) -> bool {
    let is_grep = words
        .first()
        .is_some_and(|name| harm::has_word("grep egrep fgrep rg", &name.text));
    let lists = |word: &Word| {
        let cluster = word.text.strip_prefix('-').unwrap_or_default();
        !cluster.starts_with('-') && cluster.contains(['l', 'L', 'c', 'q'])
    };
    is_grep && words.iter().skip(1).any(lists)
}
