//! What `policy explain` says is what the gate decides, and what a person is told about a call is what was decided on it.
//! Policies and calls are put together at random. The seed is printed; `MISSIOND_SEED` sets it.

#[path = "../policy/commands.rs"]
mod commands;

use super::inside::{audit, executable};
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use commands::{AROUND, BEFORE, JOINS, SHELLS, parts, policies, seeded};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use tempfile::TempDir;

/// Slots that differ in what else counts than the policy: the name, the settings, and the mode as Claude Code calls it.
const SLOTS: [(&str, &str, &str); 4] = [
    ("manual", "", "default"),
    ("edits", "mode = \"acceptEdits\"", "acceptEdits"),
    ("project", "project_settings = true", "default"),
    (
        "bypass",
        "mode = \"bypassPermissions\"",
        "bypassPermissions",
    ),
];
/// Calls of each slot.
const CALLS: usize = 40;
/// Asks of each slot that are looked at as a person does.
const LOOKED_AT: usize = 4;

/// A call, and whether Claude Code's shell stands in a directory below the slot's.
#[derive(Debug, Clone)]
struct Call {
    tool: String,
    input: Value,
    below: bool,
}

fn command() -> impl Strategy<Value = String> {
    let line = || (vec(parts(), 1..4), select(JOINS)).prop_map(|(parts, join)| parts.join(join));
    let around = (line(), select(AROUND)).prop_map(|(line, around)| around.replace('@', &line));
    let before = (parts(), select(BEFORE)).prop_map(|(part, before)| before.replace('@', part));
    let shell = (line(), select(SHELLS)).prop_map(|(line, shell)| {
        let quoted = format!("'{}'", line.replace('\'', r"'\''"));
        shell.replace('@', &quoted)
    });
    prop_oneof![3 => line(), 1 => around, 1 => before, 1 => shell]
}

fn other_tool() -> impl Strategy<Value = (String, Value)> {
    let path = select(&[
        "src/a.rs",
        ".env",
        "secret/key",
        "/etc/passwd",
        "../x",
        "a.lock",
        ".git/config",
    ]);
    let on_file =
        (select(&["Read", "Edit", "Write", "Glob", "Grep"]), path).prop_map(|(tool, path)| {
            (
                tool.to_owned(),
                json!({"file_path": path, "path": path, "pattern": "x"}),
            )
        });
    let others = select(&["WebSearch", "Task", "TodoWrite", "mcp__github__get_issue"])
        .prop_map(|tool| (tool.to_owned(), json!({"url": "https://docs.rs/x"})));
    let fetch = Just((
        "WebFetch".to_owned(),
        json!({"url": "https://docs.rs/x", "prompt": "x"}),
    ));
    prop_oneof![3 => on_file, 1 => others, 1 => fetch]
}

fn call() -> impl Strategy<Value = Call> {
    let bash = command().prop_map(|command| ("Bash".to_owned(), json!({"command": command})));
    let called = prop_oneof![4 => bash, 1 => other_tool()];
    (called, any::<bool>()).prop_map(|((tool, input), below)| Call { tool, input, below })
}

fn drawn<T: std::fmt::Debug>(runner: &mut TestRunner, strategy: impl Strategy<Value = T>) -> T {
    let tree = strategy.new_tree(runner);
    tree.expect("nothing is filtered").current()
}

/// A daemon whose slots are shells in the place of Claude Code, each with a policy of its own.
fn daemon(runner: &mut TestRunner, directory: &TempDir) -> Daemon {
    let program = CALLER.replace(
        "MISSIOND hook",
        concat!(env!("CARGO_BIN_EXE_missiond"), " hook"),
    );
    let program = executable(directory, &program);
    let mut setup = Setup::new();
    for (slot, keys, _) in SLOTS {
        let policy = drawn(runner, policies());
        println!("policy of {slot}:\n{policy}");
        setup = setup.slot_with(slot, keys).policy(slot, &policy);
    }
    let daemon = Daemon::start_with(&setup, &[program]);
    for (slot, ..) in SLOTS {
        until("the slot to run", || daemon.status(slot)["pid"].as_u64());
        fs::create_dir(daemon.cwd(slot).join("src")).expect("a directory");
    }
    daemon
}

/// The calls as Claude Code hands them to the hook.
fn payload(daemon: &Daemon, slot: &str, mode: &str, (number, call): (usize, &Call)) -> Value {
    json!({
        "hook_event_name": "PreToolUse", "session_id": daemon.status(slot)["session_id"],
        "cwd": place(daemon, slot, call), "permission_mode": mode, "tool_name": call.tool,
        "tool_input": call.input, "tool_use_id": format!("toolu_{number}"),
    })
}

fn place(daemon: &Daemon, slot: &str, call: &Call) -> std::path::PathBuf {
    let cwd = daemon.cwd(slot);
    if call.below { cwd.join("src") } else { cwd }
}

/// In the place of Claude Code: runs the hook for each call that is put into its directory, in order.
const CALLER: &str = r#"#!/bin/sh
case "$*" in *--version*) exit 1;; esac
n=0
while :; do
    if [ -e "$n.call" ]; then
        MISSIOND hook --socket "$MISSIOND_SOCKET" --slot "${PWD##*/}" <"$n.call" >"$n.new" 2>&1
        echo "exit $?" >>"$n.new"
        mv "$n.new" "$n.answer"
        n=$((n + 1))
    else
        sleep 0.02
    fi
done
"#;

/// What the hook answers to these calls, of which the first has this number.
fn gate(daemon: &Daemon, slot: &str, first: usize, payloads: &[Value]) -> Vec<String> {
    let cwd = daemon.cwd(slot);
    for (number, payload) in payloads.iter().enumerate() {
        let file = cwd.join(format!("{}.call", first + number));
        fs::write(file.with_extension("draft"), payload.to_string()).expect("a file");
        fs::rename(file.with_extension("draft"), file).expect("a file");
    }
    let answer = |number: usize| {
        let file = cwd.join(format!("{}.answer", first + number));
        let answer = until("an answer of the hook", || fs::read_to_string(&file).ok());
        let output = answer.strip_suffix("exit 0\n");
        output.unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    (0..payloads.len()).map(answer).collect()
}

/// The decision in the output of a hook.
fn told(answer: &str) -> String {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    let decision = &answer["hookSpecificOutput"]["permissionDecision"];
    decision.as_str().unwrap_or("none").to_owned()
}

/// What the gate has written down of its verdicts on the calls of a slot, in their order.
fn verdicts(daemon: &Daemon, slot: &str) -> Vec<Value> {
    let entries = audit(daemon).into_iter();
    let is_verdict = |entry: &Value| {
        entry["what"] == "verdict" && entry["slot"] == slot && entry["by"] == "policy"
    };
    entries.filter(is_verdict).collect()
}

#[test]
fn the_gate_decides_what_explain_says() {
    let (seed, mut runner) = seeded(1);
    println!("MISSIOND_SEED={seed}");
    let directory = tempfile::tempdir().expect("a directory");
    let daemon = daemon(&mut runner, &directory);
    let mut seen = std::collections::BTreeSet::new();
    for (slot, _, mode) in SLOTS {
        let calls: Vec<Call> = (0..CALLS).map(|_| drawn(&mut runner, call())).collect();
        let explained = explained(&daemon, slot, &calls);
        let numbered = calls.iter().enumerate();
        let payloads: Vec<Value> = numbered
            .map(|call| payload(&daemon, slot, mode, call))
            .collect();
        let answers = gate(&daemon, slot, 0, &payloads);
        let verdicts = verdicts(&daemon, slot);
        assert_eq!((answers.len(), verdicts.len()), (CALLS, CALLS), "{slot}");
        for (number, call) in calls.iter().enumerate() {
            let (says, decided) = (&explained[number], &verdicts[number]);
            let case = format!("MISSIOND_SEED={seed} {slot}: {call:?}\n{says}\n{decided}");
            let word = says["verdict"].as_str().expect("a verdict");
            assert_eq!(decided["verdict"], word, "{case}");
            assert_eq!(decided["rule"]["text"], says["rule"], "{case}");
            // An allow that Claude Code is to check by itself is not said.
            let told = told(&answers[number]);
            assert!(
                told == word || word == "allow" && told == "none",
                "{told}: {case}"
            );
            seen.insert(word.to_owned());
        }
    }
    assert!(seen.len() > 2, "the calls are of one kind: {seen:?}");
}

/// The answers of `policy explain` to these calls.
fn explained(daemon: &Daemon, slot: &str, calls: &[Call]) -> Vec<Value> {
    let line = |call: &Call| {
        let cwd = place(daemon, slot, call);
        json!({"tool": call.tool, "input": call.input, "cwd": cwd}).to_string()
    };
    let lines: Vec<String> = calls.iter().map(line).collect();
    let explain = ["policy", "explain", "--slot", slot, "-"];
    let said = daemon.cmd_with_input(&explain, &(lines.join("\n") + "\n"));
    let said = said.expect(0).json_lines();
    assert_eq!(said.len(), calls.len());
    said
}

/// What a person is told about each part of a call that waits for them is what `policy explain` says of it, and no part is
/// judged more strictly than the call.
#[test]
fn a_person_is_told_what_explain_says_of_each_part() {
    let (seed, mut runner) = seeded(1);
    println!("MISSIOND_SEED={seed}");
    let directory = tempfile::tempdir().expect("a directory");
    let daemon = daemon(&mut runner, &directory);
    let mut looked_at = 0;
    for (slot, _, mode) in SLOTS {
        let commands = std::iter::repeat_with(|| drawn(&mut runner, command()));
        for (number, command) in commands.take(5 * LOOKED_AT).enumerate() {
            let input = json!({"command": command});
            let call = Call {
                tool: "Bash".to_owned(),
                input,
                below: false,
            };
            let before = payload(&daemon, slot, mode, (number, &call));
            let answer = gate(&daemon, slot, 2 * number, std::slice::from_ref(&before));
            if told(&answer[0]) == "ask" {
                looked_at += 1;
                let says = daemon.json(&["policy", "explain", slot, &command]);
                let told = asked(&daemon, slot);
                let case = format!("MISSIOND_SEED={seed} {slot}: {command:?}\n{says}\n{told}");
                let mut expected = parts_of(&says);
                // A command with no parts, such as `x=1`, is one part for a person.
                if expected.is_empty() {
                    expected.push(("Bash".into(), says["verdict"].clone(), says["rule"].clone()));
                }
                assert_eq!(parts_of(&told), expected, "{case}");
            }
            let mut after = before;
            after["hook_event_name"] = "PostToolUse".into();
            gate(&daemon, slot, 2 * number + 1, &[after]);
        }
    }
    assert!(looked_at >= LOOKED_AT, "{looked_at} asks");
}

/// Each part with its verdict, and the rule that it rests on.
fn parts_of(answer: &Value) -> Vec<(Value, Value, Value)> {
    let parts = answer["parts"].as_array().expect("parts");
    let rule = |part: &Value| match &part["rule"] {
        Value::Object(rule) => rule["text"].clone(),
        rule => rule.clone(),
    };
    let parts = parts.iter();
    parts
        .map(|part| (part["part"].clone(), part["verdict"].clone(), rule(part)))
        .collect()
}

/// What the daemon explains of the call that a slot waits with.
fn asked(daemon: &Daemon, slot: &str) -> Value {
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let mut stream = UnixStream::connect(socket).expect("the daemon listens");
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "explain", "params": {"slot": slot}});
    writeln!(stream, "{request}").expect("it is written");
    let mut line = String::new();
    BufReader::new(stream)
        .read_line(&mut line)
        .expect("an answer");
    let answer: Value = serde_json::from_str(&line).expect("JSON");
    assert!(answer["result"].is_object(), "{answer}");
    answer["result"].clone()
}
