//! The four tools of agents, over the control socket.

use crate::stage::*;
use missiond::control::client::CallError;
use missiond::control::requests::*;
use missiond::core::model::*;
use std::time::{Duration, Instant};

fn exec(line: &str) -> ExecParams {
    let params = serde_json::json!({"command": line});
    serde_json::from_value(params).expect("params")
}

fn stdin(id: &str, input: &str, yield_ms: u64) -> StdinParams {
    let params = serde_json::json!({"session_id": id, "input": input, "yield_ms": yield_ms});
    serde_json::from_value(params).expect("params")
}

#[test]
fn a_command_that_ends_is_not_waited_for_any_longer() {
    let daemon = daemon();
    let began = Instant::now();
    let mut params = exec("echo out; exit 3");
    params.look.yield_ms = Some(60_000);
    let answer = call::<UnifiedExec>(&daemon, params).unwrap();
    assert!(began.elapsed() < Duration::from_secs(50));
    assert_eq!(answer.output, "out\n");
    assert_eq!((answer.success, answer.running), (true, false));
    assert_eq!((answer.exit_code, answer.truncated), (Some(3), false));
    let json = serde_json::to_value(&answer).unwrap();
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    let promised = [
        "exit_code",
        "output",
        "running",
        "session_id",
        "success",
        "truncated",
    ];
    assert_eq!(keys, promised);
    let again = call::<WriteStdin>(&daemon, stdin(&answer.session_id, "", 0)).unwrap();
    assert_eq!((again.output.as_str(), again.exit_code), ("", Some(3)));
    let Err(CallError::Rpc(error)) = call::<WriteStdin>(&daemon, stdin(&answer.session_id, "x", 0))
    else {
        panic!("a program that has ended can't be written to");
    };
    assert_eq!(error.fault, Fault::Refused);
}

#[test]
fn each_look_gives_what_came_since_the_last() {
    let daemon = daemon();
    let mut params = exec("stty -echo; echo ready; while read -r l; do echo \"got $l\"; done");
    params.look.yield_ms = Some(0);
    let first = call::<UnifiedExec>(&daemon, params).unwrap();
    assert!(first.running && first.exit_code.is_none());
    let id = &first.session_id;
    let mut seen = first.output;
    while !seen.contains("ready") {
        seen += &call::<WriteStdin>(&daemon, stdin(id, "", 50))
            .unwrap()
            .output;
    }
    let mut answer = call::<WriteStdin>(&daemon, stdin(id, "one\n", 50))
        .unwrap()
        .output;
    while !answer.contains("got one") {
        answer += &call::<WriteStdin>(&daemon, stdin(id, "", 50))
            .unwrap()
            .output;
    }
    assert_eq!(answer, "got one\n");
    let listed = call::<ListPtySessions>(&daemon, SessionsParams::default()).unwrap();
    assert_eq!(listed.sessions.len(), 1);
    let (session_id, force) = (id.clone(), false);
    let closed = call::<ClosePtySession>(&daemon, ClosePtyParams { session_id, force }).unwrap();
    assert!(closed.success);
    nothing_left(&daemon);
}

#[test]
fn a_budget_keeps_head_and_tail() {
    let daemon = daemon();
    let mut params = exec("seq 1 100000; echo 'the end 🦀'");
    params.look.yield_ms = Some(50_000);
    params.look.max_tokens = Some(100);
    let answer = call::<UnifiedExec>(&daemon, params).unwrap();
    assert!(
        answer.truncated && answer.output.chars().count() <= 400,
        "{answer:?}"
    );
    assert!(answer.output.starts_with("1\n2\n") && answer.output.ends_with("the end 🦀\n"));
    assert!(
        answer.output.contains("characters were left out"),
        "{answer:?}"
    );
}

/// More than one answer of `output` holds.
#[test]
fn all_that_came_has_its_head_and_its_tail_however_much() {
    let daemon = daemon();
    for raw in [false, true] {
        let mut params = exec("seq 1 300000; echo 'the end'");
        (params.look.yield_ms, params.look.raw) = (Some(50_000), raw);
        let answer = call::<UnifiedExec>(&daemon, params).unwrap();
        assert!(answer.truncated && !answer.running);
        let shown = answer.output.replace('\r', "");
        assert!(shown.starts_with("1\n2\n"), "{shown:.40}");
        assert!(shown.ends_with("299999\n300000\nthe end\n"));
        let rest = call::<WriteStdin>(&daemon, stdin(&answer.session_id, "", 0)).unwrap();
        assert_eq!((rest.output.as_str(), rest.truncated), ("", false));
    }
}

#[test]
fn bad_requests_start_nothing() {
    let daemon = daemon();
    for params in [
        serde_json::json!({"command": ""}),
        serde_json::json!({"command": []}),
        serde_json::json!({"command": ["no-such-program"]}),
        serde_json::json!({"command": "ls", "cwd": "/no/such/dir"}),
        serde_json::json!({"command": "ls", "owner": ""}),
    ] {
        let params = serde_json::from_value(params).unwrap();
        let Err(CallError::Rpc(error)) = call::<UnifiedExec>(&daemon, params) else {
            panic!("it was started");
        };
        assert_eq!(error.fault, Fault::Usage, "{error}");
    }
    nothing_left(&daemon);
}

#[test]
fn what_runs_in_a_session_commands_no_other() {
    let daemon = daemon();
    spawn(&daemon, &["--id", "victim", "--", "cat"]);
    let missiond = env!("CARGO_BIN_EXE_missiond");
    let script = format!(
        "for v in 'sessions' 'close victim' 'write victim x' 'output victim' 'spawn -- cat' 'exec -- ls'; do \
           {missiond} $v >/dev/null; echo \"$v: $?\"; done"
    );
    crate::stage::script(&daemon, "inside", &script);
    wait_exit(&daemon, "inside");
    let said = output(&daemon, "inside");
    for verb in [
        "sessions",
        "close victim",
        "write victim x",
        "output victim",
        "spawn -- cat",
        "exec -- ls",
    ] {
        assert!(said.contains(&format!("{verb}: 4\n")), "{said}");
    }
    assert_eq!(ids(&daemon), ["victim", "inside"]);
}
