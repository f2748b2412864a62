//! A process of the same user that paints over a question of the model, or over the question whether a folder is trusted.

use super::painting::{ANSWERS, Painter, keys, row_that, terminal_of, times_doubted};
use crate::support::claude_code::claude;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{PINNED, until};
use missiond::lab::rehearsal::Step;
use serde_json::{Value, json};
use std::io::Write;

/// Where the parts of the question stand, counted from one.
struct Rows {
    question: usize,
    red: usize,
    blue: usize,
}

/// Rows with what is painted over them.
type Painting = fn(&Rows) -> Vec<(usize, &'static str)>;

const PAINTINGS: [(&str, Painting); 4] = [
    ("the labels, swapped", |rows| {
        vec![(rows.red, "❯ 1. Blue"), (rows.blue, "  2. Red")]
    }),
    ("another label", |rows| vec![(rows.blue, "  2. Green")]),
    ("the descriptions, swapped", |rows| {
        vec![
            (rows.red + 1, "     cold as ice"),
            (rows.blue + 1, "     warm as fire"),
        ]
    }),
    ("another question", |rows| {
        vec![(rows.question, "Which colour must it never have?")]
    }),
];

/// The hook has the questions with their labels, so that what is painted is known: an answer is refused, and a no is Esc.
#[test]
fn a_question_that_is_painted_over_gets_no_answer() {
    no_painted_question_is_answered(PINNED, &PAINTINGS);
}

#[test]
fn a_question_of_an_older_version_that_is_painted_over_gets_no_answer() {
    no_painted_question_is_answered("2.1.160", &PAINTINGS[..1]);
}

fn no_painted_question_is_answered(version: &str, paintings: &[(&str, Painting)]) {
    let Some(real) = claude(version) else { return };
    let daemon = Daemon::start_with(&Setup::new().slot("coder"), &real);
    daemon.wait_state("coder", "idle");
    for (index, (name, painting)) in paintings.iter().enumerate() {
        println!("{name}");
        declined_though_painted(&daemon, &format!("ask {index}"), painting);
    }
    // With nothing painted an answer is an answer.
    asks(&daemon, "ask at last");
    daemon.cmd(&["confirm", "coder", "Blue"]).expect(0);
    daemon.wait_state("coder", "idle");
    assert!(daemon.endpoint.was_told(r#""Which colour?"="Blue""#));
}

fn asks(daemon: &Daemon, prompt: &str) {
    let options = json!([{"label": "Red", "description": "warm as fire"},
        {"label": "Blue", "description": "cold as ice"}]);
    let question = json!({"question": "Which colour?", "header": "Colour", "multiSelect": false, "options": options});
    let call = Step::tool("AskUserQuestion", json!({"questions": [question]}));
    daemon
        .endpoint
        .on(prompt, vec![call, Step::text("Thanks.")]);
    daemon.cmd(&["send", "coder", prompt]).expect(5);
    until("the doubt before it to go", || {
        daemon.status("coder")["doubtful"].is_null().then_some(())
    });
}

fn declined_though_painted(daemon: &Daemon, prompt: &str, painting: &Painting) {
    asks(daemon, prompt);
    let rows = Rows {
        question: row_that(daemon, |row| row.trim() == "Which colour?"),
        red: row_that(daemon, |row| row.ends_with("1. Red")),
        blue: row_that(daemon, |row| row.ends_with("2. Blue")),
    };
    let painted: String = painting(&rows)
        .iter()
        .map(|(row, text)| format!("\x1b7\x1b[{row};1H\x1b[2K{text}\x1b8"))
        .collect();
    let (before, told_before) = (keys(daemon), times_doubted(daemon));
    let mut terminal = terminal_of(daemon);
    let painter = Painter::start(move || {
        let written = terminal.write_all(painted.as_bytes());
        written.expect("it can be written");
    });
    let waiting = until("the doubt to be told", || {
        let waiting = daemon.json(&["pending"]).get_mut(0)?.take();
        // The program draws again for the doubt, and then the screen is right for a moment.
        let told = times_doubted(daemon) > told_before && waiting["waiting_calls"].is_array();
        told.then_some(waiting)
    });
    let call = &waiting["waiting_calls"][0]["input"]["questions"][0];
    assert_eq!(call["question"], "Which colour?", "{waiting}");
    assert_eq!(call["options"][0]["label"], "Red", "{waiting}");
    for _ in 0..ANSWERS {
        daemon.cmd(&["confirm", "coder", "Blue"]).expect(4);
    }
    assert_eq!(keys(daemon), before, "no key");
    let no = daemon.spawn(&["confirm", "coder", "no"]);
    until("the key of the no", || {
        (keys(daemon) > before).then_some(())
    });
    drop(painter);
    no.end().expect(0);
    daemon.wait_state("coder", "idle");
    assert_eq!(keys(daemon), before + 1, "Esc");
    assert!(!daemon.endpoint.was_told(r#""Which colour?"=""#));
}

/// Nothing of the slot runs before its folder is trusted, but a process of another slot can paint there. A no is Esc, which
/// no label can change.
#[test]
fn a_folder_is_not_trusted_by_a_no_whose_label_was_painted() {
    let setup = Setup::new().untrusted("coder", "restart = \"never\"");
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    let dialog = daemon.wait_dialog("coder");
    assert_eq!(dialog["kind"], "trust", "{dialog}");
    let (no, yes) = ("No, exit", "Yes, I trust this folder");
    let rows = [no, yes].map(|label| row_that(&daemon, |row| row.ends_with(label)));
    let painted: String = [(rows[0], yes), (rows[1], no)]
        .map(|(row, label)| format!("\x1b7\x1b[{row};4H\x1b[K{label}\x1b8"))
        .concat();
    let mut terminal = terminal_of(&daemon);
    let painter = Painter::start(move || {
        // The terminal ends with the program.
        let _ = terminal.write_all(painted.as_bytes());
    });
    until("the painted labels", || {
        let dialog = daemon.status("coder")["dialog"].take();
        (dialog["options"][0]["label"] == yes && dialog["options"][1]["label"] == no).then_some(())
    });
    daemon.cmd(&["confirm", "coder", "No, exit"]).expect(0);
    daemon.wait_state("coder", "error");
    drop(painter);
    let status = daemon.status("coder");
    assert_eq!(status["cause"], "trust refused", "{status}");
    assert_eq!(keys(&daemon), 1, "Esc");
    let known = std::fs::read(daemon.home().join(".claude.json")).expect("its file");
    let known: Value = serde_json::from_slice(&known).expect("JSON");
    let folder = &known["projects"][daemon.cwd("coder").to_string_lossy().as_ref()];
    assert_ne!(folder["hasTrustDialogAccepted"], true, "{folder}");
}
