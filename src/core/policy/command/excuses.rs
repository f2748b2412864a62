//! Harms that the rules and the places excuse: a command may change files in place if Edit rules cover them, work in a directory
//! of the project, and run a reading program on files that `find` finds.

use super::part::Part;
use super::{Command, join, rules_on, texts_of};
use crate::core::policy::Decision;
use crate::core::policy::harm::{self, Harm};
use crate::core::policy::shell::Word;
use crate::core::policy::tools::Access;

/// Programs that may put a foreign directory into the project.
const BRINGS: &str = "tar gtar bsdtar unzip 7z 7za cp mv ln rsync install cpio pax patch";

/// Subcommands of git that may do so.
const GIT_BRINGS: &str = "clone init checkout switch pull merge reset submodule worktree apply am stash rebase cherry-pick";

/// Whether a part of a command may put another repository into the project.
pub fn brings_a_repository(command: &Command<'_>) -> bool {
    let words = command.stripped.words;
    let name = words.first().map_or("", |name| name.text.as_str());
    let git = name == "git"
        && words
            .iter()
            .any(|word| harm::has_word(GIT_BRINGS, &word.text));
    git || harm::has_word(BRINGS, name)
}

impl Part<'_, '_> {
    /// Removes the harms that are excused here.
    pub fn excuse(&self, harms: &mut Vec<Harm>) {
        if harms.is_empty() {
            return;
        }
        harms.retain(|harm| !self.is_excused(harm));
    }

    fn is_excused(&self, harm: &Harm) -> bool {
        let words = self.words();
        let Some((name, option)) = words.first().zip(words.get(harm.at)) else {
            return false;
        };
        let next = words.get(harm.at + 1);
        match (name.text.as_str(), option.text.as_str()) {
            ("make" | "gmake" | "ninja", "-C") => {
                next.is_some_and(|word| self.is_directory_inside(word))
            }
            ("pip" | "pip3", "-e" | "--editable") => {
                next.is_some_and(|word| self.is_own_package(word))
            }
            ("npm", "--prefix") => next.is_some_and(|word| self.is_directory_inside(word)),
            ("git", "-C") if harm.at == 1 => next.is_some_and(|word| {
                self.is_directory_inside(word) && self.is_of_own_repository(word)
            }),
            ("sed" | "gsed", _) => self.edits_in_place(option),
            ("sort", "-o") => next.is_some_and(|word| self.may_edit(word, "")),
            ("find", "-exec") => self.only_reads_what_is_found(harm.at),
            _ => false,
        }
    }

    fn is_directory_inside(&self, word: &Word) -> bool {
        let case = self.case();
        let is_plain = !word.globs && word.doubt.is_none();
        let mut cwds = self.directories().all().iter();
        is_plain
            && cwds.all(|cwd| {
                case.ground
                    .place(&word.text, cwd)
                    .is_within(&case.ground.cwd)
            })
    }

    /// `.`, `./api` or `.[extras]`, in the slot's directory.
    fn is_own_package(&self, word: &Word) -> bool {
        let directory = word
            .text
            .split_once('[')
            .map_or(word.text.as_str(), |(way, _)| way);
        let is_path = directory == "." || directory.starts_with("./");
        let word = Word {
            text: directory.to_owned(),
            ..word.clone()
        };
        is_path && self.is_directory_inside(&word)
    }

    fn is_of_own_repository(&self, word: &Word) -> bool {
        let mut cwds = self.directories().all().iter();
        cwds.all(|cwd| {
            self.case()
                .ground
                .is_of_same_repository(&cwd.join(&word.text))
        })
    }

    /// `sed -i script files`, if Edit rules cover the files. The script is checked elsewhere.
    fn edits_in_place(&self, option: &Word) -> bool {
        let text = option.text.as_str();
        let suffix = match text
            .strip_prefix("-i")
            .or_else(|| text.strip_prefix("--in-place="))
        {
            _ if text == "--in-place" => "",
            Some(suffix) if suffix.is_empty() || suffix.starts_with('.') => suffix,
            _ => return false,
        };
        let is_plain = suffix
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
        let files = harm::sed_files(self.words());
        let all = || {
            files
                .iter()
                .all(|at| self.may_edit(&self.words()[*at], suffix))
        };
        is_plain && !files.is_empty() && !self.more_words_follow() && all()
    }

    /// Whether Edit rules cover a file and its backup copy.
    fn may_edit(&self, word: &Word, suffix: &str) -> bool {
        let case = self.case();
        let covers = |text: &str| {
            let mut cwds = self.directories().all().iter();
            cwds.all(|cwd| case.opened(Access::Write, text, cwd).decision == Decision::Allow)
        };
        if word.doubt.is_some() || word.text.starts_with('-') {
            return false;
        }
        // Any name that the glob may match, and those that it matches now.
        let text = match word.globs {
            true => word.text.replace(['*', '?', '['], "\u{fffd}"),
            false => word.text.clone(),
        };
        let is_glob_plain =
            !word.globs || !word.text.contains(['[', ']', '{']) && !word.text.contains("**");
        let now = self.directories().places_of_text(&word.text, &case.ground);
        let mut now = now.iter().filter_map(|place| place.real.to_str());
        let backup = format!("{text}{suffix}");
        is_glob_plain
            && covers(&text)
            && covers(&backup)
            && (!word.globs || now.all(|path| path.contains('*') || covers(path)))
    }

    /// `find … -exec program {} +`, if a rule allows the program, it only reads, and it gets no name that a rule restricts.
    fn only_reads_what_is_found(&self, at: usize) -> bool {
        let words = self.words();
        let inner = &words[at + 1..];
        let Some(end) = inner
            .iter()
            .position(|word| matches!(word.text.as_str(), ";" | "+"))
        else {
            return false;
        };
        let inner = &inner[..end];
        let is_reader = inner
            .first()
            .is_some_and(|name| harm::only_reads(&name.text) && name.is_plain_name());
        let source = super::fed::found_by(self.case(), &words[..at], self.directories());
        let rules = rules_on(self.case(), &[join(texts_of(inner))]);
        let is_allowed =
            !rules.is_empty() && rules.iter().all(|rule| rule.decision == Decision::Allow);
        is_reader
            && is_allowed
            && harm::harms(inner).is_empty()
            && harm::secrets(inner).is_empty()
            && source.is_some_and(|source| source.is_open(self.case(), inner))
    }
}
