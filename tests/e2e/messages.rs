//! What is sent arrives as it was written, once, and in order.

use super::words::prompts;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{PATIENCE, processes, until};
use missiond::lab::rehearsal::Step;
use std::time::Duration;

#[test]
fn messages_arrive_exactly() {
    let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    for text in [
        "漢字と仮名, 🙂 and é",
        "two lines\n  and an indented one",
        "line\nbreaks\n\nthat are\nmore than\nthe box shows",
        "ends with a backslash \\",
        "# not a command, and @nobody either",
    ] {
        arrives(&daemon, text, text);
    }
    // A space keeps a shell command from being one.
    arrives(&daemon, "!echo hi > made", " !echo hi > made");
    assert!(!daemon.cwd("coder").join("made").exists());
    // What would end the paste and press Enter is text like any other.
    arrives(&daemon, "a\x1b[201~\rb", "a␛[201~\nb");

    arrives_in_bulk(&daemon);
    unsendable_is_refused(&daemon);
    queued_messages_keep_their_order(&daemon);
    // One picture made of three people: it is drawn narrower than its parts.
    arrives(&daemon, "👩‍👩‍👧 and more", "👩‍👩‍👧 and more");
}

/// Sends `text` and finds `expected` in the request that Claude Code made of it.
#[track_caller]
fn arrives(daemon: &Daemon, text: &str, expected: &str) {
    let sent = daemon
        .cmd_with_input(&["send", "coder", "-"], text)
        .expect(0);
    let last = prompts(daemon).pop().unwrap_or_default();
    // A heading sign is a command of older versions: a space before it is as good.
    assert_eq!(last.trim_start(), expected.trim_start(), "after {sent}");
}

fn arrives_in_bulk(daemon: &Daemon) {
    let lines: Vec<String> = (0..10_000).map(|number| format!("line {number}")).collect();
    arrives(daemon, &lines.join("\n"), &lines.join("\n"));
    let megabyte = "0123456789abcdef".repeat(65_536);
    arrives(daemon, &megabyte, &megabyte);
}

fn unsendable_is_refused(daemon: &Daemon) {
    let before = prompts(daemon).len();
    for text in ["", "  \n", "/help me"] {
        let sent = daemon.cmd_with_input(&["send", "coder", "-"], text);
        assert!(matches!(sent.code, 2 | 4), "{sent}");
        assert!(!sent.stderr.is_empty(), "{sent}");
    }
    assert_eq!(prompts(daemon).len(), before);
}

fn queued_messages_keep_their_order(daemon: &Daemon) {
    let steps = vec![Step::gate("go"), Step::text("first done")];
    daemon.endpoint.on("first", steps);
    let first = daemon.spawn(&["send", "coder", "first"]);
    let seen = daemon
        .endpoint
        .wait_for_request(PATIENCE, |request| request.prompt() == "first");
    assert!(seen.is_some());
    let late = daemon.cmd(&["send", "coder", "--timeout", "300ms", "too late"]);
    assert_eq!(late.code, 124, "{late}");
    let waiting: Vec<_> = ["second", "third"]
        .map(|text| {
            let running = daemon.spawn(&["send", "coder", text]);
            queued(daemon, text);
            running
        })
        .into();
    let idle = daemon.spawn(&["wait", "coder", "--for", "idle"]);
    daemon.endpoint.open("go");
    assert_eq!(first.end().expect(0).text(), "first done");
    // Between two turns the slot is not yet at rest.
    idle.end().expect(0);
    assert_eq!(daemon.status("coder")["unanswered"], 0);
    assert_eq!(prompts(daemon).last().map(String::as_str), Some("third"));
    let answers: Vec<String> = waiting
        .into_iter()
        .map(|running| running.end().expect(0).text().to_owned())
        .collect();
    assert_eq!(answers, ["You said: second", "You said: third"]);
    let asked = prompts(daemon);
    let order: Vec<&str> = asked
        .iter()
        .map(String::as_str)
        .filter(|text| ["first", "second", "third"].contains(text))
        .collect();
    assert_eq!(order, ["first", "second", "third"]);
}

/// `stop` and `down` say which messages they drop, and so does whoever is asked about one later.
#[test]
fn what_waits_for_a_slot_that_is_stopped_is_dropped_aloud() {
    let Some(mut daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    let status =
        |daemon: &Daemon, id: &str| daemon.json(&["send", "coder", "--id", id, "--status"]);
    let why = "not sent: the slot was stopped";

    two_wait(&daemon, ["q1", "q2"]);
    let stopped = daemon.cmd(&["stop", "coder"]).expect(0);
    let words = "2 messages that waited were dropped (q1, q2)";
    let cut = "coder: stopped; it ended a message that was not yet answered (";
    assert!(stopped.stdout.starts_with(cut), "{stopped}");
    let end = format!("); {words}\n");
    assert!(stopped.stdout.ends_with(&end), "{stopped}");
    for id in ["q1", "q2"] {
        let now = status(&daemon, id);
        assert_eq!(now["state"], "dropped", "{now}");
        assert_eq!(now["error"]["message"], why, "{now}");
    }
    let log = daemon.cmd(&["logs", "coder"]).expect(0);
    let warned = log.stdout.lines().find(|line| line.contains(words));
    assert!(warned.is_some_and(|line| line.contains("WARN")), "{log}");

    // The id may be used again.
    daemon.cmd(&["start", "coder"]).expect(0);
    daemon.wait_state("coder", "idle");
    let again = ["send", "coder", "--id", "q2", "and now"];
    daemon.cmd(&again).expect(0);
    assert!(prompts(&daemon).contains(&"and now".to_owned()));
    assert_ne!(status(&daemon, "q2")["state"], "dropped");

    two_wait(&daemon, ["q3", "q4"]);
    let down = daemon.cmd(&["down", "--yes"]).expect(0);
    assert!(
        down.stdout.ends_with("; dropped: 2 queued messages\n"),
        "{down}"
    );
    daemon.again();
    daemon.wait_state("coder", "idle");
    for id in ["q3", "q4"] {
        let now = status(&daemon, id);
        assert_eq!(now["state"], "dropped", "{now}");
        assert_eq!(now["error"]["message"], why, "{now}");
    }
    let sent = prompts(&daemon);
    let is_dropped = |text: &String| ["q1", "q3", "q4"].contains(&text.as_str());
    assert!(!sent.iter().any(is_dropped), "{sent:?}");
}

/// A person's `restart` drops what waits behind the turn that it cuts off, and says so to everybody; a task waits on.
#[test]
fn what_waits_for_a_slot_that_is_restarted_is_dropped_aloud_and_a_task_waits_on() {
    let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    daemon.cmd(&["send", "coder", "before"]).expect(0);
    two_wait(&daemon, ["q1", "q2"]);
    let waits = daemon.spawn(&["send", "coder", "q3", "--id", "q3"]);
    until("the third message in the queue", || {
        (daemon.status("coder")["queued"] == 3).then_some(())
    });
    let task = daemon.cmd(&["submit", "coder", "do the task"]).expect(0);
    let restarted = daemon.cmd(&["restart", "coder"]).expect(0);
    let cut = "coder: restarted; it ended a message that was not yet answered (";
    assert!(restarted.stdout.starts_with(cut), "{restarted}");
    let end = "); 3 messages that waited were dropped (q1, q2, q3)\n";
    assert!(restarted.stdout.ends_with(end), "{restarted}");
    let why = "not sent: the slot was restarted";
    let waits = waits.end().expect(1);
    assert!(waits.stderr.contains(why), "{waits}");
    for id in ["q1", "q2", "q3"] {
        let now = daemon.json(&["send", "coder", "--id", id, "--status"]);
        assert_eq!(now["state"], "dropped", "{now}");
        assert_eq!(now["error"]["message"], why, "{now}");
    }
    let done = daemon.cmd(&["task", task.text(), "--wait"]).expect(0);
    assert!(done.stdout.contains("You said: do the task"), "{done}");
    let sent = prompts(&daemon);
    let is_dropped = |text: &String| ["q1", "q2", "q3"].contains(&text.as_str());
    assert!(!sent.iter().any(is_dropped), "{sent:?}");
}

/// Two messages behind a turn that does not end.
fn two_wait(daemon: &Daemon, ids: [&str; 2]) {
    daemon.wait_state("coder", "idle");
    let held = format!("hold {}", ids[0]);
    daemon.endpoint.on(&held, vec![Step::gate("never")]);
    daemon.cmd(&["send", "coder", "--no-wait", &held]).expect(0);
    for id in ids {
        let sent = daemon.cmd(&["send", "coder", "--no-wait", "--id", id, id]);
        assert_eq!(sent.expect(0).stdout, "coder: queued\n");
    }
}

/// Waits until one more message stands in the slot's queue.
fn queued(daemon: &Daemon, text: &str) {
    let wanted = if text == "second" { 1 } else { 2 };
    crate::support::until("the message in the queue", || {
        let queued = daemon.status("coder")["queued"].as_u64();
        queued.is_some_and(|count| count >= wanted).then_some(())
    });
}

/// Claude Code has taken a message and is stopped before it draws anything of the turn: what stands on its screen is the
/// answer to the message before.
#[test]
fn the_answer_of_the_turn_before_is_never_given_for_this_one() {
    let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    daemon.cmd(&["send", "coder", "First, please."]).expect(0);
    for turn in ["second", "third", "fourth"] {
        daemon.cmd(&["restart", "coder"]).expect(0);
        daemon.wait_state("coder", "idle");
        let (message, answer) = (format!("Now the {turn}."), format!("That was the {turn}."));
        let steps = vec![Step::Hang { hang: 1.0 }, Step::text(&answer)];
        daemon.endpoint.on(&message, steps);
        let program = daemon.status("coder")["pid"].as_i64().expect("it runs");
        let program = i32::try_from(program).expect("a pid");
        let sent = daemon.spawn(&["send", "coder", &message]);
        until("the message to be taken", || {
            let taken = format!("\"text\":\"{message}\"");
            daemon
                .logged("coder.events.jsonl")
                .contains(&taken)
                .then_some(())
        });
        processes::stop(program);
        // Longer than the daemon waits for an idle screen and for the transcript.
        std::thread::sleep(Duration::from_secs(6));
        processes::go_on(program);
        assert_eq!(sent.end().expect(0).text(), answer);
    }
}
