//! `logs`, with and without a daemon.

use crate::fake::{Home, Reply};
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

const OLD: &str = "2026-01-01T10:00:00.000+00:00 state idle\n";

fn home_with_log(lines: &str) -> Home {
    let home = Home::new();
    home.write("slots.toml", "[daemon]\nlogs = \"my-logs\"\n");
    home.write("my-logs/coder.log", lines);
    home.write(
        "my-logs/coder.events.jsonl",
        "{\"seq\":1,\"time\":\"2026-01-01T10:00:00Z\"}\n",
    );
    home
}

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn logs_need_no_daemon() {
    let home = home_with_log("one\ntwo\nthree\n");
    let logs = |args: &[&str]| {
        home.run(&[&["logs", "coder", "-c", "slots.toml"], args].concat())
            .exits(0)
    };
    assert_eq!(logs(&[]).stdout, "one\ntwo\nthree\n");
    assert_eq!(logs(&["-n", "2"]).stdout, "two\nthree\n");
    assert_eq!(logs(&["-n", "0"]).stdout, "");
    assert_eq!(logs(&["--json"]).json()["seq"], 1);
}

#[test]
fn since_leaves_out_what_is_older() {
    let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, false);
    let new = format!("{now} message hello\n  second line\n");
    let home = home_with_log(&format!("{OLD}{new}"));
    let ran = home
        .run(&["logs", "coder", "-c", "slots.toml", "--since", "10m"])
        .exits(0);
    assert_eq!(ran.stdout.lines().count(), 2, "{ran:?}");
    assert!(ran.stdout.ends_with(" message hello\n  second line\n"));
    let since = [
        "logs",
        "coder",
        "-c",
        "slots.toml",
        "--since",
        "2025-12-31T00:00:00Z",
    ];
    let all = home.run(&[&since[..], &["--raw"]].concat()).exits(0).stdout;
    assert_eq!(all, format!("{OLD}{new}"));
    home.run(&["logs", "coder", "--since", "yesterday"])
        .exits(2);
}

#[test]
fn control_characters_are_shown_unless_asked_for() {
    let home = home_with_log("a\u{1b}[2Jb\n");
    let logs = |flag: &str| {
        home.run(&["logs", "coder", "-c", "slots.toml", flag])
            .exits(0)
            .stdout
    };
    assert_eq!(logs("-q"), "a\\x1b[2Jb\n");
    assert_eq!(logs("--raw"), "a\u{1b}[2Jb\n");
}

#[test]
fn the_daemon_knows_where_its_logs_are() {
    let home = Home::new();
    home.write("logs/coder.log", "from the daemon's directory\n");
    let _requests = home.daemon("missiond", |_, _| Reply::Silence);
    let ran = home.run(&["logs", "coder"]).exits(0);
    assert_eq!(ran.stdout, "from the daemon's directory\n");
}

#[test]
fn what_cannot_be_shown_is_explained() {
    let home = home_with_log("one\n");
    let unknown = home.run(&["logs", "nobody", "-c", "slots.toml"]).exits(2);
    assert!(
        unknown.stderr.contains("there are logs of: coder"),
        "{unknown:?}"
    );
    home.write("secret.log", "not a slot\n");
    home.run(&["logs", "../secret", "-c", "slots.toml"])
        .exits(2);
    let nowhere = home.run(&["logs", "coder"]).exits(3);
    assert!(nowhere.stderr.contains("add -c slots.toml"), "{nowhere:?}");
}

#[test]
fn following_loses_and_doubles_nothing_over_rotations() {
    let home = home_with_log("line 0\n");
    let log = home.path("my-logs/coder.log");
    let mut child = home
        .command(&["logs", "coder", "-f", "-c", "slots.toml"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert_eq!(next(), "line 0");
    for round in 1..=5 {
        for line in 0..200 {
            append(&log, &format!("round {round} line {line}\n"));
        }
        std::fs::rename(&log, home.path("my-logs/coder.log.1")).unwrap();
        append(&log, &format!("round {round} is over\n"));
        for line in 0..200 {
            assert_eq!(next(), format!("round {round} line {line}"));
        }
        assert_eq!(next(), format!("round {round} is over"));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A home with logs of two slots, whose lines came in turns.
fn home_of_two() -> Home {
    let at = |second: u32, text: &str| format!("2026-01-01T10:00:{second:02}.000+00:00  {text}\n");
    let home = home_with_log(&(at(1, "state one") + "  more of one\n" + &at(3, "state three")));
    home.write(
        "my-logs/docs.log",
        &(at(2, "state two\u{1b}[2J") + &at(4, "state four")),
    );
    home.write(
        "my-logs/docs.events.jsonl",
        "{\"seq\":2,\"time\":\"2026-01-01T09:00:00Z\"}\n",
    );
    home
}

#[test]
fn the_logs_of_all_slots_come_in_the_order_of_their_times() {
    let home = home_of_two();
    let logs = |args: &[&str]| {
        let line = [&["logs", "-c", "slots.toml"], args].concat();
        home.run(&line).exits(0).stdout
    };
    let all = logs(&[]);
    insta::assert_snapshot!(all, @r"
    coder      │ 2026-01-01 10:00:01  state one
    coder      │   more of one
    docs       │ 2026-01-01 10:00:02  state two\x1b[2J
    coder      │ 2026-01-01 10:00:03  state three
    docs       │ 2026-01-01 10:00:04  state four
    ");
    for same in [&["--all"][..], &["coder", "docs"]] {
        assert_eq!(logs(same), all, "{same:?}");
    }
    let last: Vec<&str> = all.lines().skip(3).collect();
    assert_eq!(logs(&["-n", "2"]).lines().collect::<Vec<_>>(), last);
    assert_eq!(
        logs(&["--since", "2026-01-01T10:00:02Z"]).lines().count(),
        3
    );
    let seqs = logs(&["--json"]);
    assert!(seqs.starts_with("{\"seq\":2"), "{seqs}");
    let coloured = logs(&["--color", "always"]);
    assert!(
        coloured.contains("\u{1b}[") && !coloured.contains("\u{1b}[2J"),
        "{coloured:?}"
    );
    home.run(&["logs", "coder", "nobody", "-c", "slots.toml"])
        .exits(2);
}

#[test]
fn following_all_slots_shows_one_that_begins_later() {
    let home = home_of_two();
    let mut child = home
        .command(&["logs", "-f", "-n", "1", "-c", "slots.toml"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || lines.next().unwrap().unwrap();
    assert!(next().ends_with("state four"));
    append(
        &home.path("my-logs/coder.log"),
        "2026-01-01T10:00:05.000+00:00  state five\n",
    );
    assert!(next().ends_with("state five"));
    append(
        &home.path("my-logs/late.log"),
        "2026-01-01T10:00:06.000+00:00  state six\n",
    );
    append(&home.path("my-logs/late.events.jsonl"), "{}\n");
    assert_eq!(next(), "late       │ 2026-01-01 10:00:06  state six");
    child.kill().unwrap();
    child.wait().unwrap();
}
