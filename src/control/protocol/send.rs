//! `send` and `sent`: messages, and what became of them.

use super::RpcError;
use crate::reading::Dialog;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendParams {
    pub slot: String,
    pub text: String,
    /// Wait for the answer; else only until Claude Code has taken the message.
    #[serde(default = "yes")]
    pub wait: bool,
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentParams {
    pub slot: String,
    pub id: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentAnswer {
    pub slot: String,
    pub id: String,
    /// `queued`, `sent` (its turn goes on, or needs a person), `answered` or `failed`.
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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
