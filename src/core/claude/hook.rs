//! The JSON of a hook as a value. Pure.

use crate::core::text::dollars::Dollars;
use serde_json::{Value, json};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// One call of a hook by Claude Code.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEvent {
    pub session_id: Option<String>,
    pub transcript: Option<PathBuf>,
    pub mode: Option<String>,
    /// Claude Code's current directory: its shell may have left the directory that it was started in.
    pub cwd: Option<PathBuf>,
    /// The agent that the event is about, if it is not the conversation itself: `general-purpose a1b2c3`.
    pub agent: Option<String>,
    pub what: HookWhat,
}

#[derive(Debug, Clone, PartialEq)]
pub enum HookWhat {
    SessionStart,
    PromptTaken,
    BeforeTool {
        tool: String,
        input: Value,
        id: Option<String>,
    },
    AfterTool {
        tool: String,
        input: Value,
        id: Option<String>,
        /// Why the call failed, if it did.
        failure: Option<String>,
    },
    TurnOver {
        text: Option<String>,
        failure: Option<String>,
    },
    /// From the status line: the cost of the session so far.
    Cost(Dollars),
    /// Lines of an answer, as they arrive; `last` ends the message.
    Displayed {
        text: String,
        last: bool,
    },
    /// Any other event; it has no consequence.
    Other,
}

impl fmt::Display for HookWhat {
    /// A description of the last event; never the input of a tool, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HookWhat::SessionStart => write!(f, "the session began"),
            HookWhat::PromptTaken => write!(f, "a message was taken"),
            HookWhat::BeforeTool { tool, .. } => write!(f, "{tool} is about to be called"),
            HookWhat::AfterTool { tool, .. } => write!(f, "{tool} was called"),
            HookWhat::TurnOver { failure: None, .. } => write!(f, "the turn is over"),
            HookWhat::TurnOver {
                failure: Some(why), ..
            } => write!(f, "the turn has failed: {why}"),
            HookWhat::Cost(cost) => write!(f, "the session has cost {cost}"),
            HookWhat::Displayed { .. } => write!(f, "some of an answer was shown"),
            HookWhat::Other => write!(f, "nothing that matters here"),
        }
    }
}

/// How long a tool call waits at the gate if the daemon does not answer; then it is blocked.
pub const GATE_PATIENCE: Duration = Duration::from_secs(60);

/// The event name for the data of a status line, which has no name of its own.
pub(crate) const STATUS_LINE: &str = "StatusLine";

/// This hook is called for every few lines of an answer, and the screen waits for it.
pub(crate) const DISPLAY: &str = "MessageDisplay";

impl HookEvent {
    /// `None` if it is not the JSON of a hook.
    pub fn parse(payload: &Value) -> Option<HookEvent> {
        let name = payload.get("hook_event_name")?.as_str()?;
        let text = |key: &str| payload.get(key).and_then(Value::as_str).map(str::to_owned);
        let what = match name {
            "SessionStart" => HookWhat::SessionStart,
            "UserPromptSubmit" => HookWhat::PromptTaken,
            "PreToolUse" => HookWhat::BeforeTool {
                tool: text("tool_name")?,
                input: payload.get("tool_input")?.clone(),
                id: text("tool_use_id"),
            },
            "PostToolUse" | "PostToolUseFailure" => HookWhat::AfterTool {
                tool: text("tool_name")?,
                input: payload.get("tool_input")?.clone(),
                id: text("tool_use_id"),
                failure: (name == "PostToolUseFailure").then(|| text("error").unwrap_or_default()),
            },
            "Stop" => HookWhat::TurnOver {
                text: text("last_assistant_message"),
                failure: None,
            },
            "StopFailure" => HookWhat::TurnOver {
                text: None,
                failure: Some(
                    text("last_assistant_message")
                        .or_else(|| text("error"))
                        .unwrap_or_else(|| "the API failed".to_owned()),
                ),
            },
            // An agent's text is not the slot's answer.
            DISPLAY if payload.get("agent_id").is_none() => HookWhat::Displayed {
                text: text("delta")?,
                last: payload["final"] == true,
            },
            STATUS_LINE => payload["cost"]["total_cost_usd"]
                .as_f64()
                .and_then(Dollars::from_f64)
                .map_or(HookWhat::Other, HookWhat::Cost),
            _ => HookWhat::Other,
        };
        Some(HookEvent {
            session_id: text("session_id"),
            transcript: text("transcript_path").map(PathBuf::from),
            mode: text("permission_mode"),
            cwd: text("cwd").map(PathBuf::from),
            agent: text("agent_id").map(|id| match text("agent_type") {
                Some(kind) => format!("{kind} {id}"),
                None => id,
            }),
            what,
        })
    }
}

/// The gate's output that leaves the decision to Claude Code.
pub fn no_decision() -> Value {
    json!({})
}

/// The gate's output that decides on a tool call: `allow`, `ask` or `deny`.
pub fn gate_output(decision: &str, reason: &str) -> Value {
    json!({"hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": decision,
        "permissionDecisionReason": reason,
    }})
}
