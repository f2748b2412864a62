//! `send` and `sent`: messages, and what became of them.

use super::RpcError;
use crate::core::claude::reading::Dialog;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendParams {
    /// The name of the slot, or `@role` where the role has one slot.
    pub slot: String,
    /// The message.
    pub text: String,
    /// Wait for the answer; else only until Claude Code has taken the message.
    #[serde(default = "yes")]
    pub wait: bool,
    /// The wait for the answer fails after so many milliseconds, and the turn goes on; never where it is left out.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// A leading `!` is meant: run it as a shell command.
    #[serde(default)]
    pub shell: bool,
    /// A leading `/` is meant: run it as a command of Claude Code.
    #[serde(default)]
    pub slash: bool,
    /// An id of the sender's: repeated with the same id, the message is sent once and has the same answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SentParams {
    /// The name of the slot, or `@role` where the role has one slot.
    pub slot: String,
    /// The id that the message was sent with.
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SentAnswer {
    pub slot: String,
    pub id: String,
    /// `queued`, `sent` (its turn goes on, or needs a person), `answered`, `failed` or `dropped` (it waited and was never
    /// sent, as `error` says; the same id may be used again).
    pub state: String,
    pub queued_at: DateTime<Utc>,
    /// When Enter was pressed.
    pub entered_at: Option<DateTime<Utc>>,
    pub response: Option<String>,
    pub error: Option<RpcError>,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SendAnswer {
    pub slot: String,
    /// The id that it was sent with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `answered`, `needs_person`, `taken` by Claude Code or, with `wait: false` at a busy slot, `queued`.
    #[serde(default)]
    pub state: String,
    /// The assistant's text after the last tool result; `None` with `wait: false` or where a person is needed.
    pub response: Option<String>,
    pub duration_ms: u64,
    pub session_id: Option<String>,
    /// `transcript`, `hook` or `screen`: where the response was read.
    pub source: Option<String>,
    /// Set when the turn goes on and a person is needed.
    pub dialog: Option<Dialog>,
}

/// `2 messages that waited were dropped (q1, q2)`.
pub fn dropped_messages(count: usize, ids: &[String]) -> String {
    let dropped = match count {
        1 => "1 message that waited was dropped".to_owned(),
        count => format!("{count} messages that waited were dropped"),
    };
    match ids.is_empty() {
        true => dropped,
        false => format!("{dropped} ({})", ids.join(", ")),
    }
}
