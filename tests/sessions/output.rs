//! What a session has written.

use crate::stage::*;
use crate::support::daemon::{Daemon, missiond};
use crate::support::until;
use serde_json::Value;

#[test]
fn output_as_text_as_bytes_in_part_and_cleared() {
    let daemon = daemon();
    script(
        &daemon,
        "one",
        "printf '\\033[31mred\\033[0m\\n'; seq 1 50; echo 'error[E1]: no'",
    );
    wait_exit(&daemon, "one");
    let text = output(&daemon, "one");
    assert!(
        text.starts_with("red\n1\n2\n") && text.ends_with("50\nerror[E1]: no\n"),
        "{text}"
    );
    let last = daemon.cmd(&["output", "one", "-n", "2"]).expect(0);
    assert_eq!(last.stdout, "50\nerror[E1]: no\n");
    let bytes = daemon.cmd(&["output", "one", "--bytes"]).expect(0).stdout;
    assert!(
        bytes.starts_with("\u{1b}[31mred\u{1b}[0m\r\n1\r\n"),
        "{bytes:?}"
    );
    let found = daemon.cmd(&["search", "one", r"error\[E\d\]"]).expect(0);
    assert_eq!(found.stdout, "output:52: error[E1]: no\n");
    daemon.cmd(&["search", "one", "("]).expect(2);
    daemon.cmd(&["clear", "one"]).expect(0);
    assert_eq!(output(&daemon, "one"), "");
    let answer = daemon.json(&["output", "one"]);
    assert_eq!(
        (&answer["running"], &answer["exit_code"]),
        (&false.into(), &0.into())
    );
}

/// Bytes of every value, the same each time.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// What the command prints, and not what can be made of it as text.
fn printed(daemon: &Daemon, arguments: &[&str]) -> Vec<u8> {
    let output = missiond(daemon.root()).args(arguments).output();
    output.expect("it runs").stdout
}

#[test]
fn bytes_are_the_same_whatever_they_are() {
    let mut daemon = daemon();
    // More than goes into one answer. Some of it asks the terminal something, and what it answers is not to be echoed.
    let data = noise(900_000);
    std::fs::write(daemon.root().join("data"), &data).expect("a file");
    script(&daemon, "noise", "stty -opost -echo; cat data");
    wait_exit(&daemon, "noise");
    script(&daemon, "text", "printf 'caf\\303\\251 caf\\351'");
    wait_exit(&daemon, "text");
    for round in ["live", "from the recording"] {
        let bytes = printed(&daemon, &["output", "noise", "--bytes"]);
        assert!(bytes == data, "{round}: {} bytes", bytes.len());
        assert_eq!(info(&daemon, "noise")["output_bytes"], 900_000, "{round}");
        assert!(printed(&daemon, &["follow", "noise"]) == data, "{round}");
        let text = daemon.json(&["output", "text", "--bytes"]);
        assert_eq!(text["text"], "café caf\u{fffd}", "{round}");
        assert_eq!(text["hex"], "636166c3a920636166e9", "{round}");
        assert!(daemon.json(&["output", "text"])["hex"].is_null(), "{round}");
        daemon.crash();
        daemon.again();
    }
}

#[test]
fn the_oldest_output_goes_and_that_is_said_once() {
    let daemon = daemon_with("buffer = \"4096B\"");
    let events = daemon.spawn(&["events", "-f", "--json"]);
    script(&daemon, "much", "seq 1 20000; echo last");
    wait_exit(&daemon, "much");
    let answer = daemon.json(&["output", "much"]);
    assert_eq!(answer["truncated"], true);
    assert!(
        answer["dropped_bytes"].as_u64().unwrap() > 100_000,
        "{answer}"
    );
    assert!(answer["text"].as_str().unwrap().ends_with("20000\nlast\n"));
    assert_eq!(info(&daemon, "much")["output_bytes"], 4096);
    let told = until("the end", || {
        let told = events.printed();
        told.contains("\"exit\"").then_some(told)
    });
    assert_eq!(told.matches("\"buffer_overflow\"").count(), 1, "{told}");
}

#[test]
fn following_begins_with_what_there_is_and_ends_with_the_session() {
    let daemon = daemon();
    script(
        &daemon,
        "one",
        "echo before; read -r line; echo \"then $line\"; exit 6",
    );
    wait_output(&daemon, "one", "before");
    let following = daemon.spawn(&["follow", "one"]);
    until("what was before", || {
        following.printed().contains("before").then_some(())
    });
    daemon.cmd(&["type", "one", "go"]).expect(0);
    let end = following.end().expect(0);
    assert!(end.stdout.ends_with("then go\r\n"), "{end}");
    assert!(end.stderr.contains("one ended with exit code 6"), "{end}");
}

#[test]
fn listeners_who_ask_get_the_data_before_the_end() {
    let daemon = daemon();
    script(
        &daemon,
        "one",
        "echo before; read -r line; echo \"then $line\"",
    );
    wait_output(&daemon, "one", "before");
    let quiet = daemon.spawn(&["events", "-f", "one"]);
    let late = daemon.spawn(&["events", "-f", "--data", "one"]);
    until("what was before", || {
        late.printed().contains("before").then_some(())
    });
    until("the other one to listen", || {
        quiet.printed().contains("snapshot").then_some(())
    });
    daemon.cmd(&["type", "one", "go"]).expect(0);
    let end = |told: String| told.contains("\"exit\"").then_some(told);
    let told = until("the end", || end(late.printed()));
    let data = told
        .lines()
        .filter(|line| line.contains("\"data\""))
        .collect::<String>();
    assert!(data.contains("then go"), "{told}");
    assert!(told.rfind("\"data\"") < told.find("\"exit\""), "{told}");
    let told = until("the end", || end(quiet.printed()));
    assert!(!told.contains("\"data\""), "{told}");
}

#[test]
fn what_a_program_writes_stands_between_its_start_and_its_end() {
    let daemon = daemon();
    let events = daemon.spawn(&["events", "-f", "--data"]);
    script(&daemon, "ready", "exit 0");
    until("the listener to hear", || {
        events.printed().contains("ready").then_some(())
    });
    script(&daemon, "quick", "echo said; exit 1");
    let told = until("the end", || {
        let told = events.printed();
        told.lines()
            .any(|line| line.contains("quick") && line.contains("\"to\":\"exited\""))
            .then_some(told)
    });
    let told: Vec<Value> = told
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|event: &Value| event["slot"] == "quick")
        .collect();
    let names: Vec<&str> = told
        .iter()
        .filter_map(|event| event["event"].as_str())
        .filter(|name| *name != "state")
        .collect();
    assert_eq!(names, ["spawned", "data", "exit"], "{told:?}");
    let numbers = told.iter().map(|event| event["seq"].as_u64());
    assert!(numbers.is_sorted(), "{told:?}");
}

#[test]
fn whoever_waits_for_a_line_is_told_of_the_end() {
    let daemon = daemon();
    script(&daemon, "flood", "seq 20000; read -r line");
    wait_output(&daemon, "flood", "^20000$");
    // What was long before is not meant, as long as more can come.
    let hidden = ["wait", "flood", "--output", "^4999$", "--timeout", "300ms"];
    daemon.cmd(&hidden).expect(124);
    let waiting = daemon.spawn(&["wait", "flood", "--output", "never"]);
    daemon.cmd(&["type", "flood", "go"]).expect(0);
    let end = waiting.end().expect(4);
    assert!(end.stderr.contains("flood has ended, and nothing"), "{end}");
    wait_output(&daemon, "flood", "^4999$");
}
