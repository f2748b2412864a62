//! Kills of the daemon while Claude Code works and is answered, by rule and by a person.

use super::shells::Chance;
use super::survival::{ROUNDS, every_key_is_audited, value};
use crate::support::daemon::Daemon;
use crate::support::run::Running;
use crate::support::setup::Setup;
use crate::support::until;
use missiond::lab::rehearsal::Step;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs;
use std::time::Duration;

const SLOTS: [&str; 2] = ["ruled", "asked"];
/// Calls of one message: enough for some rounds.
const CALLS: usize = 20;
/// Fewer effects than this in a slot would prove nothing.
const ENOUGH: usize = 10;
/// On a slow machine it takes more kills until there are as many.
const MOST_ROUNDS: usize = 4 * ROUNDS;

/// A slot with nothing to do gets a message that leads to calls.
fn keep_at_work(daemon: &Daemon, slot: &str, round: usize) {
    if daemon.status(slot)["state"] != "idle" {
        return;
    }
    let prompt = format!("go on {slot} {round}");
    let call = |n: usize| {
        let command = making(&format!("{slot}-{round}-{n}"));
        Step::tool("Bash", json!({"command": command, "description": "Mark"}))
    };
    let steps = (0..CALLS).map(call).chain([Step::text("Done.")]).collect();
    daemon.endpoint.on(&prompt, steps);
    // Where it is refused, the next round tries again.
    daemon.cmd(&["send", slot, "--no-wait", &prompt]);
}

/// A person says yes to what is asked now.
fn say_yes(daemon: &Daemon, slot: &str) -> Option<Running> {
    let dialog = daemon.status(slot)["dialog"]["id"]
        .as_str()
        .map(str::to_owned)?;
    Some(daemon.spawn(&["confirm", slot, "yes", "--dialog", &dialog]))
}

/// Run twice, it leaves two files.
fn making(mark: &str) -> String {
    format!("mktemp {mark}.XXXXXX")
}

fn marks(daemon: &Daemon, slot: &str) -> Vec<String> {
    let files = fs::read_dir(daemon.cwd(slot)).expect("a directory");
    let names = files.map(|file| file.expect("an entry").file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    names
        .filter_map(|name| name.split_once('.').map(|(mark, _)| mark.to_owned()))
        .filter(|mark| !mark.is_empty())
        .collect()
}

/// No effect came twice, and none without an allow for just this call.
fn each_mark_was_allowed(daemon: &Daemon, slot: &str, by: &str) {
    let audit = daemon.logged("audit.jsonl");
    let allowed: HashSet<String> = audit
        .lines()
        .map(value)
        .filter(|entry| entry["slot"] == *slot && entry["verdict"] == "allow" && entry["by"] == *by)
        .filter_map(|entry| entry["input"]["command"].as_str().map(str::to_owned))
        .collect();
    let marks = marks(daemon, slot);
    println!(
        "{slot}: {} effects, {} calls allowed",
        marks.len(),
        allowed.len()
    );
    assert!(marks.len() >= ENOUGH, "{marks:?}");
    let mut seen = HashSet::new();
    for mark in &marks {
        assert!(seen.insert(mark), "{mark} came twice");
        assert!(allowed.contains(&making(mark)), "{mark} was not allowed");
    }
}

#[test]
fn fifty_kills_leave_no_effect_twice_or_without_its_verdict() {
    let setup = Setup::new()
        .slot("ruled")
        .slot("asked")
        .policy("ruled", "allow = [\"Bash(mktemp *)\"]\n");
    let Some(mut daemon) = Daemon::start(&setup) else {
        return;
    };
    let mut chance = Chance::new();
    for slot in SLOTS {
        daemon.wait_state(slot, "idle");
    }
    let of = |status: Value| (status["pid"].clone(), status["session_id"].clone());
    let before = SLOTS.map(|slot| of(daemon.status(slot)));
    let is_enough = |daemon: &Daemon| {
        let counts = SLOTS.map(|slot| marks(daemon, slot).len());
        counts.iter().all(|count| *count >= ENOUGH)
    };
    for round in 0..MOST_ROUNDS {
        if round >= ROUNDS && is_enough(&daemon) {
            break;
        }
        for slot in SLOTS {
            keep_at_work(&daemon, slot, round);
        }
        let yes = say_yes(&daemon, "asked");
        std::thread::sleep(Duration::from_millis(chance.below(700)));
        daemon.crash();
        daemon.again();
        // The next daemon tells what came of it, or is given the answer.
        drop(yes.map(Running::end));
        for (slot, before) in SLOTS.iter().zip(&before) {
            // On a machine with much to do the daemon answers before it has read every screen again.
            let now = until("the slot to be taken up", || {
                Some(daemon.status(slot)).filter(|status| status["pid"].is_u64())
            });
            assert_eq!(of(now), *before, "{slot} in round {round}");
        }
    }
    for (slot, by) in SLOTS.iter().zip(["policy", "person"]) {
        daemon.cmd(&["stop", slot]).expect(0);
        each_mark_was_allowed(&daemon, slot, by);
        assert_eq!(daemon.log(slot).matches("  started ").count(), 1);
    }
    every_key_is_audited(&daemon, &SLOTS);
}

/// Draws a dialog, and then so much over it that the dialog's beginning lies far back in the recording.
const DIALOG_LONG_AGO: &str = "[ \"$1\" = --version ] && { echo '2.1.325 (Claude Code)'; exit; }\n\
    stty raw -echo; cat first\n\
    while [ ! -e go ]; do sleep 0.02; done\n\
    yes \"$(printf '\\0337\\033[1;1H\\033[0m\\0338')\" | head -c 1000000\n\
    touch drawn; exec sleep 1000";

/// A long recording is not read frame by frame; what it comes to is the same.
#[test]
fn a_dialog_keeps_its_id_however_much_was_written_since() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(&file, DIALOG_LONG_AGO).expect("a file");
    let command = ["/bin/sh".to_owned(), file.path().display().to_string()];
    let setup = Setup::new().slot_with("fake", "autostart = false");
    let mut daemon = Daemon::start_with(&setup, &command);
    let cwd = daemon.cwd("fake");
    let drawn = super::races::up_to_a_dialog("bash_allow");
    fs::write(cwd.join("first"), drawn).expect("a file");
    daemon.cmd(&["start", "fake"]).expect(0);
    let before = daemon.wait_dialog("fake");
    fs::write(cwd.join("go"), "").expect("a file");
    until("all to be drawn", || {
        cwd.join("drawn").exists().then_some(())
    });
    let recording = daemon.logs().join("fake.cast");
    let grown = || fs::metadata(&recording).map_or(0, |file| file.len());
    until("all to be recorded", || (grown() > 1_000_000).then_some(()));
    daemon.crash();
    daemon.again();
    assert_eq!(daemon.wait_dialog("fake"), before);
}

/// What the events and the log of a slot tell of an answer.
fn told_of(daemon: &Daemon, slot: &str, text: &str) -> (usize, usize) {
    let events = daemon.logged(&format!("{slot}.events.jsonl"));
    let answers = events.lines().map(value).filter(|event| {
        event["event"] == "answer" && event["text"] == text && event["duration_ms"].is_u64()
    });
    let log = daemon.log(slot);
    let lines = log.lines();
    let logged = lines.filter(|line| line.contains("  answer ") && line.ends_with(text));
    (answers.count(), logged.count())
}

/// Whether it comes while there is no daemon, or when the next one is there: the answer to a message that a daemon has
/// told of is told once, also when that one is killed, and by no later daemon again.
#[test]
fn an_answer_that_a_killed_daemon_waited_for_is_told_once_by_the_next() {
    let Some(mut daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    for (text, comes_before) in [("It came alone.", true), ("It came late.", false)] {
        let words = format!("wait for it: {text}");
        let gate = Step::gate(text);
        daemon.endpoint.on(&words, vec![gate, Step::text(text)]);
        daemon
            .cmd(&["send", "coder", "--no-wait", &words])
            .expect(0);
        daemon.wait_state("coder", "thinking,responding");
        let session = daemon.status("coder")["session_id"].clone();
        let session = session.as_str().expect("a conversation").to_owned();
        daemon.crash();
        if comes_before {
            daemon.endpoint.open(text);
            let transcript = daemon.transcript("coder", &session);
            until("the answer in the transcript", || {
                let written = fs::read_to_string(&transcript).unwrap_or_default();
                let is_there = |line: &str| line.contains(text) && line.contains("end_turn");
                written.lines().any(is_there).then_some(())
            });
        }
        daemon.again();
        daemon.endpoint.open(text);
        until("the answer to be told", || {
            (told_of(&daemon, "coder", text) == (1, 1)).then_some(())
        });
        // It answers what comes after, and no other daemon tells the old answer again.
        daemon.crash();
        daemon.again();
        daemon.wait_state("coder", "idle");
        let next = daemon.cmd(&["send", "coder", &format!("after {text} Thanks")]);
        assert_eq!(
            next.expect(0).text(),
            format!("You said: after {text} Thanks")
        );
        assert_eq!(told_of(&daemon, "coder", text), (1, 1));
        let failed = daemon.logged("coder.events.jsonl");
        assert!(!failed.contains(r#""event":"failed""#), "{failed}");
    }
}
