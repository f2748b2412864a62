//! Subcommands of git that throw work away which is in no commit.

use crate::core::policy::harm::{has_short, has_word, is_one_of_long};
use crate::core::policy::shell::Word;

/// What git throws away for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discard {
    /// The changes in the whole working tree, or in all of the working directory.
    Changes,
    /// What only git keeps: stashes, or commits that no branch has.
    Kept,
}

/// What a subcommand with these arguments throws away. Single paths do not count: rules on paths judge them.
pub fn discards(subcommand: &str, rest: &[Word]) -> Option<Discard> {
    let has = |short: &str, valued: &str, long: &str| {
        let options = rest.iter().take_while(|word| word.text != "--");
        let mut options = options.map(|word| word.text.as_str());
        options.any(|word| has_short(word, short, valued) || is_one_of_long(word, long))
    };
    let first = rest.first().map_or("", |word| word.text.as_str());
    let names_all = || rest.iter().any(|word| is_everything(&word.text));
    let is_value = |at: usize| at > 0 && matches!(rest[at - 1].text.as_str(), "-e" | "--exclude");
    let names_none = || {
        let mut words = rest.iter().enumerate();
        words.all(|(at, word)| word.text.starts_with('-') || is_value(at))
    };
    let changes = match subcommand {
        "reset" => has("", "", "--hard"),
        "checkout" => has("f", "bB", "--force") || names_all(),
        "switch" => has("f", "cC", "--force --discard-changes"),
        "restore" => names_all() && (has("W", "s", "--worktree") || !has("S", "s", "--staged")),
        "clean" => {
            has("f", "e", "--force") && !has("n", "e", "--dry-run") && (names_none() || names_all())
        }
        "rm" => names_all() && !has("n", "", "--cached --dry-run"),
        _ => false,
    };
    let kept = match subcommand {
        "stash" => has_word("drop clear", first),
        "reflog" => has_word("expire delete", first),
        "gc" => has("", "", "--prune"),
        "prune" => !has("n", "", "--dry-run"),
        _ => false,
    };
    match (changes, kept) {
        (true, _) => Some(Discard::Changes),
        (_, true) => Some(Discard::Kept),
        _ => None,
    }
}

/// A pathspec that names all files of the working directory or of the repository.
fn is_everything(word: &str) -> bool {
    let path = match word.strip_prefix(":(") {
        Some(magic) => magic.split_once(')').map_or("", |(_, path)| path),
        None => word.trim_start_matches(':'),
    };
    let is_sign = |c: char| matches!(c, '.' | '/' | '*' | '?');
    !word.starts_with('-') && !word.is_empty() && path.chars().all(is_sign) && path != "/.."
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(command: &str) -> Option<Discard> {
        let words = command.split(' ').map(|text| Word {
            text: text.to_owned(),
            ..Word::default()
        });
        let words: Vec<Word> = words.collect();
        discards(&words[0].text, &words[1..])
    }

    #[test]
    fn what_throws_work_away_is_told_from_what_keeps_it() {
        for command in [
            "reset --hard",
            "reset -q --har HEAD~1",
            "checkout .",
            "checkout -- .",
            "checkout HEAD -- ./",
            "checkout -f main",
            "checkout -qf",
            "checkout :/",
            "checkout :(top)",
            "checkout -- *",
            "switch --discard main",
            "switch -f main",
            "restore .",
            "restore -SW .",
            "restore --source=HEAD~2 :/",
            "clean -fd",
            "clean -d --force",
            "clean -fdx .",
            "clean -xfd -e !.env",
            "rm -rf .",
        ] {
            assert_eq!(of(command), Some(Discard::Changes), "{command}");
        }
        for command in [
            "stash drop",
            "stash clear",
            "reflog expire --all",
            "gc --prune=now",
            "prune",
        ] {
            assert_eq!(of(command), Some(Discard::Kept), "{command}");
        }
        for command in [
            "reset --soft HEAD~1",
            "reset HEAD .",
            "checkout main",
            "checkout -b fix",
            "checkout -bf",
            "checkout -- src/a.rs",
            "switch main",
            "restore --staged .",
            "restore src",
            "clean -n",
            "clean -nd",
            "clean -fd build",
            "rm -r --cached .",
            "rm src/a.rs",
            "stash",
            "stash -u",
            "stash pop",
            "reflog",
            "gc",
            "prune -n",
        ] {
            assert_eq!(of(command), None, "{command}");
        }
    }
}
