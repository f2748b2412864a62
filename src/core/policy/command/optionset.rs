//! Rules that restrict a command by its options: those mean the options wherever they stand, and whatever stands beside
//! them. `rm -rf *` speaks about `rm -v -rf x`, `rm x -fr` and `rm -rfv x` too.

use super::join;
use crate::core::policy::pattern::CommandPattern;

/// The options of a command or a rule, and the words that are none.
#[derive(Debug, Default)]
struct Options<'w> {
    letters: Vec<char>,
    whole: Vec<&'w str>,
    others: Vec<&'w str>,
}

/// A single dash with more letters than this is one option with a long name, as those of find.
const LONGEST_CLUSTER: usize = 5;

/// Long options that have a letter of their own in nearly every program.
const LETTERS: &[(&str, char)] = &[
    ("--recursive", 'r'),
    ("--force", 'f'),
    ("--verbose", 'v'),
    ("-R", 'r'),
];

impl<'w> Options<'w> {
    fn of(words: impl Iterator<Item = &'w str>) -> Options<'w> {
        let mut options = Options::default();
        for word in words {
            let cluster = word.strip_prefix('-').unwrap_or_default();
            let is_cluster = !cluster.is_empty()
                && cluster.len() <= LONGEST_CLUSTER
                && cluster.bytes().all(|byte| byte.is_ascii_alphabetic());
            if let Some((_, letter)) = LETTERS.iter().find(|(long, _)| *long == word) {
                options.letters.push(*letter);
            }
            if is_cluster {
                options.letters.extend(cluster.chars());
            }
            match word.starts_with('-') && word.len() > 1 {
                true => options.whole.push(word),
                false => options.others.push(word),
            }
        }
        options
    }

    /// Whether this command has every option of a rule.
    fn has(&self, rule: &Options<'_>) -> bool {
        let is_cluster = |word: &str| word.len() <= 4 && !word.starts_with("--");
        let is_given = |option: &&str| {
            let long = LETTERS.iter().find(|(long, _)| long == option);
            let by_letter = long.is_some_and(|(_, letter)| self.letters.contains(letter));
            let by_letters = is_cluster(option)
                && option
                    .chars()
                    .skip(1)
                    .all(|letter| self.letters.contains(&letter));
            let by_name = |word: &&str| {
                word == option
                    || word
                        .strip_prefix(*option)
                        .is_some_and(|rest| rest.starts_with('='))
            };
            by_letter || by_letters || self.whole.iter().any(by_name)
        };
        rule.whole.iter().all(is_given)
    }
}

/// Whether a rule speaks about a command with these words by its options. Only for rules that restrict.
pub fn speaks_about(pattern: &CommandPattern, words: &[&str]) -> bool {
    let text = pattern.text();
    if !text.contains(" -") {
        return false;
    }
    let rule = Options::of(text.split(' '));
    let Some((program, _)) = words.split_first() else {
        return false;
    };
    // A star in an option is left to the pattern itself.
    let is_plain = rule.whole.iter().all(|word| !word.contains('*'));
    if !is_plain || rule.others.first() != Some(program) {
        return false;
    }
    let command = Options::of(words.iter().copied());
    let others = join(command.others.iter().copied());
    let wanted = CommandPattern::new(&join(rule.others.iter().copied()));
    command.has(&rule) && wanted.matches(&others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speaks(rule: &str, command: &str) -> bool {
        let words: Vec<&str> = command.split(' ').collect();
        speaks_about(&CommandPattern::new(rule), &words)
    }

    #[test]
    fn options_count_wherever_they_stand() {
        for command in [
            "rm -rf x",
            "rm -fr x",
            "rm -rfv x",
            "rm -v -rf x",
            "rm -r x -f",
            "rm --recursive -f x",
            "rm -rf",
            "rm x --force -R",
        ] {
            assert!(speaks("rm -rf *", command), "{command}");
        }
        for command in ["rm x", "rm -r x", "rm -f x", "ls -rf x"] {
            assert!(!speaks("rm -rf *", command), "{command}");
        }
        assert!(speaks("git push --force *", "git push origin main --force"));
        assert!(speaks("git push --force *", "git push -q --force"));
        assert!(speaks("git push --force *", "git push -f origin"));
        assert!(!speaks("git push --force *", "git push origin main"));
        assert!(!speaks("git push --force *", "git push --force-with-lease"));
        assert!(!speaks("find * -exec *", "find . -newerct x -maxdepth 2"));
        assert!(speaks("find * -delete", "find . -delete -print"));
        assert!(!speaks("npm run *", "npm -s run x"));
    }
}
