//! The verbs that look at slots and act on them.

use crate::fake::{Home, PATIENCE, Reply, dialog, status};
use crate::promised;
use serde_json::{Value, json};
use std::process::Stdio;

fn two_slots() -> Value {
    let mut waits = status("reviewer", "confirming");
    waits["dialog"] = dialog();
    json!([status("coder", "idle"), waits])
}

#[test]
fn status_puts_those_that_need_you_first() {
    let home = Home::new();
    let _requests = home.daemon("missiond", |_, _| Reply::Result(two_slots()));
    let ran = home.run(&["status"]).exits(0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].starts_with("SLOT      ROLE   STATE"), "{ran:?}");
    assert!(
        lines[1].starts_with("reviewer  coder  confirming"),
        "{ran:?}"
    );
    assert!(lines[1].contains("Bash: cargo test"), "{ran:?}");
    assert!(lines[2].starts_with("coder     coder  idle"), "{ran:?}");
    assert_eq!(
        lines[3],
        "1 slot needs you: missiond confirm reviewer yes|no"
    );
}

#[test]
fn status_as_json_has_every_promised_field() {
    let home = Home::new();
    let _requests = home.daemon("missiond", |_, _| Reply::Result(two_slots()));
    let json = home.run(&["status", "--json"]).exits(0).json();
    for field in promised::STATUS {
        assert!(json[0].get(field).is_some(), "no {field} in {json}");
    }
    assert_eq!(json[0]["state"], "idle");
    assert_eq!(json[1]["dialog"]["id"], "d7");
}

#[test]
fn colours_obey_the_flag_the_environment_and_the_pipe() {
    let home = Home::new();
    let _requests = home.daemon("missiond", |_, _| Reply::Result(two_slots()));
    let coloured = |args: &[&str], env: &[(&str, &str)]| {
        let output = home
            .command(args)
            .envs(env.iter().copied())
            .output()
            .unwrap();
        output.stdout.contains(&b'\x1b')
    };
    assert!(!coloured(&["status"], &[]));
    assert!(coloured(&["status", "--color", "always"], &[]));
    assert!(coloured(&["status"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&["status"], &[("NO_COLOR", "1")]));
    assert!(!coloured(
        &["status", "--color", "never"],
        &[("CLICOLOR_FORCE", "1")]
    ));
    assert!(coloured(
        &["status", "--color=always"],
        &[("NO_COLOR", "1")]
    ));
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let home = Home::new();
    let _requests = home.daemon("missiond", |_, _| {
        let turn =
            json!({"time": null, "role": "user", "text": "x".repeat(1000), "session_id": null});
        Reply::Result(json!({"turns": vec![turn; 1000], "left_out": false}))
    });
    for flag in ["-q", "--json"] {
        let mut child = home
            .command(&["history", "coder", flag])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    }
}

#[test]
fn each_slot_is_told_about_and_the_first_failure_is_the_exit_code() {
    let home = Home::new();
    let requests = home.daemon("missiond", |_, _| {
        let error = json!({"fault": "refused", "message": "it is being started"});
        Reply::Result(json!([
            {"slot": "coder", "state": "exited"},
            {"slot": "docs", "state": "starting", "error": error},
        ]))
    });
    let ran = home.run(&["stop", "coder", "@writer"]).exits(4);
    assert_eq!(ran.stdout, "coder: stopped\n");
    assert_eq!(ran.stderr, "missiond: docs: it is being started\n");
    let json = home.run(&["respawn", "--all", "--json"]).exits(4);
    assert_eq!(json.json()[1]["error"]["fault"], "refused");
    let asked: Vec<(String, Value)> = requests
        .try_iter()
        .filter(|request| request.method != "ping")
        .map(|request| (request.method, request.params))
        .collect();
    assert_eq!(
        asked,
        [
            ("stop".to_string(), json!({"slots": ["coder", "@writer"]})),
            ("restart".to_string(), json!({"slots": []})),
        ]
    );
}

#[test]
fn interrupt_reaches_every_slot_of_a_role() {
    let home = Home::new();
    let _requests = home.daemon("missiond", |method, params| {
        Reply::Result(match method {
            "status" => two_slots(),
            _ => json!({"slot": params["slot"], "effect": "interrupted"}),
        })
    });
    let ran = home.run(&["interrupt", "@coder"]).exits(0);
    assert_eq!(ran.stdout, "coder: interrupted\nreviewer: interrupted\n");
}

#[test]
fn the_screen_is_shown_and_not_obeyed() {
    let home = Home::new();
    let requests = home.daemon("missiond", |_, _| {
        let lines = ["\u{1b}[1mbold\u{1b}[0m \u{1b}[2Jx", "\u{9b}31m"];
        Reply::Result(json!({
            "slot": "coder", "cols": 80, "rows": 2, "title": "t", "cursor": [0, 0], "lines": lines
        }))
    });
    let plain = home.run(&["screen", "coder"]).exits(0).stdout;
    assert!(!plain.contains(['\u{1b}', '\u{9b}']), "{plain:?}");
    let ansi = home
        .run(&["screen", "coder", "--ansi", "-n", "5"])
        .exits(0)
        .stdout;
    assert_eq!(
        ansi,
        "\u{1b}[1mbold\u{1b}[0m \\x1b[2Jx\u{1b}[0m\n\\x9b31m\u{1b}[0m\n"
    );
    let json = home.run(&["screen", "coder", "--json"]).exits(0);
    assert!(!json.stdout.contains(['\u{1b}', '\u{9b}']), "{json:?}");
    assert_eq!(json.json()["lines"][1], "\u{9b}31m");
    let asked = requests
        .iter()
        .filter(|request| request.method == "screen")
        .nth(1);
    assert_eq!(
        asked.unwrap().params,
        json!({"slot": "coder", "lines": 5, "ansi": true})
    );
}

#[test]
fn write_and_keys_send_the_bytes_that_are_meant() {
    let home = Home::new();
    let requests = home.daemon("missiond", |_, _| {
        Reply::Result(json!({"slot": "shell", "state": "idle"}))
    });
    home.run(&["write", "shell", r"ls\r\x00"]).exits(0);
    home.run_with_input(&["write", "shell", "-"], b"\\r\xff")
        .exits(0);
    home.run(&["write", "shell", r"ok\xZZ"]).exits(2);
    home.run(&["keys", "shell", "down", "enter"]).exits(0);
    home.run(&["keys", "shell", "down", "entre"]).exits(2);
    let written: Vec<Value> = requests
        .try_iter()
        .filter(|request| request.method == "write")
        .map(|request| request.params["bytes"].clone())
        .collect();
    let expected = [json!(b"ls\r\0"), json!(b"\\r\xff"), json!(b"\x1b[B\r")];
    assert_eq!(written, expected);
}

#[test]
fn a_search_for_plain_text_finds_that_text_and_no_other() {
    let home = Home::new();
    let requests = home.daemon("missiond", |_, _| Reply::Result(json!([])));
    let texts = [
        "error[E0308]",
        "a.b",
        "(",
        "x*",
        r"\d+",
        "^$",
        "-- a",
        "é|ü",
    ];
    for text in texts {
        home.run(&["search", "-F", "coder", "--", text]).exits(0);
    }
    home.run(&["search", "coder", "--fixed-strings", "a.b"])
        .exits(0);
    home.run(&["search", "coder", "a.b"]).exits(0);
    let asked: Vec<_> = requests
        .try_iter()
        .filter(|request| request.method == "search")
        .map(|request| request.params["pattern"].as_str().unwrap().to_owned())
        .collect();
    let [literal @ .., long, regex] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    let wrong = home.run(&["search", "coder", "("]).exits(2).stderr;
    assert!(wrong.contains("search -F"), "{wrong}");
    assert_eq!((long.as_str(), regex.as_str()), (r"a\.b", "a.b"));
    assert_eq!(literal.len(), texts.len());
    for (pattern, text) in literal.iter().zip(texts) {
        let pattern = regex::Regex::new(pattern).expect("a regular expression");
        for other in texts {
            let is_in = other.contains(text);
            assert_eq!(pattern.is_match(other), is_in, "{pattern} in {other}");
        }
        let around = format!("1{text}2");
        let found = pattern.find(&around).expect("it is there");
        assert_eq!(found.as_str(), text);
    }
}

#[test]
fn small_answers_read_well() {
    let home = Home::new();
    let _requests = home.daemon("missiond", |method, _| {
        Reply::Result(match method {
            "stats" => json!({"total": 4, "running": 3, "idle": 1, "busy": 2, "stopped": 1}),
            "why" => json!({"slot": "coder", "state": "idle", "evidence": [
                {"witness": "screen", "says": "an empty input box"},
                {"witness": "hook", "says": "Stop"},
            ]}),
            "search" => json!([{"place": "screen", "line": 3, "text": "error: \u{7}x"}]),
            "reload" => json!({"changes": ["slot docs added"]}),
            "history" => json!({"turns": [{
                "time": null, "role": "tool_call", "text": "toolu_1", "tool": "Bash",
                "input": {"command": "cargo test", "timeout": 5}, "session_id": null
            }], "left_out": true}),
            other => panic!("not asked for: {other}"),
        })
    });
    let said = |args: &[&str]| home.run(args).exits(0).stdout;
    assert_eq!(
        said(&["stats"]),
        "4 slots: 3 running (1 idle, 2 busy), 1 stopped\n"
    );
    assert_eq!(
        said(&["why", "coder"]),
        "coder: idle\n  screen  an empty input box\n  hook    Stop\n"
    );
    assert_eq!(
        said(&["search", "coder", "error"]),
        "screen:3: error: \\x07x\n"
    );
    assert_eq!(said(&["reload"]), "slot docs added\n");
    let history = home.run(&["history", "coder"]).exits(0);
    assert_eq!(
        history.stdout,
        "tool_call Bash\n  command: cargo test\n  timeout: 5\n"
    );
    assert_eq!(
        history.stderr,
        "older entries do not fit into one answer; `missiond search` reads all of them\n"
    );
}

#[test]
fn down_returns_when_the_daemon_has_ended() {
    let home = Home::new();
    let mut daemon = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    let pid = daemon.id();
    let requests = home.fake_process("missiond", pid, move |method, _| {
        if method != "down" {
            return Reply::Result(json!([]));
        }
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        Reply::Stream(vec![])
    });
    let ran = home.run(&["down", "--keep"]).exits(0);
    assert_eq!(ran.stdout, "missiond is down\n");
    assert!(daemon.try_wait().unwrap().is_some(), "it runs still");
    let down = std::iter::from_fn(|| requests.recv_timeout(PATIENCE).ok())
        .find(|request| request.method == "down");
    assert_eq!(down.unwrap().params, json!({"keep": true}));
}

#[test]
fn down_ends_no_work_unless_it_was_told_to() {
    let table = [
        ("thinking", json!({}), "thinking"),
        (
            "responding",
            json!({"queued": 2}),
            "responding and 2 queued messages",
        ),
        ("tool_running", json!({}), "tool_running"),
        ("confirming", json!({}), "confirming"),
        ("idle", json!({"background": 1}), "1 background command"),
        ("idle", json!({"queued": 1}), "1 queued message"),
        (
            "starting",
            json!({"pid": null, "queued": 1}),
            "starting and 1 queued message",
        ),
        ("idle", json!({"task_id": "t1"}), "task t1"),
        ("idle", json!({"foreground": "sleep"}), "runs sleep"),
        ("idle", json!({}), ""),
        ("starting", json!({}), ""),
        ("error", json!({"pid": null}), ""),
        ("exited", json!({"pid": null}), ""),
    ];
    for (state, more, what) in table {
        let at_work = !what.is_empty();
        let home = Home::new();
        let mut slot = status("coder", state);
        let fields = slot.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        // A process that has ended already is not waited for.
        let requests = home.fake_process("missiond", 0, move |method, _| match method {
            "status" => Reply::Result(json!([slot])),
            "sessions" => Reply::Result(json!([])),
            _ => Reply::Stream(vec![]),
        });
        let was_told = || requests.try_iter().any(|asked| asked.method == "down");
        let ran = home.run(&["down"]).exits(if at_work { 4 } else { 0 });
        assert_eq!(was_told(), !at_work, "{state} {more}: {ran:?}");
        if at_work {
            let slot = format!("1 slot (coder: {what})");
            assert!(ran.stderr.contains(&slot), "{ran:?}");
            let ran = home.run(&["down", "--yes"]).exits(0);
            assert!(was_told(), "{state} {more}: {ran:?}");
            assert!(ran.stdout.contains(&slot), "{ran:?}");
            let drops = ran.stdout.contains("; dropped: ");
            assert_eq!(drops, what.contains("queued"), "{ran:?}");
        }
    }
}
