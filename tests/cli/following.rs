//! `events` and `wait`.

use crate::fake::{Home, Ping, Reply, event, status};
use missiond::core::model::Fault;
use missiond::core::model::envelope::{self, Line, Request};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::mpsc::Receiver;

fn snapshot(seq: u64) -> Line {
    event(
        seq,
        json!({"event": "snapshot", "status": status("coder", "idle")}),
    )
}

fn live() -> Line {
    Line::notification(envelope::LIVE, json!({}))
}

fn streaming(lines: impl Fn() -> Vec<Line> + Send + Sync + 'static) -> Home {
    let home = Home::new();
    // Nobody asks what was requested. A client that comes back hears nothing new.
    drop(home.daemon(
        "missiond",
        move |_, params| match params["after"].is_u64() {
            true => Reply::Stream(Vec::new()),
            false => Reply::Stream(lines()),
        },
    ));
    home
}

fn seqs(stdout: &str) -> Vec<u64> {
    let lines = stdout.lines().map(serde_json::from_str::<Value>);
    lines
        .map(|line| line.unwrap()["seq"].as_u64().unwrap())
        .collect()
}

#[test]
fn events_end_after_the_snapshot() {
    let home = streaming(|| {
        vec![
            snapshot(7),
            live(),
            event(8, json!({"event": "interrupted"})),
        ]
    });
    let ran = home.run(&["events"]).exits(0);
    assert_eq!(seqs(&ran.stdout), [7]);
    let first: Value = serde_json::from_str(ran.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(first["status"]["state"], "idle");
}

#[test]
fn events_go_on_with_f_and_keep_what_is_new_to_this_program() {
    let home = streaming(|| {
        vec![
            snapshot(7),
            live(),
            event(
                8,
                json!({"event": "state", "from": "idle", "to": "thinking"}),
            ),
            Line::notification("weather", json!({"sunny": true})),
            event(9, json!({"event": "teleported", "where": "\u{9b}there"})),
        ]
    });
    let ran = home.run(&["events", "-f"]).exits(1);
    assert_eq!(seqs(&ran.stdout), [7, 8, 9]);
    assert!(ran.stdout.contains(r#""where":"\u009bthere""#), "{ran:?}");
    assert!(ran.stderr.contains("has ended the stream"), "{ran:?}");
    assert!(ran.stderr.contains("10 times in a row"), "{ran:?}");
}

/// Each connection is the next one of these; every one but the last is cut off.
fn cut_off(connections: Vec<Vec<Line>>) -> (Home, Receiver<Request>) {
    let home = Home::new();
    let left = Mutex::new(connections.into_iter());
    let requests = home.daemon("missiond", move |_, _| {
        let mut left = left.lock().unwrap();
        let lines = left.next().expect("no more connections");
        match left.len() {
            0 => Reply::Open(lines),
            _ => Reply::Stream(lines),
        }
    });
    (home, requests)
}

#[test]
fn events_go_on_behind_the_last_position_after_the_daemon_was_lost() {
    let gap = json!({"event": "gap", "after": 8, "first": 30, "slot": null});
    let (home, requests) = cut_off(vec![
        vec![
            snapshot(7),
            live(),
            event(8, json!({"event": "interrupted"})),
        ],
        vec![event(29, gap), event(30, json!({"event": "interrupted"}))],
        vec![],
        vec![event(31, json!({"event": "interrupted"}))],
    ]);
    let mut child = home
        .command(&["events", "-f", "coder"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let heard: Vec<String> = lines.take(5).map(Result::unwrap).collect();
    assert_eq!(seqs(&heard.join("\n")), [7, 8, 29, 30, 31]);
    child.kill().unwrap();
    let mut told = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut told)
        .unwrap();
    child.wait().unwrap();
    assert!(told.contains("waiting up to 30s"), "{told}");
    let asked: Vec<Value> = requests
        .try_iter()
        .filter(|request| request.method == "events")
        .map(|request| request.params["after"].clone())
        .collect();
    assert_eq!(asked, [json!(null), json!(8), json!(30), json!(30)]);
}

/// A connection to a daemon that is killed before it answers, or is stuck, says nothing about the next connection.
#[test]
fn a_connection_that_is_not_answered_is_made_again() {
    let home = Home::new();
    let streams = Mutex::new(0);
    home.write("slots.toml", "");
    // It is asked who it is to find it, then on the connection of the first stream, then on that of the second.
    drop(
        home.failing_daemon("missiond", Ping::Unanswered(2), move |_, _| {
            let mut streams = streams.lock().unwrap();
            *streams += 1;
            match *streams {
                1 => Reply::Stream(vec![snapshot(7), live()]),
                _ => Reply::Open(vec![event(8, json!({"event": "interrupted"}))]),
            }
        }),
    );
    let mut child = home
        .command(&["events", "-f", "-c", "slots.toml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let heard: Vec<String> = lines.take(2).map(Result::unwrap).collect();
    child.kill().unwrap();
    let told = child.wait_with_output().unwrap();
    assert_eq!(seqs(&heard.join("\n")), [7, 8], "{told:?}");
}

#[test]
fn events_after_a_position_end_when_all_is_told() {
    let (home, requests) = cut_off(vec![vec![
        event(8, json!({"event": "interrupted"})),
        live(),
    ]]);
    let ran = home.run(&["events", "--after", "7"]).exits(0);
    assert_eq!(seqs(&ran.stdout), [8]);
    let asked = requests.iter().find(|request| request.method == "events");
    assert_eq!(asked.unwrap().params["after"], 7);
}

#[test]
fn a_listener_that_was_too_slow_is_told_and_ends_with_1() {
    let lagged = || Line::notification(envelope::LAGGED, json!({"missed": 12}));
    let home = streaming(move || vec![snapshot(7), live(), lagged()]);
    let ran = home.run(&["events", "-f", "coder"]).exits(1);
    assert!(ran.stderr.contains("12 events were missed"), "{ran:?}");
}

#[test]
fn wait_asks_for_what_was_said() {
    let home = Home::new();
    let requests = home.daemon("missiond", |_, _| {
        let answer = json!({"slot": "coder", "state": "idle", "matched": null, "exit_code": null});
        Reply::Result(answer)
    });
    let asked = |args: &[&str]| {
        home.run(&[&["wait", "coder"], args].concat()).exits(0);
        requests
            .iter()
            .find(|request| request.method == "wait")
            .unwrap()
            .params
    };
    let states = asked(&["--for", "idle,confirming", "--timeout", "5m"]);
    assert_eq!(states["states"], json!(["idle", "confirming"]));
    assert_eq!(states["timeout_ms"], 300_000);
    assert_eq!(asked(&["--exit", "-q"])["exit"], true);
    assert_eq!(asked(&["--quiet", "500ms"])["quiet_ms"], 500);
    assert_eq!(asked(&["--output", "ok$"])["output"], "ok$");
}

#[test]
fn wait_for_several_waits_for_all_of_them() {
    let home = Home::new();
    let _requests = home.daemon("missiond", |method, params| match method {
        "status" => Reply::Result(json!([status("a", "idle"), status("b", "thinking")])),
        _ if params["slot"] == "b" => Reply::refused(Fault::TimedOut, "b is still thinking"),
        _ => {
            Reply::Result(json!({"slot": "a", "state": "idle", "matched": null, "exit_code": null}))
        }
    });
    // A number without a unit is seconds.
    let ran = home
        .run(&["wait", "--all", "--for", "idle", "--timeout", "1"])
        .exits(124);
    assert_eq!(ran.stdout, "a: idle\n");
    assert!(ran.stderr.contains("b is still thinking"), "{ran:?}");
}
