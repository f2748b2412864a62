//! Programs that run others, if a rule spells out the program that they run: the words that its wildcard matches are then
//! arguments of the inner program.

use crate::core::policy::harm;
use crate::core::policy::pattern::CommandPattern;
use crate::core::policy::shell::{self, Word};

/// What a runner runs.
#[derive(Debug, PartialEq, Eq)]
pub enum Inner {
    /// The command that begins at this word.
    At(usize),
    /// The same, with further words that are unknown here.
    WithMoreAt(usize),
    /// It only looks up programs and runs none.
    Nothing,
}

/// The command that a command runs, and how many words a rule has to spell out to make that clear.
pub fn inner(words: &[Word]) -> Option<(Inner, usize)> {
    let (name, arguments) = words.split_first()?;
    let text = |at: usize| arguments.get(at).map(|word| word.text.as_str());
    match name.text.as_str() {
        "command" => matches!(text(0)?, "-v" | "-V").then_some((Inner::Nothing, 2)),
        "bash" | "sh" | "dash" | "zsh" | "ksh" => {
            let at = 1 + count_while(arguments, is_shell_option);
            is_script(words.get(at)?).then_some((Inner::At(at), at + 1))
        }
        // It runs with more rights than the slot has: the rule must spell out the program and its subcommand.
        "sudo" => {
            let at = 1 + usize::from(text(0)? == "-n");
            let does = words.get(at + 1)?;
            let is_plain = is_program(words.get(at)?) && !does.text.starts_with('-');
            is_plain.then_some((Inner::At(at), at + 2))
        }
        "env" => {
            let at = 1 + count_while(arguments, is_assignment);
            is_program(words.get(at)?).then_some((Inner::At(at), at + 1))
        }
        "xargs" => {
            let at = 1 + count_while(arguments, is_xargs_option);
            is_program(words.get(at)?).then_some((Inner::WithMoreAt(at), at + 1))
        }
        _ => None,
    }
}

fn count_while(words: &[Word], is: impl Fn(&str) -> bool) -> usize {
    words.iter().take_while(|word| is(&word.text)).count()
}

/// Options that do not change what is run.
fn is_shell_option(text: &str) -> bool {
    let letters = text.strip_prefix('-').unwrap_or_default();
    !letters.is_empty() && letters.chars().all(|c| "euxvf".contains(c))
}

fn is_xargs_option(text: &str) -> bool {
    let digits = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    let counted = ["-n", "-P", "-L"];
    matches!(text, "-0" | "-r" | "-t")
        || counted
            .iter()
            .any(|option| text.strip_prefix(option).is_some_and(digits))
}

fn is_script(word: &Word) -> bool {
    is_program(word)
        && !["/dev/", "/proc/"]
            .iter()
            .any(|start| word.text.starts_with(start))
}

fn is_program(word: &Word) -> bool {
    word.is_plain_name() && !word.text.starts_with(['-', '+']) && !is_assignment(&word.text)
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

/// Why a rule with a wildcard can never allow anything; `None` if it can.
pub fn never_allows(pattern: &CommandPattern) -> Option<String> {
    let program = pattern.program().filter(|_| !pattern.is_exact())?;
    let text = |text: &str| Word {
        text: text.to_owned(),
        ..Word::default()
    };
    let literal = pattern.literal_start().trim_end().split(' ');
    let mut words: Vec<Word> = literal.map(text).collect();
    words.push(text("x"));
    if shell::strip(&words).words.len() < words.len() {
        return Some(format!(
            "rules ignore the wrapper {program}: write the rule for the command after it"
        ));
    }
    let why = harm::always(program)?;
    match inner(&words) {
        Some((inner, needs)) if needs <= pattern.literal_words() => match inner {
            Inner::At(at) | Inner::WithMoreAt(at) => harm::always(&words[at].text),
            Inner::Nothing => None,
        },
        _ => Some(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_that_can_never_allow_are_told_from_those_that_can() {
        for rule in [
            "bash *",
            "bash -c *",
            "bash scripts/*",
            "wget -q https://a.b/*",
            "sqlite3 app.db *",
            "ssh host uptime *",
            "sudo *",
            "sudo cat *",
            "sudo bash x.sh *",
            "env *",
            "timeout 30 npm test *",
            "xargs grep *",
            "command *",
        ] {
            assert!(never_allows(&CommandPattern::new(rule)).is_some(), "{rule}");
        }
        for rule in [
            "bash scripts/build.sh *",
            "sh ./run.sh:*",
            "sudo systemctl restart *",
            "env NODE_ENV=test npm test *",
            "xargs -n1 grep *",
            "command -v *",
            "wget https://a.b/c",
            "git *",
            "unzip *",
            "* --version",
        ] {
            assert_eq!(never_allows(&CommandPattern::new(rule)), None, "{rule}");
        }
    }
}
