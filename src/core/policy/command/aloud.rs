//! Whether the gate answers *allow* to Claude Code, which then runs the call without its own checks, or stays silent, so that
//! Claude Code checks the call too, with the same rules.
//!
//! Claude Code knows things about programs that missiond does not, and later versions know more. So the gate answers *allow* only
//! in two cases: each part is proven to only read inside the slot's directory; or Claude Code can't analyse the form of the
//! command, such as a loop, and no part runs a program that Claude Code has its own checks for.

use super::directories::Directories;
use super::{Command, Line, allows_exactly, every_command, neutral, one_spaced, reads};
use crate::core::policy::Decision;
use crate::core::policy::harm::{self, has_word};
use crate::core::policy::judge::Case;
use crate::core::policy::rule::Rule;
use crate::core::policy::shell::{self, Word};
use crate::core::policy::tools::Access;

/// Programs that Claude Code has its own checks for, or may have, in addition to those that are known to read or write files.
const CHECKED: &str = "find fd git sed gsed awk gawk mawk jq yq xargs tee uniq nl xxd split tar zip unzip rmdir dd \
    sh bash zsh env sudo ssh";

/// What is known about a part of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Knowledge {
    /// It only reads inside the slot's directory, or does nothing by itself.
    Proven,
    /// A rule allows it, and Claude Code has no checks of its own for it.
    ByRule,
    /// Claude Code may have a check that missiond does not have.
    Unsure,
}

/// Whether the gate answers *allow* to a command that the rules allow. `shared` tells whether Claude Code has the rules that
/// allow it.
pub fn is_said(case: &Case<'_>, text: &str, shared: bool) -> bool {
    let whole = one_spaced(text);
    // A person has written this exact command, and Claude Code has not read the rule yet.
    if !shared && case.policy.rules().any(|rule| allows_exactly(rule, &whole)) {
        return true;
    }
    let script = shell::read(text);
    let line = Line {
        case,
        text,
        commands: script.commands.iter().map(Command::new).collect(),
        is_proven: script.is_proven,
        exact: None,
        depth: 0,
    };
    let is_unreadable = || !shared || is_unreadable(text);
    match line.least_known() {
        Knowledge::Proven => script.redirects.is_empty() || is_unreadable(),
        Knowledge::ByRule => is_unreadable(),
        Knowledge::Unsure => false,
    }
}

impl Line<'_> {
    fn least_known(&self) -> Knowledge {
        let mut directories = Directories::new(self.case.ask.place().to_owned());
        let mut least = Knowledge::Proven;
        for (at, command) in self.commands.iter().enumerate() {
            least = least.max(knowledge(self.case, command, &directories.surest()));
            directories.follow(&command.simple.words, &self.case.ground);
            if !self.is_followed_by_and(at) {
                directories.lose_current();
            }
        }
        least
    }
}

fn knowledge(case: &Case<'_>, command: &Command<'_>, directories: &Directories) -> Knowledge {
    let words = command.stripped.words;
    let is_odd = |word: &Word| word.doubt.is_some() || word.text.starts_with('~');
    let is_kept = |word: &Word| leads_to_restricted(case, word, directories);
    if words.iter().any(is_odd) || words.iter().skip(1).any(is_kept) {
        return Knowledge::Unsure;
    }
    let only_reads =
        |words: &[Word]| reads::only_reads_globs(case, command.simple, words, directories);
    let is_proven = command.inside.is_empty() && only_reads(words);
    if neutral::is_neutral(words) || is_proven {
        return Knowledge::Proven;
    }
    let is_unsure = |words: &[Word]| words.first().is_none_or(|name| is_checked(&name.text));
    match every_command(&command.stripped, &command.inside).any(is_unsure) {
        true => Knowledge::Unsure,
        false => Knowledge::ByRule,
    }
}

/// Whether a word may name a place that a rule restricts, or a directory around it.
fn leads_to_restricted(case: &Case<'_>, word: &Word, directories: &Directories) -> bool {
    let places = directories.places(word, &case.ground);
    let covers = |rule: &Rule| {
        let mut places = places.iter();
        places.any(|place| rule.covers_tree(Access::Read, place, &case.ground))
    };
    let mut rules = case.policy.rules();
    rules.any(|rule| rule.decision > Decision::Allow && covers(rule))
}

fn is_checked(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    has_word(CHECKED, name) || harm::only_reads(name) || harm::is_writer(name)
}

/// Whether Claude Code can't parse a command of this form, so that it asks whatever the command runs. Quotes do not matter: the
/// form alone never leads to *allow*.
fn is_unreadable(text: &str) -> bool {
    const WORDS: &str = "for while until if then else do break continue set cd";
    let is_assignment = |word: &str| {
        let name = word.split_once('=').map_or("", |(name, _)| name);
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        !name.is_empty() && name.bytes().all(is_of_name)
    };
    let is_telling = |word: &str| has_word(WORDS, word) || is_assignment(word);
    text.contains(['$', '`', '(', '{', '\\'])
        || text.contains("<<")
        || text
            .split(|c: char| c.is_ascii_whitespace() || c == ';')
            .any(is_telling)
}
