//! What happens, as listeners and the journal are told.

use super::{SlotStatus, TaskState};
use crate::core::claude::reading::{Dialog, State};
use crate::core::policy::{Decision, RuleRef};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its position. It grows by one for each event, also over restarts of the daemon.
    pub seq: u64,
    pub time: DateTime<Utc>,
    /// `None` for the daemon itself.
    pub slot: Option<String>,
    #[serde(flatten)]
    pub what: What,
}

#[cfg(test)]
impl Event {
    /// Something that happened just now, in the slot `a`.
    pub fn sample(what: What) -> Event {
        Event {
            seq: 1,
            time: Utc::now(),
            slot: Some("a".into()),
            what,
        }
    }
}

/// What the hook was told where it was told nothing: Claude Code's own rules decide.
pub const NO_ANSWER: &str = "none";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// How a slot stands when a listener arrives.
    Snapshot {
        status: Box<SlotStatus>,
    },
    Spawned {
        pid: u32,
        session_id: Option<String>,
        resumed: bool,
    },
    /// A program that an earlier daemon started was found running.
    Adopted {
        pid: u32,
    },
    State {
        from: State,
        to: State,
    },
    Dialog {
        dialog: Dialog,
    },
    DialogGone {
        id: String,
    },
    /// A message was taken by Claude Code.
    Message {
        text: String,
    },
    /// A part of the answer, while it comes. `source` is `hook`, word for word, or `screen`, as it is wrapped
    /// there; where a part was missed, the whole is in [`What::Answer`].
    Text {
        text: String,
        source: String,
    },
    /// The assistant's answer to it.
    Answer {
        text: String,
        duration_ms: u64,
    },
    /// The turn ended with no answer: an API error, an interrupt, a no.
    Failed {
        text: String,
    },
    Verdict {
        tool: String,
        /// What it was about, in a line.
        target: String,
        verdict: Decision,
        rule: Option<RuleRef>,
        why: String,
        /// `policy` or `person`.
        by: String,
        /// What Claude Code's hook was told, where it was asked; `none` leaves it to Claude Code's own rules.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
        /// The agent of Claude Code that made the call; none where it was the slot itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// A key was pressed, and why.
    Key {
        key: String,
        reason: String,
    },
    Interrupted,
    /// Somebody's terminal shows the slot live from now on.
    Attached {
        uid: u32,
        read_only: bool,
        cols: u16,
        rows: u16,
    },
    Detached {
        uid: u32,
    },
    /// A person types at the slot's terminal: answers by rule and messages wait.
    Typing {
        uid: u32,
    },
    /// They go on.
    TypingOver,
    Exit {
        code: Option<i32>,
        signal: Option<i32>,
        cause: String,
        /// When that was, where there was no daemon to tell of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended_at: Option<DateTime<Utc>>,
    },
    /// What a program wrote, for listeners who ask for it.
    Data {
        text: String,
        /// Its place in all that was ever written, in bytes.
        start: u64,
        /// Bytes before it that this listener has missed.
        dropped_bytes: u64,
    },
    /// A session is gone, with all that was kept of it.
    Closed {
        why: String,
    },
    /// The oldest output makes room for newer; told once until the output is cleared.
    BufferOverflow {
        /// Bytes that are kept.
        kept: u64,
    },
    Restart {
        attempt: u32,
        delay_ms: u64,
    },
    Stopped {
        by: String,
    },
    GaveUp {
        reason: String,
    },
    /// It stalled, reached a limit, lost its login, runs in another mode or went past the gate; `cause` is its
    /// name.
    Trouble {
        cause: String,
        text: String,
    },
    /// It is in the permission mode again that it was started in.
    Mode {
        mode: String,
    },
    /// The conversation has a new id (`/clear`).
    Session {
        session_id: String,
    },
    /// A task stands differently; of the slot that has it, where one has.
    Task {
        id: String,
        to: String,
        state: TaskState,
        error: Option<String>,
    },
    /// The config on disk was taken, or could not be.
    Config {
        ok: bool,
        text: String,
    },
    /// Its screen shows one thing and Claude Code's own record another, for more than a moment.
    Doubtful {
        why: String,
    },
    /// They have agreed again for 3 s.
    DoubtGone,
    /// The events between these positions can't be told any more; its own position is that of the last of them.
    Gap {
        /// The last position before them.
        after: u64,
        /// The first one behind them.
        first: u64,
    },
    /// Anything a person should know.
    Warning {
        text: String,
    },
}
