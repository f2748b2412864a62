//! The uses of git that only read its repository.

use crate::core::policy::harm::has_word;
use crate::core::policy::shell::Word;

/// Subcommands that only read, whatever their options are. Options that write or run something count as harm, which is checked
/// elsewhere.
const READ: &str = "status diff log show rev-parse ls-files blame annotate describe grep shortlog ls-tree merge-base \
    rev-list cat-file name-rev for-each-ref show-ref diff-tree whatchanged cherry count-objects check-ignore version";

/// Subcommands that only read if no other arguments follow.
const READ_WITH: &[(&str, &str)] = &[
    (
        "branch",
        "-a -r -v -vv --all --remotes --verbose --list --show-current --no-color --merged --no-merged",
    ),
    ("tag", "-l --list -n"),
    ("remote", "-v --verbose"),
    ("stash", "list"),
    ("worktree", "list --porcelain"),
    ("reflog", "show"),
];

/// Subcommands that do something else without an argument.
const NEED_A_WORD: &str = "stash worktree";

/// Whether git only reads, by the words after its name.
pub fn only_reads(arguments: &[Word]) -> bool {
    let mut words = arguments
        .iter()
        .map(|word| word.text.as_str())
        .skip_while(|word| *word == "--no-pager");
    let Some(subcommand) = words.next() else {
        return false;
    };
    if has_word(READ, subcommand) {
        return true;
    }
    let Some((_, known)) = READ_WITH.iter().find(|(name, _)| *name == subcommand) else {
        return false;
    };
    let rest: Vec<&str> = words.collect();
    let is_whole = !rest.is_empty() || !has_word(NEED_A_WORD, subcommand);
    is_whole && rest.iter().all(|word| has_word(known, word))
}
