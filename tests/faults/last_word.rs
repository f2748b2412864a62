//! The last entry of the audit about something is true, whatever came between.

use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use missiond::lab::rehearsal::Step;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::path::PathBuf;

fn entries(daemon: &Daemon) -> Vec<Value> {
    let audit = daemon.logged("audit.jsonl");
    let parsed = audit.lines().map(serde_json::from_str);
    parsed.collect::<Result<_, _>>().expect("JSON")
}

/// The entries about tool calls.
fn verdicts(daemon: &Daemon) -> Vec<Value> {
    let mut entries = entries(daemon);
    entries.retain(|entry| entry["tool"] == "Bash");
    entries
}

/// Every entry by a person says who it was, and what they used.
#[track_caller]
fn persons_are_named(daemon: &Daemon) {
    let uid = rustix::process::getuid().as_raw();
    for entry in entries(daemon) {
        let why = entry["why"].to_string();
        if entry["by"] == "person" {
            assert_eq!(entry["uid"], uid, "{entry}");
            assert!(entry["pid"].is_i64() && entry["via"].is_string(), "{entry}");
        } else {
            assert!(!why.contains("a person"), "{entry}");
        }
    }
}

fn start() -> Option<Daemon> {
    let daemon = Daemon::start(&Setup::new().slot("coder"))?;
    daemon.wait_state("coder", "idle");
    Some(daemon)
}

/// Claude Code asks whether it may make the file that comes back.
fn asked(daemon: &Daemon, name: &str) -> PathBuf {
    let made = daemon.cwd("coder").join(name);
    let input = json!({"command": format!("touch {}", made.display())});
    let steps = vec![Step::tool("Bash", input), Step::text("It is made.")];
    daemon.endpoint.on(name, steps);
    daemon.cmd(&["send", "coder", name]).expect(5);
    made
}

/// Stops the program, and lets it go on when it is dropped.
struct Stopped(Pid);

impl Stopped {
    fn stop(daemon: &Daemon) -> Stopped {
        let pid = daemon.status("coder")["pid"].as_i64().expect("a pid");
        let pid = Pid::from_raw(pid as i32).expect("a pid");
        kill_process(pid, Signal::STOP).expect("it runs");
        Stopped(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// The program is stopped while a dialog stands: the key is pressed, and taken when the program goes on.
#[test]
fn an_answer_that_is_taken_late_is_the_last_word() {
    let Some(daemon) = start() else { return };
    for (answer, decision) in [("yes", "allow"), ("no", "deny")] {
        let made = asked(&daemon, &format!("late-{answer}"));
        let stopped = Stopped::stop(&daemon);
        let late = daemon.cmd(&["confirm", "coder", answer]).expect(1);
        assert!(late.stderr.contains("still up"), "{late}");
        let so_far = verdicts(&daemon).pop().expect("an entry");
        assert_eq!(so_far["verdict"], "ask", "{so_far}");
        assert!(so_far["why"].to_string().contains("not answered so far"));
        drop(stopped);
        daemon.wait_state("coder", "idle");
        assert_eq!(made.exists(), answer == "yes");
        let last = until("the last word", || {
            verdicts(&daemon)
                .pop()
                .filter(|last| last["verdict"] != "ask")
        });
        assert_eq!(last["verdict"], decision, "{last}");
        assert!(last["why"].to_string().contains("taken late"), "{last}");
        assert_eq!(last["by"], "person", "{last}");
    }
    persons_are_named(&daemon);
    daemon.cmd(&["audit", "verify"]).expect(0);
}

/// Two keys that say different things wait for a program that is stopped. What ran was allowed. If the second key cuts the call
/// off while it runs, Claude Code tells of no result, and the audit says that it is not known.
#[test]
fn of_two_answers_the_one_that_was_taken_is_the_last_word() {
    let Some(daemon) = start() else { return };
    let made = asked(&daemon, "twice");
    let stopped = Stopped::stop(&daemon);
    let confirm = daemon.spawn(&["confirm", "coder", "yes"]);
    until("the key", || {
        let pressed = |entry: &Value| entry["what"] == "key" && entry["key"] == "1";
        entries(&daemon).iter().any(pressed).then_some(())
    });
    let interrupt = daemon.spawn(&["interrupt", "coder"]);
    until("the interrupt", || {
        let last = verdicts(&daemon).pop()?;
        (last["verdict"] == "deny").then_some(())
    });
    drop(stopped);
    assert_ne!(confirm.end().code, 0);
    interrupt.end();
    daemon.wait_state("coder", "idle");
    let last = until("the last word", || {
        let last = verdicts(&daemon).pop()?;
        let screen = daemon.cmd(&["screen", "coder"]).expect(0).stdout;
        let is_cut_off = screen.contains("No result recorded for 1 call");
        (last["verdict"] != "ask" || is_cut_off).then_some(last)
    });
    match last["verdict"].as_str() {
        Some("allow") => assert!(made.exists(), "{last}"),
        Some("deny") => assert!(!made.exists(), "{last}"),
        _ => assert!(
            last["why"].to_string().contains("nobody knows how"),
            "{last}"
        ),
    }
    persons_are_named(&daemon);
}

/// A message is typed, and a person comes before its Enter.
#[test]
fn a_message_that_was_typed_and_not_entered_is_told() {
    let Some(daemon) = start() else { return };
    let stopped = Stopped::stop(&daemon);
    // A program that is stopped does not show the text, so no Enter follows.
    let sent = daemon.cmd(&["send", "coder", "never seen"]);
    drop(stopped);
    assert_ne!(sent.code, 0, "{sent}");
    let entries = entries(&daemon);
    let [paste, not_entered] = &entries[..] else {
        panic!("{entries:?}");
    };
    assert_eq!(
        (&paste["what"], &paste["key"]),
        (&json!("key"), &json!("paste"))
    );
    assert_eq!(not_entered["what"], "no_effect", "{not_entered}");
    assert_eq!(not_entered["key"], "Enter", "{not_entered}");
    let shown = daemon
        .cmd(&["audit", "grep", "--what", "no_effect"])
        .expect(0);
    assert!(shown.stdout.contains("no_effect Enter"), "{shown}");
    for entry in [paste, not_entered] {
        assert_eq!(entry["by"], "person", "{entry}");
    }
    persons_are_named(&daemon);
}

/// What a person presses outside of a dialog has their name too.
#[test]
fn an_interrupt_of_a_person_has_their_name() {
    let Some(daemon) = start() else { return };
    let steps = vec![Step::gate("later"), Step::text("It is done.")];
    daemon.endpoint.on("take your time", steps);
    let send = daemon.spawn(&["send", "coder", "take your time"]);
    daemon.wait_state("coder", "thinking,responding");
    daemon.cmd(&["interrupt", "coder"]).expect(0);
    send.end();
    let entries = entries(&daemon);
    let esc = entries.iter().find(|entry| entry["key"] == "Esc");
    let esc = esc.expect("the key is in the audit");
    assert_eq!(
        (&esc["by"], &esc["via"]),
        (&json!("person"), &json!("cli interrupt"))
    );
    persons_are_named(&daemon);
}
