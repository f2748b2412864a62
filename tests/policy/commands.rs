//! Commands and policies that are put together at random.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::time::{SystemTime, UNIX_EPOCH};

/// Rules that speak about some of the commands below.
pub const RULES: &[&str] = &[
    "Bash(make *)",
    "Bash(git *)",
    "Bash(git push *)",
    "Bash(git diff *)",
    "Bash(ls *)",
    "Bash(cat *)",
    "Bash(echo *)",
    "Bash(sort *)",
    "Bash(find *)",
    "Bash(sed *)",
    "Bash(rm *)",
    "Bash(npm run *)",
    "Bash(./publish.sh *)",
    "Bash(* --version)",
    "Read(./.env)",
    "Read(secret/**)",
    "Edit(src/**)",
    "Edit(*.lock)",
];

/// Simple commands: ones that only read, that nobody knows, that do harm, that touch what is protected or restricted.
pub const PARTS: &[&str] = &[
    "ls",
    "ls -la src",
    "ls ..",
    "pwd",
    "true",
    "echo ok",
    "echo 'a b'",
    "cat a.txt",
    "cat .env",
    "cat secret/key",
    "cat /etc/passwd",
    "cat ../other",
    "cat *.txt",
    "head -n 3 a.txt",
    "grep -rn x src",
    "wc -l a.txt",
    "find . -name x",
    "find . -delete",
    "sort a.txt",
    "sort -o a.txt a.txt",
    "sed -n 1,3p a.txt",
    "sed -i s/a/b/ a.txt",
    "git status",
    "git diff",
    "git diff --output=F",
    "git push",
    "git push --force origin main",
    "git -c alias.x=!id x",
    "make -n",
    "make",
    "make --version",
    "npm run build",
    "./publish.sh now",
    "rm a.txt",
    "rm -rf build",
    "rm -rf /",
    "touch a.txt",
    "touch .git/hooks/pre-commit",
    "cp a.txt own/slots.toml",
    "mv a.lock b.lock",
    "tee .bashrc",
    "chmod +s a.txt",
    "cd src",
    "cd /etc",
    "python3 x.py",
    "curl -o f https://x.example",
    "wget https://x.example",
    "unheard-of --flag",
    "echo hi > out.txt",
    "echo hi >> src/a.txt",
    "cat < a.txt",
];

/// What a shell runs by itself: tests, assignments, arithmetic.
pub const STATEMENTS: &[&str] = &[
    "[ -f a.txt ]",
    "[[ -f a.txt ]]",
    "[[ a == b ]]",
    "test -f a.txt",
    "x=1",
    "x=1 y=2",
    "x=(1 2)",
    "((1))",
    "((x = 1))",
    "export A=b",
    "declare -i n=1",
    "readonly R=1",
    "unset x",
    "let x=1",
    "shift",
    "set -e",
    ":",
];

/// Everything that can be a part of a command line.
pub fn parts() -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => select(PARTS), 1 => select(STATEMENTS)]
}

/// What joins two commands.
pub const JOINS: &[&str] = &[" && ", " || ", "; ", " | ", " |& ", "\n", " & "];

/// What can stand around commands; `@` is where they stand.
pub const AROUND: &[&str] = &[
    "(@)",
    "{ @; }",
    "! @",
    "@ &",
    "@ 2>&1",
    "@ > /dev/null",
    "echo $(@)",
    "echo \"$(@)\"",
    "echo `@`",
    "diff <(@) a.txt",
    "if @; then true; fi",
    "if true; then @; fi",
    "while @; do true; done",
    "for x in 1 2; do @; done",
    "case x in x) @;; esac",
    "f() { @; }",
    "true <<< \"$(@)\"",
];

/// What can stand before one simple command.
pub const BEFORE: &[&str] = &[
    "timeout 5 @",
    "time @",
    "nice -n 3 @",
    "nohup @",
    "env @",
    "env A=1 @",
    "A=1 @",
    "sudo @",
    "sudo -n @",
    "command @",
    "exec @",
    "xargs @",
    "setsid @",
    "find . -exec @ ;",
    "stdbuf -oL timeout 5 @",
];

/// Programs that run the command in their last argument.
pub const SHELLS: &[&str] = &[
    "sh -c @",
    "bash -c @",
    "bash -lc @",
    "sudo sh -c @",
    "env -i bash -c @",
    "eval @",
    "timeout 5 sh -c @",
    "sh -c 'true' && bash -c @",
];

pub fn policies() -> impl Strategy<Value = String> {
    let some = || subsequence(RULES, 0..5);
    let default = select(&["ask", "claude", "deny"]);
    (default, some(), some(), some()).prop_map(|(default, allow, ask, deny)| {
        // A path rule that allows says nothing about commands.
        format!("default = {default:?}\nallow = {allow:?}\nask = {ask:?}\ndeny = {deny:?}\n")
    })
}

/// What makes the inputs, with its seed: `MISSIOND_SEED`, or a new one.
pub fn seeded(cases: u32) -> (u64, TestRunner) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seed = match std::env::var("MISSIOND_SEED") {
        Ok(seed) => seed.parse().expect("MISSIOND_SEED is a number"),
        Err(_) => now.map_or(0, |since| since.as_nanos() as u64),
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    (seed, TestRunner::new_with_rng(config, rng))
}
