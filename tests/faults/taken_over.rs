//! A daemon that finds a long recording goes on from a screen that the shim has kept.

use super::races::up_to_a_dialog;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use missiond::core::cast::{CastKind, Recording};
use missiond::core::claude::reading::{Observer, State};
use missiond::core::terminal::Terminal;
use serde_json::Value;
use std::fs;
use std::io::{BufReader, Write};

/// Draws a dialog and takes it off again, until 3 MB are written; then the input box, for a while, and a last dialog.
const DRAWS: &str = "[ \"$1\" = --version ] && exit; stty raw -echo; \
    i=0; while [ $i -lt 30 ]; do cat many; i=$((i+1)); done; cat idle; sleep 0.2; cat last; touch drawn; \
    while :; do sleep 1; done";

/// What draws the first input box of a recording.
fn input_box() -> Vec<u8> {
    let file = fs::File::open("tests/recordings/2.1.325-120x40/bash_allow.cast");
    let recording = Recording::read(BufReader::new(file.expect("a recording")));
    let (mut terminal, mut observer) = (Terminal::new(120, 40), Observer::new());
    for event in recording.expect("a header") {
        let event = event.expect("a whole event");
        if let CastKind::Output(text) = event.what {
            for frame in terminal.quiet(event.at) {
                if observer.see(&frame).state == State::Idle {
                    return terminal.snapshot();
                }
            }
            terminal.feed(event.at, text.as_bytes());
        }
    }
    panic!("no input box");
}

/// What can be seen of the slot: its dialog with its id, and its screen.
fn seen(daemon: &Daemon) -> [Value; 2] {
    [daemon.wait_dialog("fake"), daemon.json(&["screen", "fake"])]
}

#[test]
fn a_long_recording_is_not_drawn_from_its_beginning_and_all_is_the_same() {
    let setup = Setup::new().slot_with("fake", "autostart = false");
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    write!(file, "{DRAWS}").expect("a file");
    let command = ["/bin/sh".to_owned(), file.path().display().to_string()];
    let mut daemon = Daemon::start_with(&setup, &command);
    let drawn = up_to_a_dialog("bash_allow");
    let many = format!("{drawn}\x1bc").repeat((100 << 10) / drawn.len());
    fs::write(daemon.cwd("fake").join("many"), many).expect("a file");
    fs::write(daemon.cwd("fake").join("idle"), input_box()).expect("a file");
    fs::write(daemon.cwd("fake").join("last"), drawn).expect("a file");
    daemon.cmd(&["start", "fake"]).expect(0);
    let last = daemon.cwd("fake").join("drawn");
    until("everything to be drawn", || last.exists().then_some(()));
    let before = seen(&daemon);
    daemon.crash();
    // A line of the beginning can't be read any more: who reads it says that the screen is unknown.
    let recording = daemon.logs().join("fake.cast");
    let mut text = fs::read(&recording).expect("a recording");
    let early = text.len() / 10;
    let line = text[early..].iter().position(|byte| *byte == b'\n');
    text[early + line.expect("a line") + 1] = b'?';
    fs::write(&recording, text).expect("a recording");
    daemon.again();
    assert_eq!(seen(&daemon), before);
    let log = daemon.log("fake");
    assert!(!log.contains("the screen is unknown"), "{log}");
}
