//! The verdict on a command is at least as strict as that on each part of it, in whatever order the parts stand and
//! whatever is put around them. Commands and policies are put together at random. The seed is printed with a fault;
//! `MISSIOND_SEED` sets it.

use super::commands::*;
use super::policy;
use missiond::core::policy::{Ask, Decision, Fallback, LexicalPaths, Policy, decide};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseError;

fn decision(policy: &Policy, command: &str) -> Decision {
    let ask = Ask::bash(command, "/proj");
    decide(policy, &ask, &LexicalPaths).decision
}

/// Runs a property with a seed that is told where it fails.
fn holds_for<S: Strategy>(
    cases: u32,
    strategy: S,
    property: impl Fn(S::Value) -> Result<(), TestCaseError>,
) {
    let (seed, mut runner) = seeded(cases);
    if let Err(fault) = runner.run(&strategy, property) {
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
