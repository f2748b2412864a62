//! The real Claude Code leads another one, with this server among its tools.

use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use missiond::lab::rehearsal::Step;
use serde_json::json;
use std::fs;

/// The leader may send to the worker and look at it; it may neither stop it nor answer for it.
const LEADER: &str = "\
allow = [\"mcp__missiond__*\"]

[mcp]
allow = [\"send\", \"submit\", \"screen\"]
slots = [\"worker\"]
";

const WORKER: &str = "allow = [\"Bash(touch *)\"]\n";

fn leader_and_worker() -> Option<Daemon> {
    // Written before the daemon starts: Claude Code reads it when it does.
    let config = tempfile::Builder::new()
        .suffix(".json")
        .tempfile()
        .expect("a file");
    let program = env!("CARGO_BIN_EXE_missiond");
    let entry = json!({"mcpServers": {"missiond": {
        "type": "stdio", "command": program, "args": ["mcp", "--allow-confirm"],
    }}});
    fs::write(config.path(), entry.to_string()).expect("a file");
    let arguments = format!("args = [\"--mcp-config\", {:?}]", config.path());
    let setup = Setup::new()
        .slot_with("leader", &arguments)
        .slot("worker")
        .policy("leader", LEADER)
        .policy("worker", WORKER);
    let daemon = Daemon::start(&setup)?;
    for slot in ["leader", "worker"] {
        daemon.wait_state(slot, "idle");
    }
    drop(config);
    Some(daemon)
}

#[test]
fn a_leader_has_a_worker_do_the_work_and_nothing_that_was_not_granted() {
    let Some(daemon) = leader_and_worker() else {
        return;
    };
    let made = daemon.cwd("worker").join("made");
    let touch = json!({"command": format!("touch {}", made.display()), "description": "x"});
    let work = vec![Step::tool("Bash", touch), Step::text("The file is made.")];
    daemon.endpoint.on("make the file", work);

    let sent = lead(
        &daemon,
        "first",
        "send",
        json!({"slot": "worker", "text": "make the file"}),
    );
    assert!(made.exists());
    assert!(sent.contains("The file is made."), "{sent}");

    let submitted = lead(
        &daemon,
        "queue",
        "submit",
        json!({"to": "@worker", "text": "more"}),
    );
    assert!(submitted.contains("queued"), "{submitted}");
    let tasks = daemon.json(&["tasks", "--all"]);
    assert_eq!(tasks[0]["by"], "slot:leader", "{tasks}");
    let id = tasks[0]["id"].as_str().expect("an id").to_owned();
    daemon.cmd(&["task", &id, "--wait"]).expect(0);
    let own = lead(&daemon, "look", "task", json!({"id": id}));
    assert!(own.contains("You said: more"), "{own}");

    let foreign = daemon.cmd(&["submit", "worker", "a person's"]).expect(0);
    for (number, (tool, input)) in [
        ("stop", json!({"slots": ["worker"]})),
        (
            "confirm",
            json!({"slot": "worker", "answer": "yes", "dialog": "d"}),
        ),
        ("send", json!({"slot": "leader", "text": "to myself"})),
        ("submit", json!({"to": "leader", "text": "to myself"})),
        ("task", json!({"id": foreign.text()})),
        ("cancel", json!({"id": foreign.text()})),
        ("history", json!({"slot": "worker"})),
    ]
    .into_iter()
    .enumerate()
    {
        let told = lead(&daemon, &format!("refused {number}"), tool, input);
        assert!(told.contains("refused: "), "{tool}: {told}");
        assert!(told.contains("nobody approves himself"), "{tool}: {told}");
    }
    assert_eq!(daemon.status("worker")["restarts"], 0);
}

/// Has the leader call a tool, and gives what the tool said to it.
#[track_caller]
fn lead(daemon: &Daemon, prompt: &str, tool: &str, input: serde_json::Value) -> String {
    let steps = vec![
        Step::tool(format!("mcp__missiond__{tool}"), input),
        Step::text(format!("{prompt}: done")),
    ];
    daemon.endpoint.on(prompt, steps);
    let sent = daemon.cmd(&["send", "leader", prompt]).expect(0);
    assert_eq!(sent.text(), format!("{prompt}: done"));
    let history = daemon
        .cmd(&["history", "leader", "--json"])
        .expect(0)
        .json_lines();
    let mut results = history.iter().filter(|turn| turn["role"] == "tool_result");
    let last = results.next_back().and_then(|turn| turn["text"].as_str());
    last.unwrap_or_default().to_owned()
}
