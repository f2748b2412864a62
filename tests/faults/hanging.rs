//! A disk that does not answer: nobody waits for it, what happens is told, and nothing is lost without a word.

use super::shells::{ECHOES, echoes, recorded, shells};
use crate::support::daemon::Daemon;
use crate::support::hung_file::HungFile;
use crate::support::until;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A command that waits for a disk that hangs for ever takes for ever. This is a long time for one that does not.
const SOON: Duration = Duration::from_secs(20);

#[track_caller]
fn soon(daemon: &Daemon, command: &[&str]) {
    let begun = Instant::now();
    daemon.cmd(command).expect(0);
    let took = begun.elapsed();
    assert!(took < SOON, "{command:?} took {took:?}");
}

fn event_log(daemon: &Daemon) -> PathBuf {
    daemon.root().join("state/missiond/missiond/events.jsonl")
}

/// What the daemon has open it can still write: another file takes its place, which it can't open.
fn hang(daemon: &Daemon, file: &Path) -> Option<HungFile> {
    let new = file.with_extension("new");
    fs::copy(file, &new).expect("a file");
    let hung = HungFile::new(&new, daemon.pid())?;
    fs::rename(&new, file).expect("it is ours");
    Some(hung)
}

/// The conditions of the daemon at present.
fn conditions(daemon: &Daemon) -> Vec<String> {
    let health = daemon.json(&["stats"])["health"].clone();
    let all = health.as_array().cloned().unwrap_or_default();
    let name = |one: &Value| one["condition"].as_str().unwrap_or_default().to_owned();
    all.iter().map(name).collect()
}

fn positions(lines: &str) -> Vec<u64> {
    let events = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let told = events.filter(|event| event["event"] != "snapshot");
    told.filter_map(|event| event["seq"].as_u64()).collect()
}

/// Everybody is served while the file hangs, and it has everything afterwards.
fn holds_up_nobody(daemon: &Daemon, file: &Path, word: &str) -> bool {
    let events = daemon.spawn(&["events", "-f"]);
    until("the snapshot", || {
        events.printed().contains('\n').then_some(())
    });
    let Some(hung) = hang(daemon, file) else {
        return false;
    };
    let length = || fs::metadata(file).expect("a file").len();
    let (begun, before) = (Instant::now(), length());
    soon(daemon, &["restart", "a"]);
    soon(daemon, &["interrupt", "a"]);
    soon(daemon, &["status"]);
    soon(daemon, &["stop", "b"]);
    soon(daemon, &["start", "b"]);
    daemon.wait_state("a", "idle");
    echoes(daemon, word);
    until("the start of both to be told", || {
        (events.printed().matches("\"spawned\"").count() >= 2).then_some(())
    });
    until("the disk to be told", || {
        let hangs = conditions(daemon) == ["disk_hangs"];
        (hangs && events.printed().contains("does not answer")).then_some(())
    });
    println!("{}: served for {:?}", file.display(), begun.elapsed());
    assert_eq!(length(), before, "it is not written meanwhile");
    drop(hung);
    until("all to be well", || {
        conditions(daemon).is_empty().then_some(())
    });
    until("what has happened to be written", || {
        let text = fs::read(file).expect("a file").split_off(before as usize);
        let text = String::from_utf8_lossy(&text).into_owned();
        let is_there = |word: &str| text.contains(word);
        (is_there("spawned") || is_there("started")).then_some(())
    });
    let told = events.kill();
    let told = positions(&told);
    let next = told
        .first()
        .map(|first| (*first..).take(told.len()).collect());
    assert_eq!(Some(told), next, "no position is missing or doubled");
    true
}

#[test]
fn a_log_that_hangs_holds_up_nobody() {
    let daemon = shells(&["a", "b"], ECHOES);
    for slot in ["a", "b"] {
        daemon.wait_state(slot, "idle");
    }
    let files = [
        event_log(&daemon),
        daemon.logs().join("a.events.jsonl"),
        daemon.logs().join("a.log"),
    ];
    for (file, word) in files.iter().zip(["one", "two", "three"]) {
        if !holds_up_nobody(&daemon, file, word) {
            return;
        }
    }
    daemon.cmd(&["down", "--yes"]).expect(0);
}

/// What clients have seen and no log has is a gap for the next daemon, and its numbers are never given again.
#[test]
fn a_daemon_that_is_killed_while_its_log_hangs_gives_no_position_twice() {
    let mut daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let events = daemon.spawn(&["events", "-f"]);
    until("the snapshot", || {
        events.printed().contains('\n').then_some(())
    });
    let Some(hung) = hang(&daemon, &event_log(&daemon)) else {
        return;
    };
    soon(&daemon, &["restart", "a"]);
    until("the start to be told", || {
        events.printed().contains("\"spawned\"").then_some(())
    });
    daemon.crash();
    drop(hung);
    let seen = positions(&events.kill());
    let last = *seen.last().expect("what was told");
    let kept = fs::read_to_string(event_log(&daemon)).expect("a log");
    let had = positions(&kept);
    assert!(!had.contains(&last), "the log hung: {had:?}");
    daemon.again();
    daemon.wait_state("a", "idle");
    let events = daemon.cmd(&["events", "--after", &last.to_string()]);
    let next = positions(&events.stdout);
    assert!(next.iter().all(|seq| *seq > last), "{next:?} after {last}");
    daemon.cmd(&["restart", "a"]).expect(0);
    let log = fs::read_to_string(event_log(&daemon)).expect("a log");
    let written = positions(log.strip_prefix(&kept).expect("it goes on"));
    assert!(!written.is_empty());
    assert!(
        written.iter().all(|seq| *seq > last),
        "{written:?} after {last}"
    );
    daemon.cmd(&["down", "--yes"]).expect(0);
}

/// Nothing is pressed without its entry, and what needs none goes on.
#[test]
fn an_audit_that_hangs_refuses_keys_and_holds_up_nothing_else() {
    let daemon = shells(&["a", "b"], ECHOES);
    for slot in ["a", "b"] {
        daemon.wait_state(slot, "idle");
    }
    echoes(&daemon, "before");
    let Some(hung) = hang(&daemon, &daemon.logs().join("audit.jsonl")) else {
        return;
    };
    for _ in 0..2 {
        let begun = Instant::now();
        let refused = daemon.cmd(&["write", "a", "lost\\r"]).expect(4);
        assert!(refused.stderr.contains("does not answer"), "{refused}");
        assert!(begun.elapsed() < SOON, "{refused}");
    }
    soon(&daemon, &["status"]);
    soon(&daemon, &["interrupt", "a"]);
    soon(&daemon, &["stop", "b"]);
    soon(&daemon, &["start", "b"]);
    until("the audit to be told", || {
        conditions(&daemon)
            .contains(&"audit_unwritable".to_owned())
            .then_some(())
    });
    drop(hung);
    until("keys to be taken again", || {
        let written = daemon.cmd(&["write", "a", "after\\r"]);
        (written.code == 0).then_some(())
    });
    let heard = ["wait", "a", "--output", "got after", "--timeout", "50s"];
    daemon.cmd(&heard).expect(0);
    let output = recorded(&daemon, "a");
    assert!(!output.contains("got lost"), "{output}");
    until("nothing to be wrong", || {
        conditions(&daemon).is_empty().then_some(())
    });
    daemon.cmd(&["audit", "verify"]).expect(0);
    daemon.cmd(&["down", "--yes"]).expect(0);
}
