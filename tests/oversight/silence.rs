//! What happens where no rule speaks, on the real Claude Code with a user whose own settings allow a lot; and that
//! `policy explain` says what the gate then does.

use super::inside::audit;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use missiond::lab::rehearsal::Step;
use serde_json::{Value, json};
use std::fs;

const RULES: &str = "\
allow = [\"Bash(mkfifo *)\"]
ask = [\"Bash(git push *)\"]
deny = [\"Bash(rm *)\"]
";

/// What the user's own settings allow: usual things.
fn settings() -> Value {
    json!({"permissions": {"allow": ["Bash(make *)", "Bash(git push *)", "Bash(git diff *)", "WebFetch"]}})
}

fn daemon() -> Option<Daemon> {
    let role = |default: &str| format!("default = {default:?}\n{RULES}");
    let setup = Setup::new()
        .slot_with("careful", "autostart = false")
        .policy("careful", &role("ask"))
        .slot_with("trusting", "autostart = false")
        .policy("trusting", &role("claude"));
    let daemon = Daemon::start(&setup)?;
    let place = daemon.home().join(".claude");
    fs::create_dir_all(&place).expect("a directory");
    fs::write(place.join("settings.json"), settings().to_string()).expect("a file");
    for slot in ["careful", "trusting"] {
        fs::write(daemon.cwd(slot).join("notes.txt"), "one\n").expect("a file");
        daemon.cmd(&["start", slot]).expect(0);
        daemon.wait_state(slot, "idle");
    }
    Some(daemon)
}

/// Lets the slot make a call. Whether a person was asked; then it is declined.
fn is_asked(daemon: &Daemon, slot: &str, words: &str, tool: &str, input: &Value) -> bool {
    let steps = vec![Step::tool(tool, input.clone()), Step::text("I tried.")];
    daemon.endpoint.on(words, steps);
    let sent = daemon.cmd(&["send", slot, words]);
    let asked = match sent.code {
        0 => false,
        5 => true,
        other => panic!("{slot}, {tool} {input}: exit code {other}: {sent}"),
    };
    if asked {
        daemon.cmd(&["confirm", slot, "no"]).expect(0);
        daemon.wait_state(slot, "idle");
    }
    asked
}

/// The gate's last verdict, as the audit has it.
fn last_verdict(daemon: &Daemon, slot: &str) -> Value {
    let of_gate = |entry: &Value| entry["slot"] == slot && entry["answer"].is_string();
    let mut entries = audit(daemon).into_iter().rev();
    entries
        .find(of_gate)
        .unwrap_or_else(|| panic!("the gate has not judged a call of {slot}"))
}

/// What `policy explain` says of a call of this slot.
fn explained(daemon: &Daemon, slot: &str, tool: &str, input: &Value) -> Value {
    let config = daemon.config();
    let policy = config.with_file_name(format!("policies/{slot}.toml"));
    let arguments = [
        "policy",
        "explain",
        "--slot",
        slot,
        "--policy",
        policy.to_str().expect("a path"),
        "--tool",
        tool,
        "--input",
        &input.to_string(),
    ];
    daemon.json(&arguments[..])
}

#[test]
fn a_users_own_settings_decide_only_where_the_policy_says_so() {
    let Some(daemon) = daemon() else { return };
    let file = |slot: &str, name: &str| daemon.cwd(slot).join(name);
    let bash = |command: &str| ("Bash", json!({ "command": command }));
    let calls = |slot: &str| {
        vec![
            // The call, whether the careful slot asks, whether the trusting one does.
            (bash("make -n"), true, false),
            (bash("git push"), true, true),
            (bash("make -n && git push"), true, true),
            (bash("git push && make -n"), true, true),
            (bash("make -n | git push"), true, true),
            (bash("make -n\ngit push"), true, true),
            (bash("make -n && git diff --output=F"), true, true),
            (bash("git diff --output=F"), true, true),
            (bash("ls -la && cat notes.txt"), false, false),
            (bash("mkfifo pipe"), false, false),
            (bash("rm notes.txt"), false, false),
            (
                ("Read", json!({"file_path": file(slot, "notes.txt")})),
                false,
                false,
            ),
            (
                (
                    "Write",
                    json!({"file_path": file(slot, "new.txt"), "content": "x"}),
                ),
                true,
                true,
            ),
            (
                (
                    "WebFetch",
                    json!({"url": "http://127.0.0.1:9/", "prompt": "x"}),
                ),
                true,
                false,
            ),
        ]
    };
    for slot in ["careful", "trusting"] {
        for (index, ((tool, input), careful, trusting)) in calls(slot).into_iter().enumerate() {
            let explained = explained(&daemon, slot, tool, &input);
            let words = format!("work of {slot}, part {index}");
            let asked = is_asked(&daemon, slot, &words, tool, &input);
            let expected = if slot == "careful" { careful } else { trusting };
            assert_eq!(asked, expected, "{slot}: {tool} {input}: {explained}");
            let judged = last_verdict(&daemon, slot);
            assert_eq!(judged["input"], input, "the audit has this call last");
            assert_eq!(explained["verdict"], judged["verdict"], "{slot}: {input}");
            assert_eq!(explained["why"], judged["why"], "{slot}: {input}");
            assert_eq!(explained["rule"], judged["rule"]["text"], "{slot}: {input}");
            // An allow that is not proven is not said.
            let answer = match judged["verdict"].as_str() {
                Some("allow") => "none",
                word => word.unwrap_or_default(),
            };
            assert_eq!(judged["answer"], answer, "{slot}: {input}");
        }
        assert!(!file(slot, "F").exists() && file(slot, "notes.txt").exists());
        assert!(file(slot, "pipe").exists() && !file(slot, "new.txt").exists());
    }
}
