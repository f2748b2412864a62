//! Starts, interrupts, deaths and restarts of slots.

use super::words::prompts;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{PATIENCE, processes, script, until};
use missiond::lab::rehearsal::Step;
use serde_json::Value;

#[test]
fn two_slots_work_at_once_and_outlive_interrupts_and_kills() {
    let setup = Setup::new().slot("coder").slot("tester");
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    daemon.wait_state("tester", "idle");
    both_at_once(&daemon);
    interrupted(&daemon);
    an_api_error_is_told(&daemon);
    killed_and_resumed(&daemon);
    stopped_and_started(&daemon);
}

fn both_at_once(daemon: &Daemon) {
    for slot in ["coder", "tester"] {
        let steps = vec![Step::gate("both"), Step::text(format!("{slot} is done"))];
        daemon.endpoint.on(&format!("work, {slot}"), steps);
    }
    let sends = ["coder", "tester"].map(|slot| {
        (
            slot,
            daemon.spawn(&["send", slot, &format!("work, {slot}")]),
        )
    });
    for slot in ["coder", "tester"] {
        daemon.wait_state(slot, "thinking");
    }
    daemon.endpoint.open("both");
    for (slot, send) in sends {
        assert_eq!(send.end().expect(0).text(), format!("{slot} is done"));
    }
}

fn interrupted(daemon: &Daemon) {
    // Claude Code shows a paragraph once it is whole.
    let text = "A first part.\n\nThe second.";
    let steps = vec![Step::gated_text(text, 3, "never")];
    daemon.endpoint.on("talk on", steps);
    daemon
        .cmd(&["send", "coder", "--no-wait", "talk on"])
        .expect(0);
    daemon.wait_state("coder", "thinking,responding");
    daemon
        .cmd(&[
            "wait",
            "coder",
            "--output",
            "A first part",
            "--timeout",
            "50s",
        ])
        .expect(0);
    let done = daemon.json(&["interrupt", "coder"]);
    assert_eq!(done["effect"], "interrupted", "{done}");
    daemon.wait_state("coder", "idle");
    let answer = daemon.cmd(&["send", "coder", "go on"]).expect(0);
    assert_eq!(answer.text(), "You said: go on");
}

/// The slot stays usable, and says what was wrong.
fn an_api_error_is_told(daemon: &Daemon) {
    let error = Step::error(400, "invalid_request_error", "scripted refusal");
    daemon.endpoint.on("fail", vec![error]);
    let sent = daemon.cmd(&["send", "tester", "fail"]);
    let told = format!("{}{}", sent.stdout, sent.stderr);
    assert!(told.contains("scripted refusal"), "{sent}");
    daemon.wait_state("tester", "idle");
    let status = daemon.status("tester");
    let error = status["last_error"].as_str().unwrap_or_default();
    assert!(error.contains("scripted refusal"), "{status}");
}

fn killed_and_resumed(daemon: &Daemon) {
    let before = daemon.status("coder");
    let pid = pid(&before);
    processes::kill(pid);
    let after = until("another process in the slot", || {
        let now = daemon.status("coder");
        (now["pid"].is_u64() && now["pid"] != before["pid"]).then_some(now)
    });
    assert_eq!(after["session_id"], before["session_id"]);
    assert_eq!(after["restarts"], 1, "{after}");
    daemon.wait_state("coder", "idle");
    let answer = daemon.cmd(&["send", "coder", "still there?"]).expect(0);
    assert_eq!(answer.text(), "You said: still there?");
    // The conversation that the model sees is the one from before.
    let request = daemon
        .endpoint
        .wait_for_request(PATIENCE, |request| request.prompt() == "still there?")
        .expect("it was asked");
    assert!(request.body.to_string().contains("coder is done"));
    assert_eq!(
        prompts(daemon).last().map(String::as_str),
        Some("still there?")
    );
}

/// A person's stop holds, and a start continues the conversation.
fn stopped_and_started(daemon: &Daemon) {
    let before = daemon.status("tester");
    daemon.cmd(&["stop", "tester"]).expect(0);
    daemon.wait_state("tester", "exited");
    assert_eq!(daemon.status("tester")["pid"], Value::Null);
    daemon.cmd(&["send", "tester", "anyone?"]).expect(4);
    daemon.cmd(&["start", "tester"]).expect(0);
    daemon.wait_state("tester", "idle");
    let after = daemon.status("tester");
    assert_eq!(after["session_id"], before["session_id"]);
    assert_ne!(after["pid"], before["pid"]);
}

fn pid(status: &Value) -> i32 {
    let pid = status["pid"]
        .as_i64()
        .and_then(|pid| i32::try_from(pid).ok());
    pid.unwrap_or_else(|| panic!("no process in {status}"))
}

/// A version that nobody has tried is used, but the log says so, and what to do.
#[test]
fn a_version_that_was_never_rehearsed_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let text = r#"[ "$1" = --version ] && echo 9.9.9 || exec sleep 600"#;
    let program = script(directory.path(), text).display().to_string();
    let daemon = Daemon::start_with(&Setup::new().slot("coder"), &[program]);
    let warning = until("the warning in the log", || {
        let log = daemon.log("coder");
        let line = log.lines().find(|line| line.contains("9.9.9"));
        line.map(str::to_owned)
    });
    assert!(warning.contains("missiond doctor --rehearse"), "{warning}");
}

#[test]
fn a_folder_is_trusted_or_not() {
    let setup = Setup::new()
        .untrusted("wary", "restart = \"never\"")
        .untrusted("open", "");
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    for slot in ["wary", "open"] {
        let dialog = daemon.wait_dialog(slot);
        assert_eq!(dialog["kind"], "trust", "{dialog}");
    }
    daemon.cmd(&["confirm", "open", "yes"]).expect(0);
    daemon.wait_state("open", "idle");
    let answer = daemon.cmd(&["send", "open", "hello"]).expect(0);
    assert_eq!(answer.text(), "You said: hello");
    // The program ends, as it was told to: that is no failure of the answer.
    daemon.cmd(&["confirm", "wary", "no"]).expect(0);
    daemon.wait_state("wary", "exited,error");
}
