//! What git runs and writes outside its own repository.

mod discards;
mod table;

use super::{Harm, has_short, has_word, is_one_of_long};
use crate::core::policy::shell::Word;
pub use discards::{Discard, discards};
use table::TABLE;
pub use table::{PathUse, uses_of_paths};

pub fn harms(words: &[Word]) -> Vec<Harm> {
    let (at, mut harms) = harms_of_globals(words);
    let Some(subcommand) = words.get(at).map(|word| word.text.as_str()) else {
        return harms;
    };
    let rest = &words[at + 1..];
    if !only_looks(subcommand, rest) {
        harms.extend(TABLE.ordinary.harms_from(words, at));
    }
    let letters = TABLE.letters(subcommand);
    let of_words = words.iter().enumerate().skip(at + 1);
    harms.extend(of_words.filter_map(|(at, word)| of_word(at, subcommand, &word.text, letters)));
    harms.extend(elsewhere(subcommand, rest).map(|(of_rest, word)| {
        let why = format!("`git {subcommand} {word}` sends to a place that is not configured");
        Harm::at(at + 1 + of_rest, why)
    }));
    harms
}

/// The position of git's subcommand, and the directories that `-C` names before it.
pub fn subcommand_of(words: &[Word]) -> Option<(usize, Vec<&str>)> {
    let name = words.first()?;
    (super::base_name(&name.text) == "git").then_some(())?;
    let (at, _) = harms_of_globals(words);
    let before = words.get(1..at)?.windows(2);
    let directories = before.filter(|pair| pair[0].text == "-C");
    let directories = directories.map(|pair| pair[1].text.as_str());
    words.get(at)?;
    Some((at, directories.collect()))
}

/// The harms before the subcommand, and its position.
fn harms_of_globals(words: &[Word]) -> (usize, Vec<Harm>) {
    let (mut at, mut harms) = (1, Vec::new());
    while let Some(word) = words.get(at).filter(|word| word.text.starts_with('-')) {
        let option = word.text.as_str();
        if !has_word(&TABLE.globals.harmless, option) {
            let why = format!("`{option}` before git's subcommand can make it run another program");
            let is_setting = has_word(&TABLE.globals.settings, option);
            harms.push(Harm::at(at + usize::from(is_setting), why));
        }
        at += 1 + usize::from(has_word(&TABLE.globals.valued, option));
    }
    (at, harms)
}

/// Whether git, with these arguments, may run the program that a setting names.
pub fn runs_setting(words: &[Word], setting: &str) -> bool {
    const AT_EVERY_LOOK: &str = "core.fsmonitor diff.external diff.command diff.textconv filter.clean filter.smudge \
        filter.process gpg.program";
    const OF_NETS: &str = "core.sshcommand core.gitproxy core.askpass credential.helper remote.uploadpack \
        remote.receivepack remote.vcs";
    const NETS: &str = "clone fetch pull push ls-remote remote archive submodule";
    const EDITORS: &str = "core.editor sequence.editor merge.driver interactive.difffilter";
    const EDITING: &str = "commit merge pull rebase revert cherry-pick tag notes stash am add checkout switch restore \
        reset";
    let (at, _) = harms_of_globals(words);
    let subcommand = words.get(at).map_or("", |word| word.text.as_str());
    has_word(AT_EVERY_LOOK, setting)
        || has_word(OF_NETS, setting) && has_word(NETS, subcommand)
        || has_word(EDITORS, setting) && has_word(EDITING, subcommand)
        || setting == "submodule.update" && has_word("submodule pull checkout", subcommand)
}

/// The forms of other subcommands that change nothing.
fn only_looks(subcommand: &str, rest: &[Word]) -> bool {
    let has = |list: &str| rest.iter().any(|word| has_word(list, &word.text));
    match subcommand {
        "config" => only_reads_config(rest),
        "apply" => {
            has("--check --stat --numstat --summary")
                && !rest
                    .iter()
                    .any(|word| is_one_of_long(&word.text, "--apply"))
        }
        _ => false,
    }
}

fn only_reads_config(rest: &[Word]) -> bool {
    const SCOPES: &str =
        "--local --global --system --worktree --show-origin --show-scope --name-only -z --null";
    let mut words = rest
        .iter()
        .map(|word| word.text.as_str())
        .skip_while(|word| has_word(SCOPES, word));
    match words.next() {
        Some("--list" | "-l" | "--get" | "--get-all" | "--get-regexp" | "get" | "list") => {
            words.all(|word| !word.starts_with('-') || has_word(SCOPES, word))
        }
        // `git config user.name` shows the setting; a second argument would set it.
        Some(name) => !name.starts_with('-') && name.contains('.') && words.next().is_none(),
        None => false,
    }
}

fn of_word(at: usize, subcommand: &str, word: &str, letters: (&str, &str)) -> Option<Harm> {
    if is_one_of_long(word, &TABLE.harmful.long) || has_short(word, letters.0, letters.1) {
        return Some(Harm {
            at,
            why: format!("`{word}` lets git {subcommand} run another program or write a file"),
        });
    }
    const OF_NETS: &str =
        "clone fetch pull push ls-remote remote archive submodule fetch-pack send-pack";
    (has_word(OF_NETS, subcommand) && word.contains("::")).then(|| Harm {
        at,
        why: format!("`{word}` may name a transport that runs another program"),
    })
}

/// A repository that is named by its address, not by a configured name.
fn elsewhere<'w>(subcommand: &str, rest: &'w [Word]) -> Option<(usize, &'w str)> {
    /// Options whose value is the next word.
    const VALUED: &str = "-o --push-option --server-option -s -X --strategy-option --depth \
        --deepen --shallow-since --shallow-exclude -j --jobs --negotiation-tip --refmap";
    if !has_word("push pull", subcommand) {
        return None;
    }
    let takes_value = |option: &str| {
        has_word(VALUED, option) || subcommand == "push" && option == "--recurse-submodules"
    };
    let is_value = |at: usize| at > 0 && takes_value(&rest[at - 1].text);
    let operands = rest.iter().map(|word| word.text.as_str()).enumerate();
    let mut operands = operands
        .filter(|(at, word)| !word.starts_with('-') && !is_value(*at))
        .peekable();
    let first = operands.peek().map(|(at, _)| *at);
    operands.find(|(at, word)| {
        let host = word
            .split_once(':')
            .is_some_and(|(host, _)| host.contains('@'));
        let looks_like_a_path =
            || word.starts_with(['.', '~']) || word.contains('/') || word.ends_with(".git");
        word.contains("://") || host || Some(*at) == first && looks_like_a_path()
    })
}
