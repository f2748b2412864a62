//! What git runs and writes beyond its own repository.

use super::{Harm, Names, has_short, has_word, is_one_of_long, names};
use crate::policy::shell::Word;
use std::sync::LazyLock;

/// Options before the subcommand that change nothing but the output.
const HARMLESS_GLOBALS: &str = "--no-pager -P --version -v --no-optional-locks --literal-pathspecs \
    --no-replace-objects";

/// Subcommands whose work is to run other programs, or to change what git runs later.
static RUNNING: Names = LazyLock::new(|| {
    names(
        "config difftool mergetool filter-branch filter-repo bundle submodule send-email instaweb web--browse \
    daemon shell hook for-each-repo maintenance credential upload-pack receive-pack \
    upload-archive fast-import remote-ext remote-fd citool gui help imap-send cvsserver \
    svn p4 init clone worktree subtree",
    )
});

/// Options that run a program or write a file, whatever the subcommand.
const LONG: &str = "--output --output-directory --upload-pack --receive-pack --exec --open-files-in-pager \
    --ext-diff --textconv --extcmd --tool --config --template --separate-git-dir \
    --edit-todo --strategy --gpg-sign --filters --interactive --local-user --sign --prefix \
    --export-marks --import-marks --export-pack-edges";

/// Letters that do the same in these subcommands alone; elsewhere they are harmless.
const SHORT: &[(&str, &str)] = &[
    ("grep", "O"),
    ("archive", "o"),
    ("format-patch", "o"),
    ("rebase", "xsiS"),
    ("commit", "S"),
    ("tag", "su"),
    ("bundle", "o"),
    ("merge", "sS"),
    ("pull", "sS"),
    ("cherry-pick", "S"),
    ("revert", "S"),
    ("fetch-pack", "u"),
    ("ls-remote", "u"),
];

pub fn harms(words: &[Word]) -> Vec<Harm> {
    let mut at = 1;
    while let Some(word) = words.get(at).filter(|word| word.text.starts_with('-')) {
        if !has_word(HARMLESS_GLOBALS, &word.text) {
            let why = format!(
                "`{}` before git's subcommand can make it run another program",
                word.text
            );
            return vec![Harm { at, why }];
        }
        at += 1;
    }
    let Some(subcommand) = words.get(at) else {
        return Vec::new();
    };
    let mut harms = Vec::new();
    if RUNNING.contains(subcommand.text.as_str()) {
        harms.push(Harm {
            at,
            why: format!(
                "`git {}` can run other programs or change what git runs",
                subcommand.text
            ),
        });
    }
    let letters = SHORT
        .iter()
        .find(|(name, _)| *name == subcommand.text)
        .map_or("", |(_, letters)| letters);
    harms.extend(
        words
            .iter()
            .enumerate()
            .skip(at + 1)
            .filter_map(|(at, word)| of_word(at, &subcommand.text, &word.text, letters)),
    );
    harms
}

fn of_word(at: usize, subcommand: &str, word: &str, letters: &str) -> Option<Harm> {
    if is_one_of_long(word, LONG) || has_short(word, letters, "mFC") {
        return Some(Harm {
            at,
            why: format!("`{word}` lets git {subcommand} run another program or write a file"),
        });
    }
    if word.contains("::") && !word.contains(char::is_whitespace) {
        return Some(Harm {
            at,
            why: format!("`{word}` may name a transport that runs another program"),
        });
    }
    (subcommand == "bisect" && word == "run").then(|| Harm {
        at,
        why: "`git bisect run` runs another program".to_owned(),
    })
}
