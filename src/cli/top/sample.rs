//! Slots for the tests of the dashboard.

use crate::control::requests::ExplainAnswer;
use crate::core::claude::reading::State;
use crate::core::model::{SlotStatus, TaskStatus};
use serde_json::json;

pub fn status(slot: &str, state: State, since: &str) -> SlotStatus {
    serde_json::from_value(json!({
        "slot": slot, "role": "coder", "kind": "claude", "state": state, "since": since,
        "started_at": null, "pid": 41822, "restarts": 0, "session_id": null, "task_id": null,
        "cwd": "/src/app", "dialog": null, "gate": "hook", "mode": null, "last_error": null,
        "owner": "missiond", "log": "/logs/x.log", "doing": null, "background": 0, "queued": 0,
        "changed": false
    }))
    .unwrap()
}

pub fn idle(slot: &str) -> SlotStatus {
    status(slot, State::Idle, "2026-01-01T08:00:00Z")
}

pub fn works(slot: &str, doing: &str) -> SlotStatus {
    let mut works = status(slot, State::ToolRunning, "2026-01-01T09:58:57Z");
    works.doing = Some(doing.to_owned());
    (works.cpu, works.memory) = (Some(12.3), Some(455_000_000));
    works.conversation.context_left = Some(52);
    works
}

/// A slot whose dialog asks whether a command may run.
pub fn asks(slot: &str, command: &str) -> SlotStatus {
    let mut asks = status(slot, State::Confirming, "2026-01-01T09:55:48Z");
    asks.dialog = serde_json::from_value(json!({
        "id": format!("d-{slot}"), "kind": "permission", "tool": "Bash", "input": {"command": command},
        "text": "Do you want to proceed?", "options": [{"label": "Yes"}, {"label": "No"}],
        "selected": 0, "complete": true
    }))
    .unwrap();
    asks.waits_because = Some("no rule allows `sudo install`".to_owned());
    asks.always = Some(Ok("Bash(sudo install *)".to_owned()).into());
    asks
}

/// A slot that asks which of two colours it shall take.
pub fn question(slot: &str) -> SlotStatus {
    let mut asks = status(slot, State::Confirming, "2026-01-01T09:59:22Z");
    asks.dialog = serde_json::from_value(json!({
        "id": format!("q-{slot}"), "kind": "question", "tool": null, "input": null,
        "text": "Which colour?", "options": [{"label": "Red"}, {"label": "Blue"}],
        "selected": 0, "complete": true
    }))
    .unwrap();
    asks
}

/// What speaks for and against the ask of a slot.
pub fn explained(slot: &str) -> ExplainAnswer {
    let rule = json!({"text": "Bash(make *)", "file": "/etc/policies/coder.toml", "line": 7});
    serde_json::from_value(json!({
        "slot": slot, "dialog": format!("d-{slot}"), "tool": "Bash", "days": 7,
        "parts": [
            {"part": "make release PREFIX=/usr/local", "verdict": "allow", "rule": rule, "why": "a rule allows it"},
            {"part": "sudo install -m755 target/release/app /usr/local/bin/app", "verdict": "ask", "rule": null,
             "why": "no rule allows it"},
        ],
        "answered": 3,
        "earlier": [
            {"time": "2026-01-01T09:39:00Z", "slot": "coder", "verdict": "deny", "via": "web",
             "why": "a person chose Esc, with the reason: not to /usr"},
            {"time": "2026-01-01T08:52:00Z", "slot": "coder", "verdict": "allow", "via": "cli confirm",
             "why": "a person chose Yes"},
        ],
        "always": {"file": "/etc/policies/coder.toml", "rule": "Bash(sudo install *)", "asks": 2, "denies": 0},
    }))
    .unwrap()
}

pub fn task(id: &str, state: &str, text: &str) -> TaskStatus {
    serde_json::from_value(json!({
        "id": id, "seq": 1, "to": "@coder", "text": text, "state": state, "by": "user", "slot": "coder",
        "session_id": null, "answer": null, "error": null, "submitted_at": "2026-01-01T09:50:00Z", "retries": 0, "attempts": 1,
        "started_at": null, "ended_at": null
    }))
    .unwrap()
}
