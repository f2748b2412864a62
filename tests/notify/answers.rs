//! Answers by the buttons of a message: what a code can do, and what nobody can do without one.

use super::ntfy::Ntfy;
use super::{ask, coder};
use crate::support::daemon::Daemon;
use crate::support::until;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Anybody may do anything: a server without access control.
fn open(_: Option<&str>, _: &str, _: bool) -> bool {
    true
}

/// The token may write to the topic and read the replies; everybody may write replies.
fn guarded(token: Option<&str>, topic: &str, writes: bool) -> bool {
    let own = [("topic", true), ("replies", false)];
    token == Some("tk_daemon") && own.contains(&(topic, writes))
        || (topic, writes) == ("replies", true)
}

fn settings(ntfy: &Ntfy, more: &str) -> String {
    let url = ntfy.server.url("/topic");
    format!(
        "[notify]\nnotify_after = \"10ms\"\nlink = \"https://box.example.org/\"\n\
         [notify.ntfy]\nurl = \"{url}\"\ntoken = \"tk_daemon\"\nreply = \"replies\"\n{more}"
    )
}

/// A daemon that hears its reply topic.
fn start(ntfy: &Ntfy, more: &str) -> Daemon {
    let daemon = coder(&settings(ntfy, more));
    ntfy.server
        .wait_for("a listener", |one| one.path.starts_with("/replies/json"));
    daemon
}

/// The button of the last message, with this label.
fn button(message: &Value, label: &str) -> Option<Value> {
    let actions = message["actions"].as_array().expect("buttons");
    actions.iter().find(|one| one["label"] == label).cloned()
}

/// The message about the dialog that is up, once it has come.
fn asked(ntfy: &Ntfy, nth: usize) -> Value {
    until("the message", || {
        let waiting = ntfy.messages("topic").into_iter();
        let mut waiting = waiting.filter(|one| one["actions"].is_array());
        waiting.nth(nth)
    })
}

fn audited(daemon: &Daemon, fits: impl Fn(&Value) -> bool) -> Vec<Value> {
    let audit = daemon.logged("audit.jsonl");
    let entries = audit
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    entries.filter(fits).collect()
}

fn is_alarm(entry: &Value) -> bool {
    entry["what"] == "alarm"
}

/// A no by its button, in the audit; and the code again, after which the next dialog waits as before.
#[test]
fn a_no_is_given_once_and_its_code_does_nothing_to_another_ask() {
    let ntfy = Ntfy::start(open);
    let daemon = start(&ntfy, "");
    ask(&daemon);
    let message = asked(&ntfy, 0);
    assert_eq!(button(&message, "Allow once"), None, "{message}");
    assert!(button(&message, "Open").is_some(), "{message}");
    let deny = button(&message, "Deny").expect("a button");
    ntfy.tap(&deny);
    daemon.wait_state("coder", "idle");
    let end = until("the end", || {
        let all = ntfy.messages("topic").into_iter();
        let mut ends = all.filter(|one| one["sequence_id"] == message["sequence_id"]);
        ends.nth(1)
    });
    let said = end["message"].as_str().expect("a text");
    assert!(said.starts_with("answered: no, by ntfy"), "{end}");
    let by_ntfy = audited(&daemon, |one| {
        one["what"] == "verdict" && one["via"] == "ntfy"
    });
    assert_eq!(by_ntfy.len(), 1, "{by_ntfy:?}");
    assert_eq!(
        (&by_ntfy[0]["verdict"], &by_ntfy[0]["by"]),
        (&"deny".into(), &"person".into())
    );

    let dialog = ask(&daemon);
    asked(&ntfy, 1);
    ntfy.tap(&deny);
    let alarms = until("an alarm", || {
        Some(audited(&daemon, is_alarm)).filter(|all| !all.is_empty())
    });
    let why = alarms[0]["why"].as_str().expect("a reason");
    assert!(why.contains("a code that was used before"), "{why}");
    assert_eq!(daemon.status("coder")["dialog"]["id"], dialog["id"]);
    // The dialog can still be answered, by its own code.
    ntfy.tap(&button(&asked(&ntfy, 1), "Deny").expect("a button"));
    daemon.wait_state("coder", "idle");
}

/// What a stranger posts to the reply topic has no effect, whatever words it is.
#[test]
fn guesses_raise_an_alarm_and_press_nothing() {
    let ntfy = Ntfy::start(open);
    let daemon = start(&ntfy, "");
    let dialog = ask(&daemon);
    let message = asked(&ntfy, 0);
    let replies = ntfy.server.url("/replies");
    for guess in [
        "yes",
        "no",
        "00000000000000000000",
        "coder yes\nconfirm",
        &"x".repeat(4000),
    ] {
        ntfy.post(&replies, guess);
    }
    until("an alarm", || {
        (!audited(&daemon, is_alarm).is_empty()).then_some(())
    });
    assert_eq!(daemon.status("coder")["dialog"]["id"], dialog["id"]);
    // All of them were heard before this one, which counts.
    ntfy.tap(&button(&message, "Deny").expect("a button"));
    daemon.wait_state("coder", "idle");
    assert_eq!(audited(&daemon, is_alarm).len(), 1, "one alarm for a flood");
    let pressed = audited(&daemon, |one| {
        one["what"] == "verdict" && one["by"] == "person"
    });
    assert_eq!(pressed.len(), 1, "{pressed:?}");
}

#[test]
fn a_yes_is_offered_where_nobody_else_reads_the_topic_and_runs_the_call_once() {
    let ntfy = Ntfy::start(guarded);
    let daemon = start(&ntfy, "answers = \"allow\"\n");
    let script = daemon.cwd("coder").join("deploy.sh");
    fs::write(&script, "#!/bin/sh\necho deployed >> deployed\n").expect("a file");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("a mode");
    ask(&daemon);
    let message = asked(&ntfy, 0);
    let allow = button(&message, "Allow once").unwrap_or_else(|| panic!("{message}"));
    ntfy.tap(&allow);
    ntfy.tap(&allow);
    daemon.wait_state("coder", "idle");
    let ran = fs::read_to_string(daemon.cwd("coder").join("deployed")).expect("it ran");
    assert_eq!(ran, "deployed\n");
    let by_ntfy = audited(&daemon, |one| {
        one["what"] == "verdict" && one["via"] == "ntfy"
    });
    assert_eq!(by_ntfy.len(), 1, "{by_ntfy:?}");
    until("the alarm of the second tap", || {
        (audited(&daemon, is_alarm).len() == 1).then_some(())
    });
}

/// Whoever reads slots.toml could read the code of a yes there: at worst a stranger says no.
#[test]
fn a_yes_is_not_offered_where_the_own_token_reads_the_topic() {
    let ntfy = Ntfy::start(|token, topic, writes| {
        guarded(token, topic, writes) || (token, topic) == (Some("tk_daemon"), "topic")
    });
    let daemon = start(&ntfy, "answers = \"allow\"\n");
    ask(&daemon);
    let message = asked(&ntfy, 0);
    assert_eq!(button(&message, "Allow once"), None, "{message}");
    assert!(button(&message, "Deny").is_some(), "{message}");
    until("the reason in the status", || {
        let status = daemon.cmd(&["status"]).expect(0).stdout;
        status
            .contains("`answers = \"allow\"` is not in force")
            .then_some(())
    });
}

#[test]
fn a_late_tap_gets_the_story_and_presses_nothing() {
    let ntfy = Ntfy::start(open);
    let daemon = start(&ntfy, "");
    ask(&daemon);
    let deny = button(&asked(&ntfy, 0), "Deny").expect("a button");
    daemon.cmd(&["confirm", "coder", "yes"]).expect(0);
    daemon.wait_state("coder", "idle");
    until("the end", || {
        let all = ntfy.messages("topic");
        all.iter().any(|one| one["actions"].is_null()).then_some(())
    });
    ntfy.tap(&deny);
    let note = until("the story", || {
        let all = ntfy.messages("topic").into_iter();
        let title = "coder: your answer was not given";
        all.rev().find(|one| one["title"] == title)
    });
    assert_eq!(note["message"], "answered: yes, by cli confirm");
    assert!(audited(&daemon, is_alarm).is_empty());
    let by_ntfy = audited(&daemon, |one| one["via"] == "ntfy");
    assert!(by_ntfy.is_empty(), "{by_ntfy:?}");
}
