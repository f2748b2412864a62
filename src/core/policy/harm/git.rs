//! What git runs and writes beyond its own repository.

use super::subcommands::Subcommands;
use super::{Harm, has_short, has_word, is_one_of_long};
use crate::core::policy::shell::Word;

/// Options before the subcommand that change nothing but the output.
const HARMLESS_GLOBALS: &str = "--no-pager -P --version -v --no-optional-locks --literal-pathspecs \
    --no-replace-objects";

/// Options before the subcommand whose value is the word behind them.
const VALUED_GLOBALS: &str = "-C -c --git-dir --work-tree --namespace --config-env --super-prefix --attr-source \
    --shallow-file";

/// Those of them that do what their value says, so that naming the option does not mean every value.
const SETTINGS: &str = "-c --config-env";

/// What people do with git all day. Left out: what runs other programs, changes what git runs later, or writes
/// files that its input names (`config`, `submodule`, `difftool`, `apply`, …), plumbing that nobody types, and
/// every word that may be an alias or a program named `git-…`.
const ORDINARY: Subcommands = Subcommands {
    plain: "status log diff show branch checkout switch restore add commit push pull fetch merge rebase reset stash \
        tag rev-parse rev-list ls-files ls-tree ls-remote cat-file blame annotate describe shortlog grep reflog \
        merge-base name-rev for-each-ref show-ref show-branch symbolic-ref cherry cherry-pick revert clean rm mv \
        count-objects diff-tree diff-index diff-files whatchanged range-diff check-ignore check-attr \
        check-ref-format check-mailmap fsck gc prune repack pack-refs version var format-patch archive stripspace \
        merge-tree patch-id verify-commit verify-tag verify-pack request-pull rerere get-tar-commit-id",
    groups: &[
        ("remote", "show get-url"),
        ("worktree", "list"),
        ("submodule", "status summary"),
        ("bisect", "start good bad new old skip reset log terms"),
        ("notes", "list show add append copy"),
        ("sparse-checkout", "list"),
        ("bundle", "verify list-heads"),
        ("commit-graph", "verify"),
        ("multi-pack-index", "verify"),
    ],
    valued: "",
    flags: "-v --verbose -q --quiet",
    misleading: "",
    managed: "",
};

/// Options that run a program or write a file, or read one from anywhere, whatever the subcommand.
const LONG: &str = "--output --output-directory --upload-pack --receive-pack --exec --open-files-in-pager \
    --ext-diff --textconv --extcmd --tool --config --template --separate-git-dir \
    --edit-todo --strategy --gpg-sign --filters --interactive --local-user --sign --prefix \
    --export-marks --import-marks --export-pack-edges --no-index --contents --unsafe-paths \
    --repo";

/// Letters that do the same in these subcommands alone, and the letters there whose value is the rest of the word.
const SHORT: &[(&str, &str, &str)] = &[
    ("grep", "O", "efABCm"),
    ("archive", "o", ""),
    ("format-patch", "o", "vUOlSGn"),
    ("rebase", "xsiS", "XC"),
    ("commit", "St", "mFCcu"),
    ("tag", "su", "mF"),
    ("bundle", "o", ""),
    ("merge", "sS", "mFX"),
    ("pull", "sS", "Xjo"),
    ("cherry-pick", "S", "mX"),
    ("revert", "S", "mX"),
    ("fetch-pack", "u", ""),
    ("ls-remote", "u", "o"),
];

pub fn harms(words: &[Word]) -> Vec<Harm> {
    let (at, mut harms) = harms_of_globals(words);
    let Some(subcommand) = words.get(at).map(|word| word.text.as_str()) else {
        return harms;
    };
    let rest = &words[at + 1..];
    if !only_looks(subcommand, rest) {
        harms.extend(ORDINARY.harms_from(words, at));
    }
    let letters = SHORT
        .iter()
        .find(|(name, ..)| *name == subcommand)
        .map_or(("", ""), |(_, letters, valued)| (letters, valued));
    let of_words = words.iter().enumerate().skip(at + 1);
    harms.extend(of_words.filter_map(|(at, word)| of_word(at, subcommand, &word.text, letters)));
    harms.extend(elsewhere(subcommand, rest).map(|(of_rest, word)| {
        let why = format!("`git {subcommand} {word}` sends to a place that is not configured");
        Harm::at(at + 1 + of_rest, why)
    }));
    harms
}

/// The harms before the subcommand, and where that is.
fn harms_of_globals(words: &[Word]) -> (usize, Vec<Harm>) {
    let (mut at, mut harms) = (1, Vec::new());
    while let Some(word) = words.get(at).filter(|word| word.text.starts_with('-')) {
        let option = word.text.as_str();
        if !has_word(HARMLESS_GLOBALS, option) {
            let why = format!("`{option}` before git's subcommand can make it run another program");
            harms.push(Harm::at(at + usize::from(has_word(SETTINGS, option)), why));
        }
        at += 1 + usize::from(has_word(VALUED_GLOBALS, option));
    }
    (at, harms)
}

/// Whether git, with these words, may run the program that a setting names.
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
        // `git config user.name` shows it; a second word would set it.
        Some(name) => !name.starts_with('-') && name.contains('.') && words.next().is_none(),
        None => false,
    }
}

fn of_word(at: usize, subcommand: &str, word: &str, letters: (&str, &str)) -> Option<Harm> {
    if is_one_of_long(word, LONG) || has_short(word, letters.0, letters.1) {
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

/// A repository that is named by its address, not by a name that was configured.
fn elsewhere<'w>(subcommand: &str, rest: &'w [Word]) -> Option<(usize, &'w str)> {
    /// Options whose value is the word behind them.
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
