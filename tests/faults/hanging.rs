//! A disk that does not answer: nobody waits for it, what happens is told, and nothing is lost without a word.

use super::shells::{ECHOES, echoes, recorded, shells};
use crate::support::daemon::Daemon;
use crate::support::frozen_disk::FrozenDisk;
use crate::support::hung_file::HungFile;
use crate::support::until;
use missiond::audit::verify_files;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A command that waits for a disk that hangs for ever takes for ever. This is a long time for one that does not.
const SOON: Duration = Duration::from_secs(20);

/// Writes all the time, and says what it reads.
const TICKS_AND_ECHOES: &str = "stty -echo; \
    (i=0; while :; do i=$((i+1)); echo \"tick $i\"; sleep 0.05; done) & \
    while read -r line; do echo \"got $line\"; done";

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

/// What the daemon says of its own trouble.
fn health(daemon: &Daemon) -> Value {
    daemon.json(&["stats"])["health"].clone()
}

/// The conditions of the daemon at present.
fn conditions(daemon: &Daemon) -> Vec<String> {
    let health = health(daemon);
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
    let began = chrono::Utc::now();
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
    let health = health(&daemon).to_string();
    assert!(!health.contains("make room"), "{health}");
    let healed = chrono::Utc::now();
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
    let audit = daemon.logs().join("audit.jsonl");
    let verified = verify_files(&audit, &[]).expect("it can be read");
    let holes = verified.expect("it is whole").holes;
    let [hole] = &holes[..] else {
        panic!("one hole: {holes:?}");
    };
    assert!(
        began <= hole.from && hole.from <= hole.to && hole.to < healed,
        "{hole:?} between {began} and {healed}"
    );
    daemon.cmd(&["down", "--yes"]).expect(0);
}

/// Every command that helps out of trouble, as it may be given while a directory hangs.
const HELPERS: [&[&str]; 7] = [
    &["status"],
    &["status", "--json"],
    &["stop", "a"],
    &["interrupt", "a"],
    &["down", "--yes"],
    &["pending"],
    &["confirm", "a", "yes"],
];

/// With no daemon that answers, a command looks into the state directory.
#[test]
fn no_command_waits_for_ever_for_a_state_directory_that_hangs() {
    let mut daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    daemon.crash();
    let lock = daemon.root().join("state/missiond/missiond.lock");
    let socket = daemon
        .root()
        .join("run/missiond/missiond.sock")
        .display()
        .to_string();
    let by_socket: [&[&str]; 1] = [&["status", "--socket", &socket]];
    for command in HELPERS.into_iter().chain(by_socket) {
        let Some(_hung) = HungFile::for_word(&lock, command[0]) else {
            return;
        };
        let begun = Instant::now();
        let ended = daemon.cmd(command).expect(124);
        assert!(
            begun.elapsed() < SOON,
            "{command:?} took {:?}",
            begun.elapsed()
        );
        assert!(
            ended.stderr.contains("missiond.lock"),
            "{command:?}: {ended}"
        );
        assert!(!ended.stderr.contains("make room"), "{command:?}: {ended}");
    }
}

#[test]
fn up_ends_in_its_time_and_names_what_hangs() {
    let mut daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    daemon.cmd(&["down", "--yes"]).expect(0);
    daemon.ended();
    let Some(_hung) = HungFile::for_word(&daemon.logs(), "--detached") else {
        return;
    };
    let begun = Instant::now();
    let ended = daemon.cmd(&["up", "--timeout", "3s"]).expect(124);
    assert!(begun.elapsed() < SOON, "took {:?}", begun.elapsed());
    let logs = daemon.logs().display().to_string();
    assert!(
        ended.stderr.contains(&format!("file system of {logs}")),
        "{ended}"
    );
}

/// The log directory hangs with the recordings in it: slots are seen, heard and ended, and it is told with the path.
#[test]
fn a_log_directory_that_hangs_holds_up_nobody() {
    let mut daemon = shells(&["a", "b"], TICKS_AND_ECHOES);
    daemon.cmd(&["down", "--yes"]).expect(0);
    daemon.ended();
    let Some(mut disk) = FrozenDisk::mount(&daemon.logs()) else {
        return;
    };
    daemon.again();
    for slot in ["a", "b"] {
        daemon.wait_state(slot, "idle");
    }
    echoes(&daemon, "before");
    disk.freeze();
    until("the disk to be told", || {
        let told = health(&daemon);
        let hangs = told
            .as_array()?
            .iter()
            .find(|one| one["condition"] == "disk_hangs")?;
        let (text, remedy) = (hangs["text"].as_str()?, hangs["remedy"].as_str()?);
        let logs = daemon.logs().display().to_string();
        assert!(text.contains(&logs) && remedy.contains(&logs), "{hangs}");
        assert!(!remedy.contains("make room"), "{hangs}");
        Some(())
    });
    soon(&daemon, &["status"]);
    soon(&daemon, &["interrupt", "a"]);
    soon(&daemon, &["stop", "a"]);
    let begun = Instant::now();
    let ended = daemon
        .cmd(&["down", "--yes", "--timeout", "10s"])
        .expect(124);
    assert!(begun.elapsed() < SOON, "took {:?}", begun.elapsed());
    let logs = daemon.logs().display().to_string();
    assert!(ended.stderr.contains(&logs), "{ended}");
    disk.thaw();
    daemon.ended();
    daemon.again();
    daemon.wait_state("a", "idle");
    echoes(&daemon, "after");
    for slot in ["a", "b"] {
        let recording = daemon.logs().join(format!("{slot}.cast"));
        let text = fs::read_to_string(recording).expect("a recording");
        assert!(text.contains("got before") || slot == "b");
        assert!(!text.contains("gap: "), "nothing is missing in {slot}");
    }
    daemon.cmd(&["down", "--yes"]).expect(0);
    daemon.ended();
}
