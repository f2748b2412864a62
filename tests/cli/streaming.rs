//! Commands that print a stream end when the reader of their output goes away, also while nothing is printed.

use crate::fake::{Home, PATIENCE, Reply, event, status};
use missiond::core::model::envelope::{self, Line};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Every command line that prints until it is ended, here with a fake daemon that has nothing more to say.
const STREAMS: &[&[&str]] = &[
    &["events", "-f"],
    &["events", "-f", "--data", "coder"],
    &["logs", "-f"],
    &["logs", "coder", "-f"],
    &["logs", "coder", "-f", "--json"],
    &["session", "follow", "coder"],
    &["session", "follow", "coder", "--json"],
    &["audit", "tail", "-f"],
    &["audit", "tail", "-f", "--json"],
];

/// Flags by which a verb says that it goes on for ever.
const GOES_ON: [&str; 2] = ["--follow", "--watch"];
/// These have such a flag and print on a terminal alone: a pipe is refused.
const TERMINAL_ONLY: &[&str] = &["status", "session list"];

fn output(waits: bool) -> Reply {
    if waits {
        return Reply::Silence;
    }
    Reply::Result(json!({
        "slot": "coder", "text": "one line\n", "start": 0, "end": 9, "total": 9,
        "dropped_bytes": 0, "truncated": false, "running": true, "exit_code": null, "signal": null
    }))
}

fn daemon_of_streams() -> Home {
    let home = Home::new();
    home.write("logs/coder.log", "2026-01-01T10:00:00.000+00:00  state\n");
    home.write("logs/coder.events.jsonl", "{\"seq\":1}\n");
    home.write("logs/audit.jsonl", "{\"seq\":1}\n");
    // Nobody asks what was requested.
    drop(home.daemon("missiond", |method, params| match method {
        "output" => output(params["wait_ms"].is_u64()),
        "events" => Reply::Open(vec![
            event(
                7,
                json!({"event": "snapshot", "status": status("coder", "idle")}),
            ),
            Line::notification(envelope::LIVE, json!({})),
        ]),
        other => panic!("nobody asks for {other}"),
    }));
    home
}

/// Waits for the end of a process, and kills one that does not come to it.
fn ends(child: &mut Child) -> Option<i32> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status.code().unwrap_or(-1));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    None
}

#[test]
fn every_stream_ends_when_its_reader_has_gone() {
    let home = daemon_of_streams();
    for args in STREAMS {
        let mut child = home
            .command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        reader.read_line(&mut first).unwrap();
        assert!(first.ends_with('\n'), "{args:?} printed {first:?}");
        // Nothing more is ever written: only the pipe itself can tell that nobody reads it.
        drop(reader);
        let code = ends(&mut child);
        let mut told = String::new();
        child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut told)
            .unwrap();
        assert_eq!((code, told.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn an_mcp_server_ends_when_its_client_reads_no_more() {
    let home = daemon_of_streams();
    let mut child = home
        .command(&["mcp"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Its input stays open: only its output tells.
    let _input = child.stdin.take().unwrap();
    drop(child.stdout.take().unwrap());
    assert_eq!(ends(&mut child), Some(0));
}

#[test]
fn a_stream_into_a_file_goes_on() {
    let home = daemon_of_streams();
    let written = home.path("written");
    let file = std::fs::File::create(&written).unwrap();
    let mut child = home
        .command(&["logs", "coder", "-f"])
        .stdout(file)
        .spawn()
        .unwrap();
    let mut line = 0;
    let begun = Instant::now();
    while line < 3 && begun.elapsed() < PATIENCE {
        let text = std::fs::read_to_string(&written).unwrap();
        if text.lines().count() > line {
            line += 1;
            let log = home.path("logs/coder.log");
            let mut log = std::fs::OpenOptions::new().append(true).open(log).unwrap();
            writeln!(log, "line {line}").unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let still_runs = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(still_runs && line == 3, "{line} lines came");
}

#[test]
fn every_verb_that_goes_on_is_in_the_table() {
    let home = Home::new();
    let going_on: Vec<String> = all_verbs(&home)
        .into_iter()
        .filter(|verb| {
            let help = help_of(&home, verb);
            GOES_ON.iter().any(|flag| has_flag(&help, flag))
        })
        .collect();
    assert!(going_on.contains(&"audit tail".to_owned()), "{going_on:?}");
    for verb in going_on {
        let in_table = STREAMS.iter().any(|args| args.join(" ").starts_with(&verb));
        let refuses = TERMINAL_ONLY.contains(&verb.as_str());
        assert!(in_table || refuses, "`{verb}` streams and is not tested");
    }
    for verb in TERMINAL_ONLY {
        let words: Vec<&str> = verb.split(' ').chain(["--watch"]).collect();
        let ran = home.run(&words).exits(2);
        assert!(ran.stderr.contains("draws on a terminal"), "{ran:?}");
    }
}

/// Every verb, and every verb below one, such as `audit tail`.
pub fn all_verbs(home: &Home) -> Vec<String> {
    let with_those_below = |verb: String| {
        let below = verbs(home, &[&verb]).into_iter();
        let below: Vec<String> = below.map(|sub| format!("{verb} {sub}")).collect();
        std::iter::once(verb).chain(below)
    };
    let verbs = verbs(home, &[]).into_iter();
    verbs.flat_map(with_those_below).collect()
}

pub fn help_of(home: &Home, verb: &str) -> String {
    let words: Vec<&str> = verb.split(' ').collect();
    let help = [&words[..], &["--help"]].concat();
    home.run(&help).exits(0).stdout
}

pub fn has_flag(help: &str, flag: &str) -> bool {
    help.lines()
        .any(|line| line.trim_start().starts_with('-') && line.contains(flag))
}

/// The verbs, or those below a verb, as its help lists them.
fn verbs(home: &Home, above: &[&str]) -> Vec<String> {
    let help = home.run(&[above, &["--help"]].concat()).exits(0).stdout;
    let named = help.lines().filter_map(|line| {
        let word = line.strip_prefix("  ")?.split_whitespace().next()?;
        let is_word = word.chars().all(|c| c.is_ascii_lowercase());
        (is_word && !line.starts_with("   ") && line.contains(&format!("{word}  ")))
            .then(|| word.to_owned())
    });
    named
        .filter(|word| word != "help" && word != "missiond")
        .collect()
}
