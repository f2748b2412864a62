//! Quoting for a shell. Pure.

/// A word in shell syntax, with quotes only if it needs them.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    #[test]
    fn plain_words_stay_as_they_are() {
        assert_eq!(quoted("/opt/claude-2.1"), "/opt/claude-2.1");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("~/x"), "'~/x'");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_shell_takes_it_for_the_same_word(word in "[^\0]{0,12}") {
            let script = format!("printf %s {}", quoted(&word));
            let output = Command::new("sh").args(["-c", &script]).output().expect("sh runs");
            prop_assert_eq!(String::from_utf8_lossy(&output.stdout), word);
        }
    }
}
