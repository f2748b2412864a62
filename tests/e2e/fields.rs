//! A text field in an option takes the keys: no digit picks anything then, and nothing is called answered that was not.

use super::words::on_make_pipe;
use crate::support::claude_code::claude;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use missiond::lab::rehearsal::Step;
use serde_json::{Value, json};
use std::path::PathBuf;

#[test]
fn a_text_in_a_yes_is_not_sent_off_by_a_no() {
    let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let amend = |text| amended(&daemon, text);
    for text in ["", "go on"] {
        let pipe = asked(&daemon, &format!("with {text:?}, no"));
        amend(text);
        only_no_is_taken(&daemon, &["confirm", "coder", "no"]);
        assert!(!pipe.exists(), "run, though it was a no");
    }
    let pipe = asked(&daemon, "and interrupted");
    amend("go on");
    only_no_is_taken(&daemon, &["interrupt", "coder"]);
    assert!(!pipe.exists(), "run, though it was interrupted");
    left_and_approved(&daemon);
}

/// The next step that a refusal names.
fn left_and_approved(daemon: &Daemon) {
    let pipe = asked(daemon, "and left");
    amended(daemon, "go on");
    daemon
        .cmd(&["keys", "coder", "up", "--into-dialog"])
        .expect(0);
    labelled(daemon, |dialog| dialog["selected"] != 0);
    daemon.cmd(&["confirm", "coder", "yes"]).expect(0);
    daemon.wait_state("coder", "idle");
    assert!(pipe.exists());
}

#[test]
fn an_old_version_has_a_field_for_its_no() {
    let Some(program) = claude("2.0.76") else {
        return;
    };
    let daemon = Daemon::start_with(&Setup::new().slot("coder"), &program);
    daemon.wait_state("coder", "idle");
    for text in ["", "not like this"] {
        let pipe = asked(&daemon, &format!("with {text:?}"));
        daemon
            .cmd(&["keys", "coder", "up", "--into-dialog"])
            .expect(0);
        labelled(&daemon, |dialog| dialog["selected"] != 0);
        write(&daemon, text);
        only_no_is_taken(&daemon, &["confirm", "coder", "no"]);
        assert!(!pipe.exists(), "run, though it was a no");
    }
}

#[test]
fn what_stands_beside_the_choices_or_the_input_box_is_no_hindrance() {
    let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    choices_with_previews(&daemon);
    a_message_under_the_shortcuts(&daemon);
    a_view_is_left_as_the_refusal_says(&daemon);
    a_view_that_was_closed_has_no_answer_of_another_turn(&daemon);
}

/// A digit only moves there, and Enter takes the marked row.
fn choices_with_previews(daemon: &Daemon) {
    let option = |label: &str, preview: &str| json!({"label": label, "description": "one", "preview": preview});
    let long = "A layout with a label that goes on and on and on";
    let options = [
        option("Layout A", "+---+\n| ❯ 1. Yes\n+---+"),
        option(long, "┌───┐\n│ B │\n└───┘"),
        option("Layout C", "c"),
    ];
    let question = json!({"question": "Which layout?", "header": "Layout", "multiSelect": false, "options": options});
    let call = Step::tool("AskUserQuestion", json!({"questions": [question]}));
    let steps = vec![call, Step::text("Thank you.")];
    daemon.endpoint.on("ask with previews", steps);
    daemon
        .cmd(&["send", "coder", "ask with previews"])
        .expect(5);
    notes_are_left(daemon, long);
    daemon
        .cmd(&["send", "coder", "ask with previews"])
        .expect(5);
    let dialog = daemon.wait_dialog("coder");
    let labels: Vec<&Value> = dialog["options"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|option| &option["label"])
        .collect();
    assert_eq!(labels, ["Layout A", long, "Layout C", "Chat about this"]);
    daemon.cmd(&["confirm", "coder", long]).expect(0);
    daemon.wait_state("coder", "idle");
    let history = daemon.cmd(&["history", "coder", "--json"]).expect(0);
    let told = format!(r#"\"Which layout?\"=\"{long}\""#);
    assert!(history.stdout.contains(&told), "{history}");
}

/// While somebody writes notes no choice is made; a no leaves them, and the question.
fn notes_are_left(daemon: &Daemon, label: &str) {
    daemon
        .cmd(&["keys", "coder", "n", "--into-dialog"])
        .expect(0);
    labelled(daemon, |dialog| dialog["selected"].is_null());
    daemon.cmd(&["confirm", "coder", label]).expect(4);
    daemon.cmd(&["confirm", "coder", "no"]).expect(0);
    daemon.wait_state("coder", "idle");
}

fn a_message_under_the_shortcuts(daemon: &Daemon) {
    daemon
        .endpoint
        .on("below a panel", vec![Step::text("Read.")]);
    daemon.cmd(&["write", "coder", "?"]).expect(0);
    until("the panel is up", || {
        let screen = daemon.cmd(&["screen", "coder"]).expect(0);
        screen.stdout.contains("for file paths").then_some(())
    });
    let sent = daemon.cmd(&["send", "coder", "below a panel"]).expect(0);
    assert!(sent.stdout.contains("Read."), "{sent}");
}

fn a_view_is_left_as_the_refusal_says(daemon: &Daemon) {
    daemon
        .cmd(&["send", "coder", "--slash", "--no-wait", "/status"])
        .expect(0);
    daemon.wait_state("coder", "confirming");
    let refused = daemon.cmd(&["send", "coder", "and this"]).expect(4);
    assert!(
        refused.stderr.contains("missiond interrupt coder"),
        "{refused}"
    );
    daemon.cmd(&["interrupt", "coder"]).expect(0);
    daemon.wait_state("coder", "idle");
}

/// Claude Code notes nothing of a view that was closed with Esc, and what stands on the screen then is the answer of the
/// turn before.
fn a_view_that_was_closed_has_no_answer_of_another_turn(daemon: &Daemon) {
    let before = answers(daemon).len();
    daemon.cmd(&["send", "coder", "a message"]).expect(0);
    for view in ["/help", "/resume"] {
        daemon.cmd(&["send", "coder", "--slash", view]).expect(5);
        daemon.cmd(&["interrupt", "coder"]).expect(0);
        daemon.wait_state("coder", "idle");
        // It is not typed before the turn of the command is over.
        let after = format!("after {}", &view[1..]);
        daemon.cmd(&["send", "coder", &after]).expect(0);
    }
    let told = [
        "You said: a message",
        "You said: after help",
        "Resume cancelled",
        "You said: after resume",
    ];
    assert_eq!(answers(daemon)[before..], told);
}

/// The answers that were told, in order.
fn answers(daemon: &Daemon) -> Vec<String> {
    let events = daemon.logged("coder.events.jsonl");
    let events = events
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events
        .filter(|event| event["event"] == "answer")
        .filter_map(|event| event["text"].as_str().map(str::to_owned))
        .collect()
}

/// Goes on when Claude Code asks about a call of its own.
fn asked(daemon: &Daemon, name: &str) -> PathBuf {
    let pipe = daemon.cwd("coder").join(name.replace([' ', '"', ','], "-"));
    on_make_pipe(daemon, name, &pipe, "It is made.");
    daemon.cmd(&["send", "coder", name]).expect(5);
    pipe
}

fn amended(daemon: &Daemon, text: &str) {
    daemon
        .cmd(&["keys", "coder", "tab", "--into-dialog"])
        .expect(0);
    labelled(daemon, |dialog| dialog["options"][0]["label"] != "Yes");
    write(daemon, text);
}

fn write(daemon: &Daemon, text: &str) {
    if text.is_empty() {
        return;
    }
    daemon
        .cmd(&["write", "coder", text, "--into-dialog"])
        .expect(0);
    labelled(daemon, |dialog| {
        dialog["options"].to_string().contains(text)
    });
}

fn labelled(daemon: &Daemon, fits: impl Fn(&Value) -> bool) {
    until("the dialog reads so", || {
        Some(daemon.status("coder")["dialog"].clone()).filter(|dialog| fits(dialog))
    });
}

/// A yes is refused and changes nothing; after `no` the dialog is gone.
fn only_no_is_taken(daemon: &Daemon, no: &[&str]) {
    // It is whole again once the program has drawn for its size.
    let whole = || {
        until("the whole dialog", || {
            Some(daemon.status("coder")["dialog"].clone())
                .filter(|dialog| dialog["complete"] == true)
        })
    };
    let before = whole();
    let refused = daemon.cmd(&["confirm", "coder", "yes"]).expect(4);
    assert!(refused.stderr.contains("text field"), "{refused}");
    assert!(
        refused.stderr.contains("missiond keys coder up"),
        "{refused}"
    );
    assert_eq!(whole(), before);
    daemon.cmd(no).expect(0);
    daemon.wait_state("coder", "idle");
}
