//! What programs can do beyond their usual purpose: options that run other programs or write files. A rule with a wildcard does
//! not cover those, so a person is asked, unless the rule itself spells them out.

mod awk;
mod builds;
mod containers;
mod data;
mod git;
mod input;
mod javascript;
mod languages;
mod outputs;
mod programs;
mod scripts;
mod subcommands;
mod table;
mod trees;
mod writes;

use super::quick::{QuickMap, QuickSet};
use super::secrets;
use super::shell::Word;
use std::cmp::Reverse;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::LazyLock;
use table::{Danger, TABLE, code};

/// Something in a command that a wildcard must not match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Harm {
    /// The index of the harmful word. A rule that spells out this word covers the harm.
    pub at: usize,
    pub why: String,
}

/// An index after every word that a rule with a wildcard can spell out.
const WHOLE: usize = usize::MAX - 1;

impl Harm {
    pub fn at(at: usize, why: String) -> Harm {
        Harm { at, why }
    }

    /// The same harm in a command that has `words` more words before it.
    pub fn move_by(&mut self, words: usize) {
        if self.at < WHOLE {
            self.at += words;
        }
    }

    /// Harm that no rule covers.
    pub fn inexcusable(why: String) -> Harm {
        Harm {
            at: usize::MAX,
            why,
        }
    }

    /// Harm that only a rule without a wildcard covers.
    pub fn whole(why: String) -> Harm {
        Harm { at: WHOLE, why }
    }
}

/// The rows from the file.
static FROM_FILE: LazyLock<Vec<table::Row>> = LazyLock::new(data::rows);

/// The rows of the table for each program.
static BY_PROGRAM: LazyLock<QuickMap<&'static str, Vec<&'static Danger>>> = LazyLock::new(|| {
    let mut dangers: QuickMap<_, Vec<_>> = QuickMap::default();
    for row in TABLE.iter().chain(code::TABLE).chain(FROM_FILE.iter()) {
        for program in row.programs.split_ascii_whitespace() {
            dangers.entry(program).or_default().push(&row.danger);
        }
    }
    dangers
});

/// All harms in a command, the program first.
pub fn harms(words: &[Word]) -> Vec<Harm> {
    let Some(name) = words.first() else {
        return Vec::new();
    };
    let program = base_name(&name.text);
    let Some(dangers) = dangers_of(program) else {
        return Vec::new();
    };
    let words = languages::own_words(program, words);
    let mut harms: Vec<Harm> = dangers
        .iter()
        .flat_map(|danger| harms_by(danger, program, words))
        .collect();
    harms.extend(harms_of_globs(program, words));
    // The person sees the first one, and a rule is least likely to spell out the last word.
    harms.sort_by_key(|harm| Reverse(harm.at));
    harms
}

fn base_name(program: &str) -> &str {
    let slash = program.bytes().rposition(|byte| byte == b'/');
    slash.map_or(program, |at| &program[at + 1..])
}

/// The rows for a program, also with a version in its name, such as `python3.12` or `gcc-14`.
fn dangers_of(program: &str) -> Option<&'static Vec<&'static Danger>> {
    let by_family = || {
        let start = unversioned(program);
        let loader = start.starts_with("ld-linux") || start.starts_with("ld-musl");
        let family = start.starts_with("mkfs");
        BY_PROGRAM.get(match (loader, family) {
            (true, _) => "ld.so",
            (_, true) => "mkfs",
            _ => start,
        })
    };
    BY_PROGRAM.get(program).or_else(by_family)
}

fn unversioned(program: &str) -> &str {
    program.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'))
}

/// Whether a program is known; then its arguments are not programs unless a table says so.
pub fn is_known(program: &str) -> bool {
    only_reads(program) || is_writer(program) || dangers_of(base_name(program)).is_some()
}

/// Why a program is harmful whatever its arguments are, so that no rule with a wildcard covers it.
pub fn always(program: &str) -> Option<String> {
    let program = base_name(program);
    let why = |danger: &&Danger| match danger {
        Danger::Always(why) => Some(format!("{program} {why}")),
        _ => None,
    };
    dangers_of(program)?.iter().find_map(why)
}

fn harms_by(danger: &Danger, program: &str, words: &[Word]) -> Vec<Harm> {
    match danger {
        Danger::Always(why) => vec![Harm::whole(format!("{program} {why}"))],
        Danger::Unnamed(why) => vec![Harm::at(0, format!("{program} {why}"))],
        Danger::Judged(judge) => judge(words),
        Danger::Beyond(ordinary) => ordinary.harms(words),
        Danger::Subcommands(list, why) => subcommands::candidates(words)
            .into_iter()
            .filter(|(_, word)| has_word(list, word))
            .map(|(at, word)| Harm::at(at, format!("`{program} {word}` {why}")))
            .collect(),
        Danger::Abbreviated { list, whole, why } => subcommands::candidates(words)
            .into_iter()
            .filter(|(_, word)| subcommands::may_abbreviate(word, list, whole))
            .map(|(at, word)| Harm::at(at, format!("`{program} {word}` {why}")))
            .collect(),
        Danger::Operands { most, valued, why } => harm_of_operands(words, *most, valued)
            .map(|at| Harm::at(at, format!("{program} {why}")))
            .into_iter()
            .collect(),
        Danger::Options { why, .. } | Danger::Text(_, why) => {
            at_words(words, |word| is_harmful(danger, word))
                .map(|(at, word)| Harm::at(at, format!("`{word}` lets {program} {why}")))
                .collect()
        }
        Danger::Words(_, why) | Danger::Starts(_, why) => {
            at_words(words, |word| is_harmful(danger, word))
                .map(|(at, word)| Harm::at(at, format!("`{program} {word}` {why}")))
                .collect()
        }
    }
}

fn is_harmful(danger: &Danger, word: &str) -> bool {
    match danger {
        Danger::Options {
            short,
            long,
            valued,
            ..
        } => has_short(word, short, valued) || is_one_of_long(word, long),
        Danger::Words(wanted, _) => has_word(wanted, word),
        Danger::Starts(wanted, _) => wanted
            .split_ascii_whitespace()
            .any(|start| word.starts_with(start)),
        Danger::Text(wanted, _) => wanted
            .split_ascii_whitespace()
            .any(|text| word.contains(text)),
        _ => false,
    }
}

/// The index of the first operand after the first `most`.
fn harm_of_operands(words: &[Word], most: usize, valued: &str) -> Option<usize> {
    let is_operand = |at: usize, word: &Word| {
        let is_option = word.text.starts_with('-') && word.text != "-";
        !is_option && !has_word(valued, &words[at - 1].text)
    };
    let mut operands = words
        .iter()
        .enumerate()
        .skip(1)
        .filter(|(at, word)| is_operand(*at, word));
    operands.nth(most).map(|(at, _)| at)
}

/// A glob that can begin with a dash may match a file that is named like an option.
fn harms_of_globs(program: &str, words: &[Word]) -> impl Iterator<Item = Harm> {
    let may_become_an_option =
        |word: &Word| word.globs && word.text.starts_with(['*', '?', '[', '-']);
    let globs = words.iter().enumerate().skip(1);
    // No option of chmod runs or writes anything else.
    let globs = globs.filter(move |(_, word)| program != "chmod" && may_become_an_option(word));
    globs.map(move |(at, word)| {
        let glob = &word.text;
        let why = format!("`{glob}` may match a file name that {program} reads as an option");
        Harm::at(at, why)
    })
}

/// The harmful words after the program, with their positions.
fn at_words(
    words: &[Word],
    is_harmful: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (usize, &str)> {
    words
        .iter()
        .enumerate()
        .skip(1)
        .map(|(at, word)| (at, word.text.as_str()))
        .filter(move |(_, word)| is_harmful(word))
}

/// Whether one of the letters `short` is set in a cluster such as `-xvf`. A letter of `valued` takes the rest of the word as its
/// value.
fn has_short(word: &str, short: &str, valued: &str) -> bool {
    let Some(cluster) = word
        .strip_prefix(['-', '+'])
        .filter(|rest| !rest.starts_with('-'))
    else {
        return false;
    };
    let before_value = cluster
        .find(|c| valued.contains(c))
        .map_or(cluster, |at| &cluster[..=at]);
    before_value.contains(|c| short.contains(c))
}

/// Whether this is the name of a long option, or an abbreviation, which most programs accept.
fn is_long(name: &str, option: &str) -> bool {
    match option.as_bytes() {
        [b'-', b'-', ..] => name.len() > 2 && name.starts_with("--") && option.starts_with(name),
        _ => name == option || name.strip_prefix('-') == Some(option),
    }
}

/// Whether a space-separated list has this word.
pub fn has_word(list: &str, word: &str) -> bool {
    let mut words = list.as_bytes().split(u8::is_ascii_whitespace);
    !word.is_empty() && words.any(|known| known == word.as_bytes())
}

/// Whether a word is one of some long options, also with `=value`.
fn is_one_of_long(word: &str, options: &str) -> bool {
    if !word.starts_with('-') {
        return false;
    }
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    let mut options = options.split_ascii_whitespace();
    options.any(|option| is_long(name, option))
}

/// A set of program names.
type Names = LazyLock<QuickSet<&'static str>>;

fn names(list: &'static str) -> QuickSet<&'static str> {
    list.split_ascii_whitespace().collect()
}

/// Programs that only read their arguments and print: they can't change protected files.
static READERS: Names = LazyLock::new(|| {
    names(
        "[ [[ ls stat file du tree grep egrep fgrep zgrep rg diff cmp comm md5sum sha1sum sha256sum \
    sha512sum b2sum cksum realpath readlink basename dirname echo test pwd true false which \
    type jq column fold fmt rev paste join tr expand cd printf seq cat head tail less more nl \
    tac od hexdump strings base64 base32 wc cut sort zcat bat batcat",
    )
});

/// Programs that open their files, and show or copy the content.
static OPENERS: Names = LazyLock::new(|| {
    names(
        "cat head tail less more nl tac od hexdump strings base64 base32 wc cut sort zcat bat \
    batcat diff cmp comm md5sum sha1sum sha256sum sha512sum b2sum cksum xxd rev paste fold fmt \
    expand column join cp",
    )
});

/// The same, but their first argument is a pattern or a script.
static SEARCHERS: Names =
    LazyLock::new(|| names("grep egrep fgrep zgrep rg ag ack sed gsed awk gawk mawk jq"));

pub use containers::{Given, given as given_to_container};
use data::kept;
pub use git::{
    Discard, PathUse, discards as git_discards, runs_setting as git_runs,
    subcommand_of as git_subcommand, uses_of_paths as git_paths,
};
pub use input::runs_its_input;
pub use javascript::run_by_pnpm;
pub use outputs::{ending_of_packer, may_use_temporary, perhaps_written, stays_inside, written};
pub use scripts::sed_files;
pub use trees::{
    Formatter, changes_below, endings_of_type, follows_links, formatter, unpacked_into,
};
pub use writes::{Transfer, is_writer, packs, transfer};

pub fn only_reads(program: &str) -> bool {
    READERS.contains(program)
}

/// Whether a program opens the file in its argument at this position.
pub fn opens(program: &str, arguments: &[Word], at: usize) -> bool {
    if OPENERS.contains(program) {
        return true;
    }
    let is_option = |word: &Word| word.text.starts_with('-') && word.text != "-";
    let first_operand = arguments.iter().position(|word| !is_option(word));
    SEARCHERS.contains(program) && first_operand != Some(at)
}

/// Programs that show names, but not the content of files.
static LISTERS: Names = LazyLock::new(|| {
    names(
        "[ [[ ls stat file du tree find realpath readlink basename dirname echo test pwd which type cd printf \
    true false",
    )
});

/// Whether a program shows names, but not the content of files.
pub fn only_lists(program: &str) -> bool {
    LISTERS.contains(program)
}

/// Words that name a well-known secret: a rule for a program that reads does not cover those.
pub fn secrets(words: &[Word]) -> Vec<Harm> {
    let lists_only = |name: &Word| LISTERS.contains(name.text.as_str());
    if words.first().is_none_or(lists_only) {
        return Vec::new();
    }
    at_words(words, secrets::are_named)
        .map(|(at, word)| Harm::at(at, format!("`{word}` names a file with secrets")))
        .collect()
}

/// Whether a program opens this path and it is a device with other people's data: a terminal gives what somebody types, a disk
/// every file on it.
pub fn is_device(program: &str, path: &Path) -> bool {
    const HARMLESS: &[&str] = &[
        "null", "zero", "full", "random", "urandom", "stdin", "stdout", "stderr", "fd", "shm",
    ];
    if !path.as_os_str().as_encoded_bytes().starts_with(b"/dev") {
        return false;
    }
    let name = path
        .strip_prefix("/dev")
        .ok()
        .and_then(|below| below.iter().next());
    let is_harmless = |name: &OsStr| HARMLESS.iter().any(|known| name == *known);
    !LISTERS.contains(program) && name.is_some_and(|name| !is_harmless(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_in_clusters_and_shortened() {
        assert!(has_short("-no", "o", ""));
        assert!(!has_short("-XPOST", "O", "X"));
        assert!(!has_short("--other", "o", ""));
        assert!(is_one_of_long("--output=x", "--quiet --output"));
        assert!(is_long("--outp", "--output"));
        assert!(!is_long("--output-indicator-new", "--output"));
        assert!(!is_long("--", "--output"));
        assert!(is_long("-exec", "-exec"));
        assert!(is_long("--exec", "-exec"));
        assert!(!is_long("-e", "-exec"));
    }
}
