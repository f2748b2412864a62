//! Requests with an id, and a daemon that is killed in the middle of them: done once, with the same answer.

use super::races::{Held, keys_in_audit};
use super::survival::{at_a_dialog, every_key_is_audited, value};
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use missiond::lab::rehearsal::Step;
use serde_json::{Value, json};
use std::fs;

/// What people have decided, by the audit.
fn verdicts(daemon: &Daemon) -> Vec<Value> {
    let audit = daemon.logged("audit.jsonl");
    let entries = audit.lines().map(value);
    let verdicts = entries.filter(|entry| entry["by"] == "person" && !entry["verdict"].is_null());
    verdicts.collect()
}

/// The daemon is killed behind the key that decides, before anybody is told: the next one presses nothing.
#[test]
fn an_answer_is_given_once_though_the_daemon_is_killed_behind_its_key() {
    let Some(mut daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let pipe = daemon.cwd("coder").join("pipe");
    let command = format!("mkfifo {}", pipe.display());
    let steps = vec![
        Step::tool("Bash", json!({ "command": command })),
        Step::text("It is made."),
    ];
    daemon.endpoint.on("make a pipe", steps);
    daemon.cmd(&["send", "coder", "make a pipe"]).expect(5);

    let mut held = Held::restart(&mut daemon, "pressed");
    let dialog = daemon.wait_dialog("coder");
    let keys = keys_in_audit(&daemon);
    let always = ["confirm", "coder", "always", "--id", "y1", "--json"];
    let confirm = daemon.spawn(&always);
    held.arrives();
    daemon.crash();
    daemon.again();
    let first = confirm.end().expect(0).json();
    assert_eq!(first["dialog"], dialog["id"], "{first}");
    assert_eq!(first["chosen"], "Yes", "{first}");
    assert_eq!(first["id"], "y1", "{first}");
    assert_eq!(first["rule"], format!("Bash({command})"), "{first}");
    daemon.wait_state("coder", "idle");
    assert!(pipe.exists());

    assert_eq!(daemon.cmd(&always).expect(0).json(), first);
    daemon.crash();
    daemon.again();
    assert_eq!(daemon.cmd(&always).expect(0).json(), first);
    let other = daemon.cmd(&["confirm", "coder", "no", "--id", "y1"]);
    let other = other.expect(4);
    assert!(other.stderr.contains("given to another answer"), "{other}");
    assert_eq!(verdicts(&daemon).len(), 1, "{:?}", verdicts(&daemon));
    assert_eq!(keys_in_audit(&daemon), keys + 1);
    every_key_is_audited(&daemon, &["coder"]);
}

/// The daemon is killed before the key: the client that waits gives its answer to the next one, for the same dialog.
#[test]
fn an_answer_is_given_to_the_next_daemon_if_no_key_was_pressed() {
    let Some(mut daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    let made = at_a_dialog(&daemon);
    let mut held = Held::restart(&mut daemon, "decided");
    let dialog = daemon.wait_dialog("coder");
    let confirm = daemon.spawn(&["confirm", "coder", "yes", "--json"]);
    held.arrives();
    daemon.crash();
    daemon.again();
    let given = confirm.end().expect(0).json();
    assert_eq!(given["dialog"], dialog["id"], "{given}");
    daemon.wait_state("coder", "idle");
    assert_eq!(fs::read_to_string(&made).expect("the tool ran"), "once\n");

    // A dialog that came later gets no answer that was meant for this one.
    let made = at_a_dialog(&daemon);
    let id = given["id"].as_str().expect("an id");
    let again = daemon.json(&["confirm", "coder", "yes", "--id", id]);
    assert_eq!(again, given);
    assert_eq!(fs::read_to_string(&made).expect("as it was"), "once\n");
    daemon.cmd(&["confirm", "coder", "no"]).expect(0);
}

/// The daemon is killed behind the Enter of a message, before it has seen that Claude Code took it: the next daemon finds the
/// answer in the conversation, and tells of the message in the events, once.
#[test]
fn a_message_is_in_the_events_once_though_the_daemon_is_killed_behind_its_enter() {
    let Some(mut daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let mut held = Held::restart(&mut daemon, "pressed");
    let send = daemon.spawn(&["send", "coder", "say something", "--id", "m1", "--json"]);
    // The text, then Enter.
    held.arrives();
    held.passes();
    held.arrives();
    daemon.crash();
    daemon.again();
    let answer = send.end().expect(0).json();
    assert_eq!(answer["state"], "answered", "{answer}");
    daemon.crash();
    daemon.again();
    let again = ["send", "coder", "say something", "--id", "m1", "--json"];
    assert_eq!(daemon.cmd(&again).expect(0).json(), answer);
    let events = daemon.cmd(&["events", "--after", "0", "--json"]).expect(0);
    let events = events.json_lines();
    let told = events.iter().filter(|event| event["event"] == "message");
    assert_eq!(told.count(), 1, "{events:?}");
}
