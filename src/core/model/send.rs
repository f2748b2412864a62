//! Messages and their results.

use crate::core::claude::reading::Dialog;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SendAnswer {
    pub slot: String,
    /// The sender's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// `answered`, `needs_person`, `taken` by Claude Code or, with `wait: false` at a busy slot, `queued`.
    #[serde(default)]
    pub state: String,
    /// The assistant's text after the last tool result; `None` with `wait: false` or if a person is needed.
    pub response: Option<String>,
    pub duration_ms: u64,
    pub session_id: Option<String>,
    /// The source of the response: `transcript`, `hook` or `screen`.
    pub source: Option<String>,
    /// Set if the turn continues and a person is needed.
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
