//! A daemon that is killed at any moment around the Enter of a message: the message and its answer are in the events once,
//! with the right text, whoever waits for it.

use super::leaving::told;
use crate::support::daemon::Daemon;
use crate::support::processes;
use crate::support::setup::Setup;
use crate::support::until;
use std::time::Duration;

/// Waits until the audit has so many Enter keys, as closely as can be: a moment later the key is pressed.
fn entered(daemon: &Daemon, count: usize) {
    let audit = daemon.logs().join("audit.jsonl");
    let end = std::time::Instant::now() + crate::support::PATIENCE;
    while std::fs::read_to_string(&audit)
        .unwrap_or_default()
        .matches("\"key\":\"Enter\"")
        .count()
        < count
    {
        assert!(std::time::Instant::now() < end, "no Enter");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn enters(daemon: &Daemon) -> usize {
    let audit = daemon.logged("audit.jsonl");
    audit.matches("\"key\":\"Enter\"").count()
}

/// Kills the daemon so many milliseconds after each Enter, once with a sender who waits and once with one who does not.
#[track_caller]
fn each_message_is_answered_once(mut daemon: Daemon, delays: impl Iterator<Item = u64>) {
    daemon.wait_state("coder", "idle");
    daemon.cmd(&["send", "coder", "message before"]).expect(0);
    let mut messages = vec!["message before".to_owned()];
    let mut wrong = Vec::new();
    for (round, delay) in delays.enumerate() {
        let waits = round % 2 == 0;
        let message = format!("message {round} after {delay}");
        let answer = format!("You said: {message}");
        let id = format!("m{round}");
        let before = enters(&daemon);
        let mut line = vec!["send", "coder", &message, "--id", &id];
        if !waits {
            line.push("--no-wait");
        }
        let send = daemon.spawn(&line);
        entered(&daemon, before + 1);
        std::thread::sleep(Duration::from_millis(delay));
        daemon.crash();
        daemon.again();
        let ended = send.end().expect(0);
        if waits {
            assert_eq!(ended.text(), answer, "{delay} ms: {ended}");
        }
        let state = || daemon.json(&["send", "coder", "--id", &id, "--status"]);
        until("the answer", || {
            (state()["state"] == "answered").then_some(())
        });
        messages.push(message);
        let answers: Vec<String> = messages
            .iter()
            .map(|text| format!("You said: {text}"))
            .collect();
        for (kind, wanted) in [("message", &messages), ("answer", &answers)] {
            let told = told(&daemon, kind);
            if told != *wanted {
                wrong.push(format!("{delay} ms, waits {waits}: {kind}: {told:?}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}\n{}", daemon.log("coder"));
    }
}

fn stand_in() -> Daemon {
    let command = [env!("CARGO_BIN_EXE_missiond"), "stand-in"].map(str::to_owned);
    Daemon::start_with(&Setup::new().slot("coder"), &command)
}

#[test]
fn a_kill_around_enter_leaves_one_message_and_one_answer_of_a_stand_in() {
    let close = (0..=120).step_by(8);
    let later = (160..=1000).step_by(120);
    each_message_is_answered_once(stand_in(), close.chain(later));
}

#[test]
fn a_kill_around_enter_leaves_one_message_and_one_answer_of_claude_code() {
    if let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) {
        let close = (0..=100).step_by(10);
        each_message_is_answered_once(daemon, close.chain([200, 400, 800]));
    }
}

/// The program answers while there is no daemon, and ends, or is killed with its shim: the next daemon tells the answer.
#[test]
fn an_answer_that_no_daemon_has_seen_is_told_though_its_program_has_ended() {
    for (is_shim, waits) in [(false, true), (false, false), (true, true), (true, false)] {
        let mut daemon = stand_in();
        daemon.wait_state("coder", "idle");
        daemon.cmd(&["send", "coder", "message before"]).expect(0);
        let before = daemon.status("coder");
        let session = before["session_id"].as_str().expect("a conversation");
        let transcript = daemon.transcript("coder", session);
        let mut line = vec!["send", "coder", "message", "--id", "m1"];
        if !waits {
            line.push("--no-wait");
        }
        let send = daemon.spawn(&line);
        entered(&daemon, 2);
        until("the message to be taken", || {
            let text = std::fs::read_to_string(&transcript).ok()?;
            text.contains("\"content\":\"message\"").then_some(())
        });
        daemon.crash();
        until("the answer", || {
            let text = std::fs::read_to_string(&transcript).ok()?;
            text.contains("You said: message\"").then_some(())
        });
        let pid_of = |key: &str| before[key].as_i64().expect("a pid") as i32;
        processes::kill(pid_of(if is_shim { "shim_pid" } else { "pid" }));
        until("the end of the program", || {
            processes::start_of(pid_of("pid")).is_none().then_some(())
        });
        daemon.again();
        let ended = send.end().expect(0);
        if waits {
            assert_eq!(ended.text(), "You said: message", "{ended}");
        }
        let name = format!("shim {is_shim}, waits {waits}: {}", daemon.log("coder"));
        assert_eq!(
            told(&daemon, "message"),
            ["message before", "message"],
            "{name}"
        );
        let answers = ["You said: message before", "You said: message"];
        assert_eq!(told(&daemon, "answer"), answers, "{name}");
    }
}
