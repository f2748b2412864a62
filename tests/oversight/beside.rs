//! The real Claude Code with missiond's gate: what it asks about by itself, it still asks about.

use crate::support::claude_code;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{PINNED, until};
use missiond::lab::rehearsal::Step;
use serde_json::json;
use std::fs;
use std::path::Path;

/// The list of calls, and what versions of Claude Code decided on them by themselves.
const LIST: &str = "tests/policy/live/asked.txt";
const MEASURED: &str = "tests/policy/beside.txt";

/// The calls by which the fault was found, and one that Claude Code shows as an edit; they come first.
const FIRST: [&str; 3] = [
    "find . -name nothing -rm",
    "cat ~+/docs/a.md",
    "sed -i 's/a/b/' docs/*.md",
];

/// 2.1.160 shows this call as an edit of a file with the variable's name: missiond does not take it for the call, and says so.
const EDIT_OF_A_VARIABLE: (&str, &str) = (
    "2.1.160",
    "for f in docs/a.md; do sed -i 's/a/b/' \"$f\"; done",
);

/// A call takes about a second.
const SOME: usize = 5;

#[test]
fn what_claude_code_asks_about_by_itself_is_asked_about() {
    calls_are_asked_about(PINNED, SOME);
}

#[test]
fn what_version_2_1_160_asks_about_is_asked_about() {
    calls_are_asked_about("2.1.160", SOME);
}

#[test]
fn what_version_2_1_250_asks_about_is_asked_about() {
    calls_are_asked_about("2.1.250", SOME);
}

#[test]
#[ignore = "some minutes: every call of the list, on three versions"]
fn every_call_that_claude_code_asks_about_is_asked_about() {
    for version in ["2.1.160", "2.1.250", PINNED] {
        calls_are_asked_about(version, usize::MAX);
    }
}

fn calls_are_asked_about(version: &str, most: usize) {
    let Some(claude) = claude_code::claude(version) else {
        return;
    };
    let asked = asked_by(version);
    assert!(
        asked.len() >= 30,
        "{version} asks about {} calls",
        asked.len()
    );
    let setup = Setup::new().slot("coder").policy("coder", &policy());
    let daemon = Daemon::start_with(&setup, &claude);
    daemon.wait_state("coder", "idle");
    for directory in ["docs", "out"] {
        fs::create_dir_all(daemon.cwd("coder").join(directory)).expect("a directory");
    }
    fs::write(daemon.cwd("coder").join("docs/a.md"), "a\n").expect("a file");
    for (number, command) in some_of(&asked, most).into_iter().enumerate() {
        is_asked_about(&daemon, version, command, number);
    }
    rules_of_both_let_it_run(&daemon);
}

/// Those that come first, and others from all over the list.
fn some_of(asked: &[String], most: usize) -> Vec<&String> {
    let (mut some, others): (Vec<&String>, Vec<&String>) = asked
        .iter()
        .partition(|call| FIRST.contains(&call.as_str()));
    let step = others.len().div_ceil(most.min(others.len()));
    some.extend(others.into_iter().step_by(step));
    some
}

fn is_asked_about(daemon: &Daemon, version: &str, command: &str, number: usize) {
    let words = format!("call number {number}");
    let call = Step::tool(
        "Bash",
        json!({ "command": command, "description": "a call" }),
    );
    daemon
        .endpoint
        .on(&words, vec![call, Step::text("It ran.")]);
    let answer = daemon.cmd(&["send", "coder", &words]);
    assert_eq!(answer.code, 5, "{command} ran without a person: {answer}");
    let waiting = daemon.json(&["pending"]);
    let dialog = &waiting[0]["dialog"];
    match (version, command) == EDIT_OF_A_VARIABLE {
        true => {
            let text = dialog["text"].as_str().unwrap_or_default();
            assert_eq!(dialog["tool"], "Edit", "{waiting}");
            assert!(text.contains("make this edit to $f?"), "{waiting}");
            assert!(waiting[0]["doubtful"].is_string(), "{waiting}");
        }
        false => assert_eq!(dialog["input"]["command"], command, "{waiting}"),
    }
    daemon.cmd(&["confirm", "coder", "no"]).expect(0);
    daemon.wait_state("coder", "idle");
}

/// The rules that Claude Code has got do allow something: the dialogs above are about the calls, not about the rules.
fn rules_of_both_let_it_run(daemon: &Daemon) {
    let call = Step::tool(
        "Bash",
        json!({"command": "mkdir docs/made", "description": "a call"}),
    );
    daemon
        .endpoint
        .on("make it", vec![call, Step::text("It ran.")]);
    let answer = daemon.cmd(&["send", "coder", "make it"]).expect(0);
    assert_eq!(answer.text(), "It ran.");
    let made = daemon.cwd("coder").join("docs/made");
    until("the directory", || Path::new(&made).is_dir().then_some(()));
}

fn policy() -> String {
    let list = read(LIST);
    let (head, _) = list.split_once("\n\n").expect("rules, then commands");
    let rules: Vec<&str> = head
        .lines()
        .filter_map(|line| line.strip_prefix("allow "))
        .collect();
    format!("allow = {rules:?}\n")
}

/// The calls of the list that a version asks about without missiond.
fn asked_by(version: &str) -> Vec<String> {
    let measured = read(MEASURED);
    let mut rows = measured.lines().filter(|line| !line.starts_with('#'));
    let versions = rows.next().expect("the versions");
    let mut versions = versions.split(['\t', ' ']).skip(1);
    let at = versions
        .position(|known| known == version)
        .expect("a measured version");
    let asked = |line: &str| {
        let mut fields = line.splitn(4, '\t');
        let (list, words) = (fields.next()?, fields.next()?);
        let word = words.split(' ').nth(at)?;
        let command = fields.nth(1)?;
        (list == "live/asked" && word == "ask").then(|| command.to_owned())
    };
    rows.filter_map(asked).collect()
}

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    fs::read_to_string(path).expect("a file of the tests")
}
