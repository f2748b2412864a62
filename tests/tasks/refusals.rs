//! What can't be done is said, with the next step, and nothing is left of it. No Claude Code is needed for this.

use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use missiond::control::client::{CallError, Client};
use missiond::control::requests::{Submit, SubmitParams};
use missiond::core::model::Fault;
use missiond::core::queue::MAX_WAITING;
use std::fs;

/// A slot of Claude Code that is not started, and a plain program.
fn daemon() -> Daemon {
    let setup = Setup::new()
        .slot_with("coder", "autostart = false")
        .slot_with("shell", "kind = \"shell\"");
    Daemon::start_with(&setup, &["/bin/sh".to_owned()])
}

#[test]
fn bad_addresses_texts_and_ids() {
    let daemon = daemon();
    for (line, code, said) in [
        (vec!["submit", "nobody", "hello"], 2, "the slots are: coder"),
        (
            vec!["submit", "--role", "codr", "hello"],
            2,
            "did you mean `@coder`?",
        ),
        (vec!["ask", "@nobody", "hello"], 2, "the roles are: coder"),
        (vec!["submit", "coder"], 2, "no text"),
        (vec!["submit", "coder", " "], 2, "empty"),
        (vec!["submit", "coder", "/clear"], 4, "would run a command"),
        (vec!["submit", "shell", "hello"], 4, "plain program"),
        (
            vec!["submit", "coder", "--retries", "101", "hello"],
            2,
            "too many",
        ),
        (vec!["task", "00000000"], 2, "missiond task list"),
        (vec!["task", "../../x"], 2, "no task"),
        (vec!["cancel", "00000000"], 2, "missiond task list"),
    ] {
        let ended = daemon.cmd(&line).expect(code);
        assert!(ended.stderr.contains(said), "{ended}");
    }
    assert_eq!(daemon.json(&["tasks", "--all"]), serde_json::json!([]));
}

#[test]
fn a_full_queue_refuses_and_what_waits_outlives_the_daemon() {
    let mut daemon = daemon();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let refused = runtime.block_on(async {
        let mut client = Client::connect(&socket).await.expect("a connection");
        for number in 0..MAX_WAITING {
            let sent = client.call::<Submit>(numbered(number)).await;
            sent.expect("there is room");
        }
        client.call::<Submit>(numbered(MAX_WAITING)).await
    });
    let Err(CallError::Rpc(error)) = refused else {
        panic!("taken: {refused:?}");
    };
    assert_eq!(error.fault, Fault::Refused);
    assert!(error.message.contains("256 tasks"), "{error}");

    let before = daemon.json(&["tasks"]);
    daemon.crash();
    let tasks = daemon.root().join("state/missiond/missiond/tasks");
    fs::write(tasks.join("torn.json"), "{\"id\":").expect("a file");
    daemon.again();
    assert_eq!(daemon.json(&["tasks"]), before);
    assert!(tasks.join("torn.broken").exists());
    let first = before[0]["id"].as_str().expect("an id");
    daemon.cmd(&["cancel", first]).expect(0);
    daemon.cmd(&["submit", "coder", "room again"]).expect(0);
}

fn numbered(number: usize) -> SubmitParams {
    SubmitParams {
        slot: "coder".to_owned(),
        text: format!("task {number}"),
        ..SubmitParams::default()
    }
}
