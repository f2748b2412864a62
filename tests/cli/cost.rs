//! `cost`, on transcripts and logs that were written before.

use crate::fake::{Home, Ran};
use serde_json::json;

fn answer(id: &str, time: &str, output: u64) -> String {
    let usage = json!({"input_tokens": 100, "output_tokens": output, "cache_read_input_tokens": 2_500_000,
        "cache_creation_input_tokens": 12_340});
    let line = json!({"type": "assistant", "timestamp": time, "message": {"id": id, "model": "x", "usage": usage}});
    format!("{line}\n")
}

fn cost_event(time: &str, dollars: f64) -> String {
    let event = json!({"seq": 1, "time": time, "slot": "coder", "event": "cost", "dollars": dollars, "total": 9.0});
    format!("{event}\n")
}

/// Two slots of two roles; one of them is asked what it costs.
fn home() -> Home {
    let home = Home::new();
    let slot =
        |name: &str| format!("[[slot]]\nname = \"{name}\"\nrole = \"{name}\"\ncwd = \"/tmp\"\n");
    home.write("slots.toml", &(slot("coder") + &slot("reader")));
    for (name, lines) in [
        (
            "coder",
            vec![
                answer("m0", "2025-12-01T10:00:00Z", 999),
                // Each part of an answer has a line, and the last one the whole number.
                answer("m1", "2026-01-01T10:00:00Z", 1),
                "{\"type\":\"user\",\"message\":{\"content\":\"hello\"}}\n".to_owned(),
                answer("m1", "2026-01-01T10:00:01Z", 500),
                answer("m2", "2026-01-02T10:00:00Z", 700),
            ],
        ),
        ("reader", vec![answer("m3", "2026-01-02T11:00:00Z", 40)]),
    ] {
        home.write(&format!("policies/{name}.toml"), "allow = [\"Read\"]\n");
        let transcript = home.write(&format!("{name}.jsonl"), &lines.concat());
        let missing = home.path("missing.jsonl");
        let id = "5e55e55e-0000-4000-8000-000000000000";
        let session = |path| json!({"id": id, "transcript": path, "begun": true});
        let memory = json!({"sessions": [session(missing), session(transcript)]});
        home.write(
            &format!(".local/state/missiond/missiond/{name}.json"),
            &memory.to_string(),
        );
    }
    home.write(
        "logs/coder.events.jsonl.1",
        &cost_event("2025-12-01T10:00:00Z", 7.0),
    );
    let new = [
        cost_event("2026-01-01T10:00:02Z", 0.25),
        cost_event("2026-01-02T10:00:02Z", 1.5),
    ];
    home.write("logs/coder.events.jsonl", &new.concat());
    home
}

fn cost(home: &Home, args: &[&str]) -> Ran {
    let since = [
        "cost",
        "-c",
        "slots.toml",
        "--since",
        "2026-01-01T00:00:00Z",
    ];
    let mut command = home.command(&[&since, args].concat());
    Ran::from(command.env("TZ", "UTC").output().unwrap()).exits(0)
}

#[test]
fn tokens_and_dollars_by_slot_by_role_and_by_day() {
    let home = home();
    let tables = ["slot", "role", "day"].map(|by| cost(&home, &["--by", by]).stdout);
    insta::assert_snapshot!(tables.join("\n"));
}

#[test]
fn a_program_gets_numbers() {
    let ran = cost(&home(), &["--json"]);
    insta::assert_json_snapshot!(ran.json());
}

#[test]
fn nothing_used_is_said() {
    let ran = home()
        .run(&["cost", "-c", "slots.toml", "--since", "1h"])
        .exits(0);
    assert_eq!(
        (ran.stdout.as_str(), ran.stderr.as_str()),
        ("", "no slot has used a token in that time\n")
    );
}
