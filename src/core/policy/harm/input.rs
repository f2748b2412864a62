//! Programs that run their input, as `tables/input.toml` lists them.

use super::programs::{ByName, by_name, read};
use super::{base_name, has_word, unversioned};
use crate::core::policy::shell::Word;
use serde::Deserialize;
use std::sync::LazyLock;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Program {
    names: String,
    unless: String,
    file: bool,
    runs: String,
}

const FILE: &str = include_str!("../tables/input.toml");

static TABLE: LazyLock<ByName<Program>> =
    LazyLock::new(|| by_name(read(FILE).unwrap_or_default(), |row| &row.names));

/// Whether a command runs its input, or may do so.
pub fn runs_its_input(words: &[Word]) -> bool {
    let Some((name, arguments)) = words.split_first() else {
        return false;
    };
    // `uv run -`
    if name.text == "-" {
        return true;
    }
    let program = base_name(&name.text);
    let row = TABLE
        .get(program)
        .or_else(|| TABLE.get(unversioned(program)));
    row.is_some_and(|row| row.runs_input(arguments))
}

impl Program {
    fn runs_input(&self, arguments: &[Word]) -> bool {
        let texts = || arguments.iter().map(|word| word.text.as_str());
        let mut runs = self.runs.split_ascii_whitespace();
        let is_input = |text: &str| {
            matches!(
                text,
                "-" | "-s" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0"
            )
        };
        if runs.any(|run| texts().any(|text| text.contains(run))) || texts().any(is_input) {
            return true;
        }
        let has_code = texts().any(|text| self.has_code_from(text));
        let has_file = self.file && texts().any(|text| !text.starts_with('-'));
        !has_code && !has_file
    }

    /// Whether an option gives the code to run, so that the input is not run.
    fn has_code_from(&self, text: &str) -> bool {
        let name = text.split('=').next().unwrap_or_default();
        let in_cluster = || {
            let letters = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            letters.is_some_and(|letters| {
                letters
                    .chars()
                    .any(|letter| has_word(&self.unless, &format!("-{letter}")))
            })
        };
        has_word(&self.unless, name) || in_cluster()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(command: &str) -> bool {
        let word = |text: &str| Word {
            text: text.to_owned(),
            ..Word::default()
        };
        let words: Vec<Word> = command.split(' ').map(word).collect();
        runs_its_input(&words)
    }

    #[test]
    fn the_file_can_be_read() {
        let rows = read::<Program>(FILE);
        assert!(!rows.expect("a good file").is_empty());
    }

    #[test]
    fn programs_that_run_their_input_are_known() {
        for command in [
            "sh",
            "bash -s",
            "bash -s x",
            "/bin/sh",
            "sh -",
            "bash -x",
            "python3",
            "python3.12 -",
            "node",
            "node -i",
            "-",
            "psql",
            "psql -U app",
            "psql -f x.sql",
            "sqlite3 a.db",
            "mysql -u x",
            "node /dev/stdin",
        ] {
            assert!(runs(command), "{command}");
        }
        for command in [
            "sh x.sh",
            "bash -c ls",
            "bash -ec ls",
            "python3 x.py",
            "python3 -m pytest",
            "python3 -c x",
            "node x.js",
            "node --version",
            "psql -c select",
            "psql -U app -tAc select",
            "mysql -e select",
            "pytest -q",
            "cat",
            "ls -",
        ] {
            assert!(!runs(command), "{command}");
        }
    }
}
