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
static COPIERS: Names = LazyLock::new(|| names("cp install rsync ditto"));

/// Programs that write what follows `-o`.
static COMPILERS: Names =
    LazyLock::new(|| names("gcc cc g++ c++ clang clang++ ld rustc javac ghc ffmpeg dot"));

pub fn is_writer(program: &str) -> bool {
    CHANGERS.contains(program) || COPIERS.contains(program)
}

/// The places among the arguments of what may be written.
pub fn written(program: &str, arguments: &[Word]) -> Vec<usize> {
    let is_operand = |at: &usize| !arguments[*at].text.starts_with('-');
    let all = 0..arguments.len();
    if CHANGERS.contains(program) {
        return all.collect();
    }
    if COPIERS.contains(program) {
        // `-t` and `-d` make every operand one that is written; in rsync they mean something else.
        let names_target = |word: &Word| {
            has_short(&word.text, "td", "mogSZ")
                || word.text.starts_with("--t")
                || word.text.starts_with("--di")
        };
        let names_target = |word: &Word| program != "rsync" && names_target(word);
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
    Vec::new()
}
