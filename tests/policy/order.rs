//! The verdict on a command is at least as strict as that on each part of it, in whatever order the parts stand and
//! whatever is put around them. Commands and policies are put together at random. The seed is printed with a fault;
//! `MISSIOND_SEED` sets it.

use super::policy;
use missiond::core::policy::{Ask, Decision, Fallback, LexicalPaths, Policy, decide};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use std::time::{SystemTime, UNIX_EPOCH};

/// Rules that speak about some of the commands below.
const RULES: &[&str] = &[
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
const PARTS: &[&str] = &[
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
const STATEMENTS: &[&str] = &[
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
fn parts() -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => select(PARTS), 1 => select(STATEMENTS)]
}

/// What joins two commands.
const JOINS: &[&str] = &[" && ", " || ", "; ", " | ", " |& ", "\n", " & "];

/// What can stand around commands; `@` is where they stand.
const AROUND: &[&str] = &[
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
const BEFORE: &[&str] = &[
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
const SHELLS: &[&str] = &[
    "sh -c @",
    "bash -c @",
    "bash -lc @",
    "sudo sh -c @",
    "env -i bash -c @",
    "eval @",
    "timeout 5 sh -c @",
    "sh -c 'true' && bash -c @",
];

fn decision(policy: &Policy, command: &str) -> Decision {
    let ask = Ask::bash(command, "/proj");
    decide(policy, &ask, &LexicalPaths).decision
}

fn policies() -> impl Strategy<Value = String> {
    let some = || subsequence(RULES, 0..5);
    let default = select(&["ask", "claude", "deny"]);
    (default, some(), some(), some()).prop_map(|(default, allow, ask, deny)| {
        // A path rule that allows says nothing about commands.
        format!("default = {default:?}\nallow = {allow:?}\nask = {ask:?}\ndeny = {deny:?}\n")
    })
}

/// Runs a property with a seed that is told where it fails.
fn holds_for<S: Strategy>(
    cases: u32,
    strategy: S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
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
    if let Err(fault) = TestRunner::new_with_rng(config, rng).run(&strategy, property) {
        panic!("with MISSIOND_SEED={seed}: {fault}");
    }
}

fn parse(text: &str) -> Policy {
    policy(text).protecting(["/proj/own".into()])
}

/// Statements that do nothing by themselves: beside a command that a rule allows they need no rule.
const NEUTRAL: &[&str] = &[
    "[ -f a.txt ]",
    "[[ -f a.txt ]]",
    "[[ a == b ]]",
    "test -f a.txt",
    "x=1",
    "x=1 y=2",
    "set -e",
    ":",
    "true",
];

/// The strictest of the parts, each judged alone. What needs no rule beside another part does not count, unless the
/// default is to deny.
fn strictest(policy: &Policy, parts: &[&str]) -> Decision {
    let counts = |part: &str, alone: Decision| match policy.default {
        Fallback::Deny => true,
        Fallback::Ask if alone == Decision::Silent => false,
        _ => !NEUTRAL.contains(&part) || alone == Decision::Deny,
    };
    let alone = parts.iter().map(|part| (*part, decision(policy, part)));
    let counted = alone.filter(|(part, alone)| counts(part, *alone));
    let decisions = counted.map(|(_, alone)| alone);
    decisions.max().unwrap_or(Decision::Allow)
}

fn at_least(policy: &Policy, command: &str, least: Decision) -> Result<(), TestCaseError> {
    let got = decision(policy, command);
    prop_assert!(
        got >= least,
        "{command:?} gets {}, and a part of it alone {}",
        got.word(),
        least.word()
    );
    Ok(())
}

fn permutations<'a>(parts: &[&'a str]) -> Vec<Vec<&'a str>> {
    if parts.len() < 2 {
        return vec![parts.to_vec()];
    }
    let mut all = Vec::new();
    for at in 0..parts.len() {
        let mut rest = parts.to_vec();
        let first = rest.remove(at);
        all.extend(permutations(&rest).into_iter().map(|mut others| {
            others.insert(0, first);
            others
        }));
    }
    all
}

#[test]
fn a_command_is_judged_at_least_as_strictly_as_each_part_in_every_order() {
    let parts = proptest::collection::vec(parts(), 1..4);
    holds_for(400, (policies(), parts), |(text, parts)| {
        let policy = parse(&text);
        let least = strictest(&policy, &parts);
        for parts in permutations(&parts) {
            for join in JOINS {
                at_least(&policy, &parts.join(join), least)?;
            }
            at_least(&policy, &mixed(&parts), least)?;
        }
        Ok(())
    });
}

/// Each operator once.
fn mixed(parts: &[&str]) -> String {
    let mut joins = JOINS.iter();
    let mut text = parts[0].to_owned();
    for part in &parts[1..] {
        text += joins.next().unwrap_or(&"; ");
        text += part;
    }
    text
}

#[test]
fn what_stands_around_a_command_makes_no_verdict_milder() {
    let parts = proptest::collection::vec(parts(), 1..3);
    let inputs = (policies(), parts, select(JOINS), select(AROUND));
    holds_for(2_000, inputs, |(text, parts, join, around)| {
        let policy = parse(&text);
        let least = strictest(&policy, &parts);
        // `$(` before `((1))` would begin an arithmetic expansion, which is no command at all.
        let command = around
            .replace('@', &parts.join(join))
            .replace("(((", "( ((");
        at_least(&policy, &command, least)
    });
}

#[test]
fn what_stands_before_a_program_makes_no_verdict_milder() {
    let inputs = (policies(), select(PARTS), select(BEFORE));
    holds_for(2_000, inputs, |(text, part, before)| {
        let policy = parse(&text);
        let least = strictest(&policy, &[part]);
        at_least(&policy, &before.replace('@', part), least)
    });
}

#[test]
fn a_shell_in_a_command_makes_no_verdict_milder() {
    let parts = proptest::collection::vec(parts(), 1..3);
    let inputs = (policies(), parts, select(JOINS), select(SHELLS));
    holds_for(2_000, inputs, |(text, parts, join, shell)| {
        let policy = parse(&text);
        let least = strictest(&policy, &parts);
        let script = parts.join(join).replace('\'', r"'\''");
        at_least(&policy, &shell.replace('@', &format!("'{script}'")), least)
    });
}

/// What was found in use: a test or an assignment alone was denied, and with a command beside it was not.
#[test]
fn a_statement_counts_beside_a_command() {
    let policy =
        parse("default = \"deny\"\nallow = [\"Bash(echo *)\"]\nask = [\"Bash(git push *)\"]\n");
    for statement in STATEMENTS {
        for command in [
            "@",
            "@ && echo ok",
            "echo ok; @",
            "@; git push",
            "if @; then echo ok; fi",
            "@\necho ok",
            "@ # why\n\necho ok",
        ] {
            let command = command.replace('@', statement);
            assert_eq!(decision(&policy, &command), Decision::Deny, "{command}");
        }
    }
    assert_eq!(decision(&policy, "A=1 echo ok"), Decision::Ask);
    for command in ["for x in 1 2; do echo ok; done", "{ echo ok; }"] {
        assert_eq!(decision(&policy, command), Decision::Allow, "{command}");
    }
}

/// What was found in use: a part with no rule hid one that a rule asks about.
#[test]
fn a_part_with_no_rule_hides_nothing() {
    let policy = parse("default = \"claude\"\nask = [\"Bash(git push *)\"]\n");
    for (command, expected) in [
        ("make -n", Decision::Silent),
        ("git push", Decision::Ask),
        ("git push && make -n", Decision::Ask),
        ("make -n && git push", Decision::Ask),
        ("make -n && git diff --output=F", Decision::Ask),
        ("git diff --output=F", Decision::Ask),
        ("make -n; touch .git/hooks/pre-commit", Decision::Ask),
        ("make -n > F", Decision::Ask),
        ("make -n $(git push)", Decision::Ask),
        ("make -n && ls", Decision::Silent),
    ] {
        assert_eq!(decision(&policy, command), expected, "{command}");
    }
}
