//! What is sent arrives as it was written, once, and in order.

use super::words::prompts;
use crate::support::PATIENCE;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use missiond::rehearsal::Step;

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
    daemon.endpoint.open("go");
    assert_eq!(first.end().expect(0).text(), "first done");
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

/// Waits until one more message stands in the slot's queue.
fn queued(daemon: &Daemon, text: &str) {
    let wanted = if text == "second" { 1 } else { 2 };
    crate::support::until("the message in the queue", || {
        let queued = daemon.status("coder")["queued"].as_u64();
        queued.is_some_and(|count| count >= wanted).then_some(())
    });
}
