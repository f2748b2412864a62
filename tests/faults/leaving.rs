//! A daemon that ends and leaves its slots (`down --keep`): what waits goes on with the next daemon, as after a kill.

use crate::support::daemon::Daemon;
use crate::support::run::Running;
use crate::support::setup::Setup;
use crate::support::until;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A message whose turn takes so long, and its answer.
pub fn scripted(seconds: f64, answer: &str) -> String {
    format!("JSON:{}", json!([{"hang": seconds}, {"text": answer}]))
}

/// The texts of the events of this kind.
pub fn told(daemon: &Daemon, kind: &str) -> Vec<String> {
    let events = daemon.cmd(&["events", "--after", "0", "--json"]).expect(0);
    let events = events.json_lines().into_iter();
    let events = events.filter(|event| event["event"] == kind);
    let text = |event: Value| event["text"].as_str().unwrap_or_default().to_owned();
    events.map(text).collect()
}

/// Each of these answers is told once, and nothing else.
#[track_caller]
pub fn told_once(daemon: &Daemon, answers: &[&str]) {
    let mut told = told(daemon, "answer");
    told.sort();
    let mut wanted = answers.to_vec();
    wanted.sort_unstable();
    assert_eq!(told, wanted, "{}", daemon.log("coder"));
}

/// The ways to wait, while a turn runs: its own sender, one that is queued, one that does not wait, a task, and those that
/// wait for the slot.
fn what_waits_goes_on_with_the_next_daemon(mut daemon: Daemon) {
    daemon.wait_state("coder", "idle");
    let mut waiting: BTreeMap<&str, Running> = BTreeMap::new();
    let running = scripted(4.0, "the first");
    let send = daemon.spawn(&["send", "coder", &running, "--id", "m1"]);
    waiting.insert("the first", send);
    daemon.wait_state("coder", "thinking,responding");
    let queued = scripted(0.2, "the second");
    let send = daemon.spawn(&["send", "coder", &queued, "--id", "m2"]);
    waiting.insert("the second", send);
    until("the message to be queued", || {
        (daemon.status("coder")["queued"] == 1).then_some(())
    });
    let left = scripted(0.2, "the third");
    let sent = ["send", "coder", &left, "--no-wait", "--id", "m3"];
    daemon.cmd(&sent).expect(0);
    let task = scripted(0.2, "the fourth");
    waiting.insert("the fourth", daemon.spawn(&["ask", "coder", &task]));
    until("the task", || {
        let tasks = daemon.json(&["tasks"]);
        tasks
            .as_array()
            .is_some_and(|tasks| tasks.len() == 1)
            .then_some(())
    });
    let quiet = daemon.spawn(&["wait", "coder", "--quiet", "600s", "--timeout", "2s"]);
    let idle = daemon.spawn(&["wait", "coder", "--for", "idle", "--timeout", "50s"]);

    daemon.cmd(&["down", "--keep"]).expect(0);
    daemon.ended();
    daemon.again();
    for (answer, running) in waiting {
        let ended = running.end().expect(0);
        assert_eq!(ended.text(), answer, "{ended}");
    }
    idle.end().expect(0);
    quiet.end().expect(124);
    until("the message of the sender who did not wait", || {
        let told = daemon.json(&["send", "coder", "--id", "m3", "--status"]);
        (told["state"] == "answered").then_some(())
    });
    told_once(
        &daemon,
        &["the first", "the second", "the third", "the fourth"],
    );
    let messages = told(&daemon, "message");
    assert_eq!(messages.len(), 4, "{messages:?}");
    for (id, answer) in [
        ("m1", "the first"),
        ("m2", "the second"),
        ("m3", "the third"),
    ] {
        let told = daemon.json(&["send", "coder", "--id", id, "--status"]);
        assert_eq!(told["response"], answer, "{told}");
    }
}

#[test]
fn what_waits_goes_on_with_the_next_daemon_with_a_stand_in() {
    let command = [env!("CARGO_BIN_EXE_missiond"), "stand-in"].map(str::to_owned);
    let daemon = Daemon::start_with(&Setup::new().slot("coder"), &command);
    what_waits_goes_on_with_the_next_daemon(daemon);
}

#[test]
fn what_waits_goes_on_with_the_next_daemon_with_claude_code() {
    if let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) {
        what_waits_goes_on_with_the_next_daemon(daemon);
    }
}

/// Messages of senders who do not wait keep their order, however often the daemon is killed.
#[test]
fn queued_messages_keep_their_order_over_kills() {
    const MESSAGES: usize = 12;
    let command = [env!("CARGO_BIN_EXE_missiond"), "stand-in"].map(str::to_owned);
    let mut daemon = Daemon::start_with(&Setup::new().slot("coder"), &command);
    daemon.wait_state("coder", "idle");
    let first = scripted(1.0, "00");
    daemon
        .cmd(&["send", "coder", &first, "--no-wait"])
        .expect(0);
    for number in 1..MESSAGES {
        let text = scripted(0.0, &format!("{number:02}"));
        daemon.cmd(&["send", "coder", &text, "--no-wait"]).expect(0);
    }
    for answered in [0, 1, 4] {
        until("some answers", || {
            (told(&daemon, "answer").len() >= answered).then_some(())
        });
        daemon.crash();
        daemon.again();
    }
    let answers = until("all answers", || {
        let answers = told(&daemon, "answer");
        (answers.len() >= MESSAGES).then_some(answers)
    });
    let in_order: Vec<String> = (0..MESSAGES).map(|number| format!("{number:02}")).collect();
    assert_eq!(answers, in_order);
}

/// A person's answer to a dialog is under way: its record stays as a kill would leave it.
#[test]
fn an_end_in_order_says_what_it_is() {
    let command = [env!("CARGO_BIN_EXE_missiond"), "stand-in"].map(str::to_owned);
    let mut daemon = Daemon::start_with(&Setup::new().slot("coder"), &command);
    daemon.wait_state("coder", "idle");
    let wait = daemon.spawn(&["wait", "coder", "--for", "confirming"]);
    let running = scripted(20.0, "never");
    let send = daemon.spawn(&["send", "coder", &running, "--id", "m1"]);
    daemon.wait_state("coder", "thinking,responding");
    daemon.cmd(&["down", "--yes"]).expect(0);
    daemon.ended();
    for ended in [wait.end(), send.end()] {
        let ended = ended.expect(1);
        assert!(!ended.stderr.contains("has been removed"), "{ended}");
    }
}
