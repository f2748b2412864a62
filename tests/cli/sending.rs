//! `send`, `pending` and `confirm`.

use crate::fake::{Home, PATIENCE, Ping, Reply, dialog};
use missiond::core::model::Fault;
use serde_json::{Value, json};
use std::process::Stdio;

fn answered(text: &str) -> Value {
    json!({
        "slot": "coder", "response": text, "duration_ms": 12, "session_id": "5e55",
        "source": "transcript", "dialog": null
    })
}

fn home_where_send(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Home {
    let home = Home::new();
    // Nobody asks what was requested.
    drop(home.daemon("missiond", move |_, _| reply()));
    home
}

#[test]
fn the_answer_is_printed_exactly() {
    let text = "Two lines,\n\tone \u{1b}[31mred\u{1b}[0m, 日本語  ";
    let home = home_where_send(move || Reply::Result(answered(text)));
    let ran = home.run(&["send", "coder", "hello"]).exits(0);
    assert_eq!(ran.stdout, format!("{text}\n"));
    assert_eq!(ran.stderr, "");
    let json = home
        .run(&["send", "coder", "hello", "--json"])
        .exits(0)
        .json();
    assert_eq!(json["response"], text);
    assert_eq!(json["session_id"], "5e55");
}

#[test]
fn the_request_says_what_was_typed() {
    let home = Home::new();
    let requests = home.daemon("missiond", |_, _| Reply::Result(answered("ok")));
    let sent = |args: &[&str], input: &[u8]| {
        home.run_with_input(args, input).exits(0);
        loop {
            let request = requests.recv_timeout(PATIENCE).unwrap();
            if request.method == "send" {
                return request.params;
            }
        }
    };
    let words = sent(
        &["send", "coder", "fix", "the  tests", "--timeout", "5m"],
        b"",
    );
    assert_eq!(words["text"], "fix the  tests");
    assert_eq!(words["timeout_ms"], 300_000);
    assert_eq!(words["wait"], true);
    let piped = sent(
        &["send", "coder", "-", "--no-wait", "--slash"],
        b"/a\n\nb\n\n",
    );
    assert_eq!(piped["text"], "/a\n\nb\n");
    assert_eq!(
        (&piped["wait"], &piped["slash"]),
        (&json!(false), &json!(true))
    );
    let dashes = sent(&["send", "coder", "--", "--all", "-q"], b"");
    assert_eq!(dashes["text"], "--all -q");
}

#[test]
fn a_message_that_cannot_be_sent_is_wrong_usage() {
    let home = home_where_send(|| Reply::Result(answered("never")));
    home.run(&["send", "coder", " "]).exits(2);
    home.run_with_input(&["send", "coder", "-"], b"\n").exits(2);
    home.run_with_input(&["send", "coder", "-"], b"\xff\xfe")
        .exits(2);
    let long = home
        .run_with_input(&["send", "coder", "-"], &vec![b'x'; 5 << 20])
        .exits(2);
    assert!(long.stderr.contains("4194304 bytes"), "{long:?}");
}

#[test]
fn a_mebibyte_goes_through() {
    let home = home_where_send(|| Reply::Result(answered("long")));
    let control = vec![b'\x01'; 1 << 20];
    home.run_with_input(&["send", "coder", "-"], &control)
        .exits(0);
}

#[test]
fn a_dialog_that_needs_a_person_is_5_with_the_commands_that_answer_it() {
    let home = home_where_send(|| {
        let mut answer = answered("");
        answer["response"] = Value::Null;
        answer["dialog"] = dialog();
        Reply::Result(answer)
    });
    let ran = home.run(&["send", "coder", "test it"]).exits(5);
    assert_eq!(ran.stdout, "");
    for expected in [
        "command: cargo test",
        "missiond confirm coder yes --dialog d7",
        "the turn goes on",
    ] {
        let expected = expected.replace("the turn", "its turn");
        assert!(ran.stderr.contains(&expected), "{ran:?}");
    }
    let ran = home.run(&["send", "coder", "test it", "--json"]).exits(5);
    assert_eq!(ran.json()["dialog"]["id"], "d7");
    assert_eq!(ran.error()["fault"], "needs_person");
}

#[test]
fn faults_of_the_daemon_are_exit_codes() {
    for (fault, code) in [
        (Fault::Failed, 1),
        (Fault::Usage, 2),
        (Fault::Refused, 4),
        (Fault::NeedsPerson, 5),
        (Fault::TimedOut, 124),
    ] {
        let home = home_where_send(move || Reply::refused(fault, "not so"));
        let ran = home.run(&["send", "coder", "hello"]).exits(code);
        assert_eq!(ran.stderr, "missiond: not so\n  do something else\n");
        let error = home
            .run(&["send", "coder", "hello", "--json"])
            .exits(code)
            .error();
        assert_eq!(error["fault"], serde_json::to_value(fault).unwrap());
    }
}

#[test]
fn ctrl_c_leaves_the_turn_running_and_says_so() {
    let home = Home::new();
    let requests = home.daemon("missiond", |_, _| Reply::Silence);
    let child = home
        .command(&["send", "coder", "think"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while requests.recv_timeout(PATIENCE).unwrap().method != "send" {}
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("the turn goes on"), "{stderr}");
    assert!(stderr.contains("missiond interrupt coder"), "{stderr}");
}

#[test]
fn pending_shows_dialogs_harmlessly() {
    let home = Home::new();
    let _requests = home.daemon("missiond", |_, _| {
        let mut dialog = dialog();
        dialog["input"]["command"] = "Proceed?\u{1b}]52;c;bad\u{7}".into();
        Reply::Result(json!([{
            "slot": "coder", "role": "coder", "since": "2026-01-01T10:00:00Z", "dialog": dialog,
            "why": "no rule speaks", "always": {"rule": "Bash(make)", "why_not": null}
        }]))
    });
    let ran = home.run(&["pending"]).exits(0);
    assert!(
        ran.stdout.contains("Proceed?\\x1b]52;c;bad\\x07"),
        "{ran:?}"
    );
    assert!(
        ran.stdout
            .contains("missiond confirm coder always --dialog d7"),
        "{ran:?}"
    );
    assert!(!ran.stdout.contains('\u{1b}'), "{ran:?}");
    let json = home.run(&["pending", "--json"]).exits(0).json();
    assert_eq!(json[0]["dialog"]["id"], "d7");
}

#[test]
fn confirm_passes_the_dialog_and_the_reason() {
    let home = Home::new();
    let requests = home.daemon("missiond", |_, _| {
        Reply::Result(json!({"slot": "coder", "dialog": "d7", "chosen": "No", "rule": null}))
    });
    let args = [
        "confirm",
        "coder",
        "no",
        "--dialog",
        "d7",
        "--reason",
        "use staging",
    ];
    let ran = home.run(&args).exits(0);
    assert_eq!(ran.stdout, "coder: No\n");
    assert_eq!(home.run(&[&args[..], &["-q"]].concat()).exits(0).stdout, "");
    let request = requests
        .iter()
        .find(|request| request.method == "confirm")
        .unwrap();
    let mut params = request.params;
    assert!(params["id"].take().is_string(), "{params}");
    assert_eq!(
        params,
        json!({"slot": "coder", "answer": "no", "dialog": "d7", "reason": "use staging", "id": null})
    );
}

/// What each of these commands asks for, by its name on the socket, and an answer.
fn once() -> Vec<(Vec<&'static str>, &'static str, Value)> {
    let task = json!({
        "id": "t1", "seq": 1, "to": "coder", "text": "x", "state": "done", "by": "user", "slot": "coder",
        "session_id": null, "answer": "ok", "error": null, "submitted_at": "2026-01-01T10:00:00Z",
        "started_at": null, "ended_at": null, "duration_ms": null, "retries": 0, "attempts": 1
    });
    let confirmed = json!({"slot": "coder", "dialog": "d7", "chosen": "Yes", "rule": null});
    vec![
        (vec!["send", "coder", "x"], "send", answered("ok")),
        (vec!["submit", "coder", "x"], "submit", task.clone()),
        (vec!["ask", "coder", "x"], "submit", task),
        (vec!["confirm", "coder", "yes"], "confirm", confirmed),
    ]
}

/// The daemon dies under a request: it is made again, with the same id, of the caller's or made up.
#[test]
fn what_is_done_once_is_asked_for_again_with_the_same_id() {
    for (args, method, answer) in once() {
        for id in [None, Some("mine-1")] {
            let (home, answer) = (Home::new(), answer.clone());
            let asked = std::sync::atomic::AtomicUsize::new(0);
            let requests = home.daemon("missiond", move |_, _| {
                match asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
                    0 => Reply::Raw(Vec::new()),
                    _ => Reply::Result(answer.clone()),
                }
            });
            let mut args = args.clone();
            args.extend(id.iter().flat_map(|id| ["--id", id]));
            home.run(&args).exits(0);
            let heard = requests.try_iter().filter(|heard| heard.method == method);
            let ids: Vec<Value> = heard.map(|heard| heard.params["id"].clone()).collect();
            assert_eq!(ids.len(), 2, "{args:?}: {ids:?}");
            assert_eq!(ids[0], ids[1], "{args:?}");
            assert!(ids[0].is_string(), "{args:?}: {ids:?}");
            assert!(id.is_none_or(|id| ids[0] == id), "{args:?}: {ids:?}");
        }
    }
}

/// The daemon dies while it is looked for, or says who it is: nothing was asked of it yet, and it is waited for.
#[test]
fn a_daemon_that_dies_before_it_is_asked_is_waited_for() {
    let waits = vec!["wait", "coder", "--for", "idle"];
    let idle = json!({"slot": "coder", "state": "idle"});
    for (args, method, answer) in once().into_iter().chain([(waits, "wait", idle)]) {
        // By its config it is asked twice: who it is, and once more on the connection that is used.
        for (named, pings) in [(false, 1), (true, 2)] {
            for lost in 0..pings {
                let home = Home::new();
                let config = home.write("slots.toml", "");
                let answer = answer.clone();
                let requests = home.failing_daemon("missiond", Ping::Lost(lost), move |_, _| {
                    Reply::Result(answer.clone())
                });
                let mut args = args.clone();
                if named {
                    args.extend(["-c", config.to_str().unwrap()]);
                }
                home.run(&args).exits(0);
                let heard: Vec<String> = requests.try_iter().map(|heard| heard.method).collect();
                let done = heard.iter().filter(|heard| *heard == method).count();
                assert_eq!(done, 1, "{args:?}, lost {lost}: {heard:?}");
                let pinged = heard.iter().filter(|heard| *heard == "ping").count();
                assert!(pinged > lost, "{args:?}, lost {lost}: {heard:?}");
            }
        }
    }
}
