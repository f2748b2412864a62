//! `init` writes rules by the files of a project: with them, a coder can do a day's work there. `stacks.txt` has the days.

use super::cli::User;
use serde_json::{Value, json};
use std::fs;

const DAYS: &str = include_str!("stacks.txt");

/// The files that identify a project, each with the commands of a day.
fn days() -> Vec<(&'static str, Vec<&'static str>)> {
    let mut days: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in DAYS.lines().filter(|line| !line.starts_with('#')) {
        match (line.strip_prefix("= "), days.last_mut()) {
            (Some(file), _) => days.push((file, Vec::new())),
            (None, Some((_, commands))) => commands.push(line),
            (None, None) => panic!("{line}: below no file"),
        }
    }
    days
}

/// The verdicts of the coder's policy that `init` writes for a project with this file, or with none.
fn verdicts(file: Option<&str>, commands: &[&str]) -> Vec<(String, Value)> {
    let user = User::new();
    if let Some(file) = file {
        fs::write(user.path("project").join(file), "").expect("a file");
    }
    let init = ["init", "../fleet", "--cwd", ".", "--roles", "coder"];
    user.missiond(&init).assert().success();
    let call = |command: &&str| json!({"tool": "Bash", "input": {"command": command}}).to_string();
    let calls: Vec<String> = commands.iter().map(call).collect();
    let policy = [
        "policy",
        "explain",
        "--policy",
        "../fleet/policies/coder.toml",
        "-",
    ];
    let output = user
        .missiond(&policy)
        .write_stdin(calls.join("\n"))
        .output()
        .expect("it ran");
    let said = String::from_utf8(output.stdout).expect("text");
    let answers = said
        .lines()
        .map(|line| serde_json::from_str(line).expect("an answer"));
    let commands = commands.iter().map(|command| (*command).to_owned());
    commands.zip(answers).collect()
}

#[test]
fn a_coder_can_do_a_days_work_in_each_kind_of_project() {
    let days = days();
    assert_eq!(days.len(), 10, "a kind of project has no day");
    for (file, commands) in days {
        let verdicts = verdicts(Some(file), &commands);
        assert_eq!(verdicts.len(), commands.len(), "{file}");
        for (command, verdict) in verdicts {
            assert_eq!(verdict["verdict"], "allow", "{file}: {command}: {verdict}");
        }
    }
}

/// What makes the difference are the files: without one, the rules for its kind are not written.
#[test]
fn no_rules_are_written_for_a_kind_that_is_not_there() {
    let foreign = [
        "npm ci",
        "pytest -q",
        "go build ./...",
        "mvn -q test",
        "make test",
        "docker compose up -d db",
    ];
    for (command, verdict) in verdicts(Some("Cargo.toml"), &foreign) {
        assert_eq!(verdict["verdict"], "ask", "{command}: {verdict}");
    }
    for (command, verdict) in verdicts(None, &["cargo add serde", "make test"]) {
        assert_eq!(verdict["verdict"], "ask", "{command}: {verdict}");
    }
}
