//! Which of its arguments a program writes to.

use super::{Names, has_short, names};
use crate::policy::shell::Word;
use std::sync::LazyLock;

/// Programs that change everything that they are given.
static CHANGERS: Names = LazyLock::new(|| {
    names(
        "mv ln tee touch mkdir rmdir rm unlink shred truncate chmod chown chgrp mkfifo split csplit rename",
    )
});

/// Programs that write the last thing that they are given.
static COPIERS: Names = LazyLock::new(|| names("cp install rsync ditto ffmpeg"));

/// Programs that write what follows `-o`.
static COMPILERS: Names =
    LazyLock::new(|| names("gcc cc g++ c++ clang clang++ ld rustc javac ghc dot"));

pub fn is_writer(program: &str) -> bool {
    CHANGERS.contains(program) || COPIERS.contains(program)
}

/// Whether it may also write where everybody does: what a compiler puts there may be run.
pub fn may_use_temporary(program: &str) -> bool {
    !COMPILERS.contains(program)
}

/// The places among the arguments of what may be written.
pub fn written(program: &str, arguments: &[Word]) -> Vec<usize> {
    let is_operand = |at: &usize| !arguments[*at].text.starts_with('-');
    let all = 0..arguments.len();
    if CHANGERS.contains(program) {
        return all.collect();
    }
    if COPIERS.contains(program) {
        // `-t` and `-d` make every operand one that is written; in some they mean something else.
        let names_target = |word: &Word| {
            has_short(&word.text, "td", "mogSZ")
                || word.text.starts_with("--t")
                || word.text.starts_with("--di")
        };
        let names_target =
            |word: &Word| !matches!(program, "rsync" | "ffmpeg") && names_target(word);
        return match arguments.iter().any(names_target) {
            true => all.collect(),
            false => all.rev().find(is_operand).into_iter().collect(),
        };
    }
    if COMPILERS.contains(program) {
        let follows = |at: &usize| *at > 0 && arguments[*at - 1].text == "-o";
        let attached = |at: &usize| arguments[*at].text.starts_with("-o");
        return all.filter(|at| follows(at) || attached(at)).collect();
    }
    if matches!(program, "tar" | "gtar" | "bsdtar") {
        return archives(arguments);
    }
    Vec::new()
}

/// The archive that `tar` makes: what follows `f`, whether that has a dash or not.
fn archives(arguments: &[Word]) -> Vec<usize> {
    const MAKES: &[&str] = &["--cr", "--app", "--up", "--cat", "--con"];
    let text = |at: usize| arguments[at].text.as_str();
    let is_cluster = |at: usize| match text(at).strip_prefix('-') {
        Some(letters) => !letters.starts_with('-'),
        None => at == 0,
    };
    let makes = |at: usize| match is_cluster(at) {
        true => text(at).contains(['c', 'r', 'u', 'A']),
        false => MAKES.iter().any(|start| text(at).starts_with(start)),
    };
    let names_it = |at: &usize| match is_cluster(*at) {
        true => text(*at).contains('f'),
        false => text(*at).starts_with("--fil"),
    };
    let all = 0..arguments.len();
    if !all.clone().any(makes) {
        return Vec::new();
    }
    // The name may be the rest of the word.
    let places = all.filter(names_it).flat_map(|at| [at, at + 1]);
    places.filter(|at| *at < arguments.len()).collect()
}
