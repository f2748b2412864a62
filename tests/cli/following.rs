//! `events` and `wait`.

use crate::fake::{Home, Reply, event, status};
use missiond::control::envelope::{self, Line};
use missiond::control::protocol::Fault;
use serde_json::{Value, json};

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
    // Nobody asks what was requested.
    drop(home.daemon("missiond", move |_, _| Reply::Stream(lines())));
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
    let ran = home
        .run(&["wait", "--all", "--for", "idle", "--timeout", "1s"])
        .exits(124);
    assert_eq!(ran.stdout, "a: idle\n");
    assert!(ran.stderr.contains("b is still thinking"), "{ran:?}");
}
