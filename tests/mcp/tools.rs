//! The tools, with no Claude Code in the slots.

use super::client::Client;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use serde_json::{Value, json};
use std::path::Path;

fn shells() -> Daemon {
    let setup = Setup::new()
        .slot_with("one", "kind = \"shell\"")
        .slot_with("coder", "autostart = false");
    Daemon::start_with(&setup, &["/bin/sh".to_owned()])
}

#[test]
fn a_client_looks_acts_and_is_told_what_is_wrong() {
    let daemon = shells();
    daemon.wait_state("one", "idle");
    let mut client = Client::start(daemon.root(), &[]);
    let status: Value = serde_json::from_str(&client.told("status", json!({}))).expect("JSON");
    let names: Vec<&str> = status
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|slot| slot["slot"].as_str())
        .collect();
    assert_eq!(names, ["coder", "one"], "{status}");

    for (tool, arguments, said) in [
        (
            "status",
            json!({"slots": ["nobody"]}),
            "the slots are: coder, one",
        ),
        (
            "send",
            json!({"slot": "nobody", "text": "x"}),
            "no slot or session `nobody`",
        ),
        ("send", json!({"slot": "one", "text": "x"}), "plain program"),
        (
            "send",
            json!({"slot": "coder", "text": "x"}),
            "missiond start coder",
        ),
        (
            "send",
            json!({"slot": "coder", "text": "/clear"}),
            "would run a command",
        ),
        (
            "submit",
            json!({"to": "@codr", "text": "x"}),
            "did you mean `@coder`?",
        ),
        ("task", json!({"id": "00000000"}), "no task"),
        ("cancel", json!({"id": "00000000"}), "no task"),
        (
            "wait",
            json!({"slot": "one", "states": ["confirming"], "timeout_ms": 0}),
            "timed out",
        ),
        ("stop", json!({"slots": []}), "no slot is named"),
        ("screen", json!({}), "slot"),
        ("screen", json!({"slot": "one", "colour": true}), "colour"),
    ] {
        let refused = client.refused(tool, arguments.clone());
        assert!(refused.contains(said), "{tool} {arguments}: {refused}");
    }

    daemon
        .cmd(&["write", "one", "seq 1 20000; echo the-end\\r"])
        .expect(0);
    daemon
        .cmd(&["wait", "one", "--output", "^the-end", "--timeout", "50s"])
        .expect(0);
    let screen = client.told("screen", json!({"slot": "one"}));
    assert!(screen.contains("20000\nthe-end"), "{screen}");
    let long = client.told("screen", json!({"slot": "one", "lines": 10000}));
    assert!(
        long.len() < 25_000 || !long.contains("left out"),
        "{}",
        long.len()
    );

    let task = client.told("submit", json!({"to": "coder", "text": "later"}));
    let task: Value = serde_json::from_str(&task).expect("JSON");
    assert_eq!(task["state"], "queued", "{task}");
    let listed = client.told("tasks", json!({}));
    assert!(
        listed.contains(task["id"].as_str().expect("an id")),
        "{listed}"
    );
    let cancelled = client.told("cancel", json!({"id": task["id"]}));
    assert!(cancelled.contains("cancelled"), "{cancelled}");

    a_command_in_a_terminal(&mut client, daemon.root());
    client.told("stop", json!({"slots": ["one"]}));
    assert_eq!(daemon.status("one")["state"], "exited");
    client.told("start", json!({"slots": ["one"]}));
    assert_eq!(client.told("pending", json!({})), "[]");
    assert_eq!(client.leave(), 0);
}

fn a_command_in_a_terminal(client: &mut Client, root: &Path) {
    let tool = |text: String| -> Value { serde_json::from_str(&text).expect("JSON") };
    let ended = json!({"command": "echo out; exit 3", "yield_ms": 20000});
    let ended = tool(client.told("unified_exec", ended));
    assert_eq!(ended["exit_code"], 3, "{ended}");
    assert_eq!(
        ended["output"].as_str().map(str::trim),
        Some("out"),
        "{ended}"
    );
    // A list of words goes through no shell.
    let words = json!({"command": ["printf", "%s|", "$HOME", "two words"], "yield_ms": 20000});
    let words = tool(client.told("unified_exec", words));
    assert_eq!(words["output"], "$HOME|two words|", "{words}");
    let empty = client.refused("unified_exec", json!({"command": []}));
    assert!(empty.contains("the command is empty"), "{empty}");
    // As agents call it that know the older names.
    let older = json!({"cmd": "pwd; printf '\\033[31mred\\033[0m\\n'", "workdir": "/", "yield_time_ms": 20000,
        "shell": "/bin/sh", "login": true, "max_output_tokens": 100, "raw": true, "timeout_ms": 60000});
    let older = tool(client.told("unified_exec", older));
    assert_eq!(
        older["output"], "/\r\n\u{1b}[31mred\u{1b}[0m\r\n",
        "{older}"
    );
    let place = json!({"command": "pwd", "yield_ms": 20000});
    let place = tool(client.told("unified_exec", place));
    assert_eq!(
        place["output"].as_str().map(str::trim),
        root.to_str(),
        "{place}"
    );
    let asks = json!({"command": "read answer; echo got-$answer", "yield_ms": 50});
    let asks = tool(client.told("unified_exec", asks));
    assert_eq!(asks["running"], true, "{asks}");
    let listed = client.told("list_pty_sessions", json!({}));
    assert!(
        listed.contains(asks["session_id"].as_str().expect("an id")),
        "{listed}"
    );
    let input = json!({"session_id": asks["session_id"], "chars": "yes\n", "yield_time_ms": 20000});
    let answered = tool(client.told("write_stdin", input));
    let said = answered["output"].as_str().expect("text");
    assert!(said.contains("got-yes"), "{answered}");
    let flood = json!({"command": "seq 1 100000", "yield_ms": 20000, "max_tokens": 500});
    let flood = tool(client.told("unified_exec", flood));
    assert_eq!(flood["truncated"], true);
    let text = flood["output"].as_str().expect("text");
    assert!(text.len() < 3000 && text.contains("left out"), "{text}");
    let close = json!({"session_id": asks["session_id"]});
    client.told("close_pty_session", close.clone());
    client.refused("close_pty_session", close);
    let nowhere = json!({"command": "true", "cwd": "/no/such/place"});
    assert!(
        client
            .refused("unified_exec", nowhere)
            .contains("/no/such/place")
    );
}

#[test]
fn what_it_may_do_is_settled_when_it_is_started() {
    let mut daemon = shells();
    let reading = Client::start(daemon.root(), &["--read-only"]).tools();
    assert!(reading.contains(&"status".to_owned()), "{reading:?}");
    for tool in [
        "send",
        "stop",
        "start",
        "interrupt",
        "submit",
        "cancel",
        "confirm",
        "unified_exec",
        "write_stdin",
        "close_pty_session",
    ] {
        assert!(!reading.contains(&tool.to_owned()), "{tool}");
    }
    assert!(
        !Client::start(daemon.root(), &[])
            .tools()
            .contains(&"confirm".to_owned())
    );
    let mut client = Client::start(daemon.root(), &["--allow-confirm"]);
    assert!(client.tools().contains(&"confirm".to_owned()));
    let nothing = json!({"slot": "one", "answer": "yes", "dialog": "d1"});
    client.refused("confirm", nothing);
    let neither = json!({"slot": "one", "dialog": "d1"});
    assert!(client.refused("confirm", neither).contains("`text`"));
    let both = json!({"slot": "one", "answer": "yes", "text": "yes", "dialog": "d1"});
    assert!(client.refused("confirm", both).contains("`text`"));
    let always = json!({"slot": "one", "answer": "Always", "dialog": "d1"});
    assert!(client.refused("confirm", always).contains("only a person"));

    // The server outlives the daemon, says what to do, and finds the next one.
    daemon.cmd(&["down", "--yes"]).expect(0);
    daemon.ended();
    let gone = client.refused("status", json!({}));
    assert!(
        gone.contains("no daemon") && gone.contains("missiond up"),
        "{gone}"
    );
    daemon.again();
    client.told("status", json!({}));
}

#[test]
fn the_configuration_that_is_printed_names_this_daemon() {
    let daemon = shells();
    let printed = daemon
        .cmd(&["mcp", "--print-config", "--read-only"])
        .expect(0);
    let config = daemon.config().display().to_string();
    let line = printed
        .stdout
        .lines()
        .find(|line| line.starts_with("claude mcp add"));
    let line = line.expect("a command").to_owned();
    assert!(
        line.ends_with(&format!("mcp --config {config} --read-only")),
        "{line}"
    );
    let json = daemon
        .cmd(&["mcp", "--print-config", "--json"])
        .expect(0)
        .json();
    assert_eq!(
        json["mcpServers"]["missiond"]["args"],
        json!(["mcp", "--config", config])
    );
}

#[test]
fn a_server_for_one_config_asks_no_daemon_of_another() {
    let daemon = shells();
    let config = daemon.config();
    let other = config.with_file_name("other.toml");
    std::fs::copy(&config, &other).expect("a copy");
    let root = config.parent().expect("a directory").to_owned();
    let mut client = Client::start(&root, &["-c", &other.display().to_string()]);
    let calls = [
        ("status", json!({})),
        ("send", json!({"slot": "shell", "text": "hello"})),
        ("unified_exec", json!({"command": "true"})),
    ];
    for (tool, arguments) in calls {
        let (said, is_error) = client.call(tool, arguments);
        assert!(is_error, "{tool}: {said}");
        for named in [&config, &other] {
            let named = named.display().to_string();
            assert!(said.contains(&named), "{tool}: {said}");
        }
    }
}
