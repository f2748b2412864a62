//! Which programs may get unknown words, and the built-in commands of the shell.

use super::super::words::Word;
use super::word::{Part, Unknown};
use crate::core::policy::harm;

/// Programs that only print their words. Those never become a file, an important option or a command.
const PRINT: &[&str] = &["echo", "printf"];

/// Programs for which a number is a count or a time.
const COUNT: &[&str] = &[
    "echo", "printf", "exit", "sleep", "seq", "head", "tail", "[", "test",
];

/// Whether a program may run with these words; `None` if one of them is unknown and that matters.
pub fn are_known(parts: &[Part]) -> Option<()> {
    let (name, rest) = parts.split_first()?;
    is_program(name).then_some(())?;
    let program = name.word.text.as_str();
    let reads_process = |part: &Part| part.word.text == "/dev/stdin" && part.substituted;
    if rest.iter().any(reads_process) && !harm::only_reads(program) {
        return None;
    }
    if rest.iter().all(Part::is_known) {
        return Some(());
    }
    let is_right = match program {
        "printf" => rest[0].is_known() && !rest[0].word.text.starts_with('-'),
        "[" | "test" => is_plain_test(program, rest),
        _ => rest.iter().all(|part| may_be_given(program, part)),
    };
    is_right.then_some(())
}

fn may_be_given(program: &str, part: &Part) -> bool {
    let is_count = || {
        let text = &part.word.text;
        let letters = text.trim_end_matches('0').trim_start_matches('-');
        let is_option =
            text.starts_with('-') && letters.bytes().all(|byte| byte.is_ascii_alphabetic());
        let is_commit = program == "git" && !text.starts_with('-');
        COUNT.contains(&program)
            || is_commit
            || is_option && letters.len() == 1 && program != "kill"
    };
    match part.unknown {
        None => true,
        Some(Unknown::Number) => is_count(),
        Some(Unknown::Text) => PRINT.contains(&program),
    }
}

/// Whether the first word is literally the name of a program.
fn is_program(part: &Part) -> bool {
    let word = &part.word;
    let begins = |c: char| c.is_ascii_alphabetic() || "_./".contains(c);
    let is_plain = !word.quoted && !word.globs && !part.substituted && part.is_known();
    let is_name = word.text.starts_with(begins)
        && !word
            .text
            .contains(['=', '%', '@', ',', '~', '^', ':', '#', '!', ']', '{']);
    is_test(word) || word.text == ":" || is_plain && is_name
}

fn is_test(word: &Word) -> bool {
    word.text == "[" && word.length == 1
}

/// A test with literal operators: an unknown operator could evaluate the next word.
fn is_plain_test(program: &str, rest: &[Part]) -> bool {
    let rest = match (program, rest.split_last()) {
        ("[", Some((last, rest))) if last.word.text == "]" => rest,
        ("[", _) => return false,
        _ => rest,
    };
    is_test_with(rest, "= == != -eq -ne -lt -le -gt -ge -nt -ot -ef")
}

/// The same between `[[` and `]]`, which evaluates the operands of `-eq` and the like.
pub fn is_plain_double_test(rest: &[Part]) -> bool {
    is_test_with(rest, "= == != -nt -ot -ef")
}

fn is_test_with(rest: &[Part], binary: &str) -> bool {
    let rest = match rest {
        [not, rest @ ..] if not.is_known() && not.word.text == "!" => rest,
        rest => rest,
    };
    const UNARY: &str = "-z -n -f -d -e -s -r -w -x -L -h";
    let is = |part: &Part, list: &str| part.is_known() && harm::has_word(list, &part.word.text);
    let is_operand = |part: &Part| part.is_one_word() || part.unknown == Some(Unknown::Number);
    match rest {
        [operator, operand] => is(operator, UNARY) && is_operand(operand),
        [left, operator, right] => is(operator, binary) && is_operand(left) && is_operand(right),
        _ => false,
    }
}

/// The variables that a command sets: those of `read`.
pub fn sets(parts: &[Part]) -> Option<Vec<&str>> {
    let (name, rest) = parts.split_first()?;
    if name.word.text != "read" {
        return Some(Vec::new());
    }
    let names: Vec<&str> = rest.iter().map(|part| part.word.text.as_str()).collect();
    let names = match names.split_first() {
        Some((&"-r", names)) => names,
        _ => &names[..],
    };
    let is_name = |name: &&str| {
        super::variables::name(name) == Some(*name) && super::variables::may_be_set(name)
    };
    (rest.iter().all(Part::is_known) && !names.is_empty() && names.iter().all(is_name))
        .then(|| names.to_vec())
}
