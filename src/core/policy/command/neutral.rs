//! Shell commands that do nothing by themselves: they need no rule of their own.

use crate::core::policy::harm;
use crate::core::policy::shell::Word;

/// Whether a command only tests, ends a loop, reads its input into a variable, or makes the shell stricter.
pub fn is_neutral(words: &[Word]) -> bool {
    let Some((name, rest)) = words.split_first() else {
        return false;
    };
    let text = |word: &Word| word.text.as_str().to_owned();
    let rest: Vec<String> = rest.iter().map(text).collect();
    let is_count = |word: &String| word.bytes().all(|byte| byte.is_ascii_digit());
    match name.text.as_str() {
        "[" | "test" | "[[" => harm::harms(words).is_empty(),
        ":" | "true" | "false" | "read" => true,
        "break" | "continue" | "exit" => rest.len() <= 1 && rest.iter().all(is_count),
        // It copies a here-document.
        "cat" => rest.is_empty(),
        "set" => matches!(
            rest.join(" ").as_str(),
            "-e" | "-u"
                | "-x"
                | "-eu"
                | "-ex"
                | "-eux"
                | "-o pipefail"
                | "-eo pipefail"
                | "-euo pipefail"
                | "-euxo pipefail"
                | "+e"
                | "+x"
        ),
        _ => false,
    }
}
