//! Messages with an id: the daemon dies under them, and each is sent once and answered.

use super::words::{asked, gated, submit, times_asked, two_coders};
use crate::support::daemon::Daemon;
use crate::support::until;

#[test]
fn a_send_a_wait_and_an_ask_outlive_the_daemon() {
    let Some(mut daemon) = two_coders() else {
        return;
    };
    for prompt in ["slow", "quick", "task"] {
        gated(&daemon, prompt);
    }
    let slow = daemon.spawn(&["send", "a", "slow"]);
    let named = daemon.spawn(&["send", "b", "quick", "--id", "q1", "--json"]);
    asked(&daemon, "slow");
    asked(&daemon, "quick");
    let idle = daemon.spawn(&["wait", "a", "--for", "idle"]);
    let events = daemon.spawn(&["events", "-f", "a"]);
    until("a snapshot", || {
        (!events.printed().is_empty()).then_some(())
    });
    daemon.crash();
    // One turn ends while there is no daemon, the other goes on under the next one.
    daemon.endpoint.open("quick");
    daemon.again();
    let named = named.end().expect(0).json();
    assert_eq!(named["response"], "quick done", "{named}");
    assert_eq!(named["id"], "q1", "{named}");
    daemon.endpoint.open("slow");
    let answered = slow.end().expect(0);
    assert_eq!(answered.text(), "slow done");
    assert!(answered.stderr.contains("the daemon is back"), "{answered}");
    idle.end().expect(0);

    // Asked again, it has the same answer, and is not sent again.
    let again = daemon.json(&["send", "b", "quick", "--id", "q1"]);
    assert_eq!(again["response"], "quick done", "{again}");
    let other = daemon.cmd(&["send", "b", "other", "--id", "q1"]).expect(4);
    assert!(other.stderr.contains("another message"), "{other}");
    let sent = daemon.json(&["send", "b", "--id", "q1", "--status"]);
    assert_eq!(sent["state"], "answered", "{sent}");
    assert_eq!(sent["response"], "quick done", "{sent}");
    daemon
        .cmd(&["send", "b", "--id", "q2", "--status"])
        .expect(2);

    let ask = daemon.spawn(&["ask", "a", "task"]);
    asked(&daemon, "task");
    daemon.crash();
    daemon.again();
    daemon.endpoint.open("task");
    assert_eq!(ask.end().expect(0).text(), "task done");
    for prompt in ["slow", "quick", "task"] {
        assert_eq!(times_asked(&daemon, prompt), 1, "{prompt}");
    }
}

#[test]
fn a_message_for_a_busy_slot_is_queued_at_once_and_outlives_the_daemon() {
    let Some(mut daemon) = two_coders() else {
        return;
    };
    gated(&daemon, "busy");
    let busy = submit(&daemon, &["a", "busy"]);
    asked(&daemon, "busy");
    let queued = daemon.json(&["send", "a", "later", "--no-wait", "--id", "l1"]);
    assert_eq!(queued["state"], "queued", "{queued}");
    let waits = daemon.json(&["send", "a", "--id", "l1", "--status"]);
    assert_eq!(waits["state"], "queued", "{waits}");
    daemon.crash();
    daemon.again();
    daemon.endpoint.open("busy");
    daemon.cmd(&["task", &busy, "--wait"]).expect(0);
    asked(&daemon, "later");
    let sent = until("its answer", || {
        let sent = daemon.json(&["send", "a", "--id", "l1", "--status"]);
        (sent["state"] == "answered").then_some(sent)
    });
    assert_eq!(sent["response"], "You said: later", "{sent}");
    is_typed_for_a_person(&daemon, "cli send");
    daemon.wait_state("a", "idle");
    let taken = daemon.json(&["send", "a", "now", "--no-wait"]);
    assert_eq!(taken["state"], "taken", "{taken}");
    asked(&daemon, "now");
    for prompt in ["busy", "later", "now"] {
        assert_eq!(times_asked(&daemon, prompt), 1, "{prompt}");
    }
}

/// A command of the shell is not found as a message is; what it printed stands in the conversation all the same.
#[test]
fn a_command_outlives_the_daemon() {
    let Some(mut daemon) = two_coders() else {
        return;
    };
    let go = daemon.cwd("a").join("go");
    let line = format!(
        "!until [ -e {} ]; do sleep 0.1; done; echo gone",
        go.display()
    );
    let command = ["send", "a", "--shell", "--id", "c1", "--json", &line];
    let waits = daemon.spawn(&command);
    until("the command to be entered", || {
        let known = daemon.cmd(&["send", "a", "--id", "c1", "--status"]);
        known.text().contains("sent").then_some(())
    });
    daemon.crash();
    daemon.again();
    std::fs::write(&go, "").expect("a file");
    let answered = waits.end().expect(0).json();
    let response = answered["response"].as_str().expect("a response");
    assert!(response.starts_with("gone"), "{answered}");
    assert_eq!(daemon.cmd(&command).expect(0).json(), answered);
    // The same as with nothing in between.
    let undisturbed = daemon.json(&["send", "a", "--shell", &line]);
    assert_eq!(undisturbed["response"], response, "{undisturbed}");
}

/// The last key in the audit was pressed for a person of this user, who used this.
fn is_typed_for_a_person(daemon: &Daemon, via: &str) {
    let audit = daemon.logged("audit.jsonl");
    let mut entries = audit
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let is_key = |entry: &serde_json::Value| entry["what"] == "key" && entry["slot"] == "a";
    let last = entries.rfind(is_key).expect("a key");
    assert_eq!(
        (&last["by"], &last["via"]),
        (&"person".into(), &via.into()),
        "{last}"
    );
    assert!(last["uid"].is_u64() && last["pid"].is_u64(), "{last}");
}
