//! Events, as listeners and the journal get them.

use super::{SlotStatus, TaskState};
use crate::core::claude::reading::{Dialog, State};
use crate::core::policy::{Decision, RuleRef};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its position. It grows by one with each event, also across restarts of the daemon.
    pub seq: u64,
    pub time: DateTime<Utc>,
    /// `None` for the daemon itself.
    pub slot: Option<String>,
    #[serde(flatten)]
    pub what: EventKind,
}

#[cfg(test)]
impl Event {
    /// An event of now, in the slot `a`.
    pub fn sample(what: EventKind) -> Event {
        Event {
            seq: 1,
            time: Utc::now(),
            slot: Some("a".into()),
            what,
        }
    }
}

/// The hook's answer if it stayed silent: Claude Code's own rules decide.
pub const NO_ANSWER: &str = "none";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// The state of a slot when a listener connects.
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
    /// Claude Code has accepted a message.
    Message {
        text: String,
    },
    /// A part of the answer, while it arrives. `source` is `hook`, word for word, or `screen`, with the line breaks of the
    /// screen; if a part was missed, [`EventKind::Answer`] has the whole.
    Text {
        text: String,
        source: String,
    },
    /// The assistant's answer to it.
    Answer {
        text: String,
        duration_ms: u64,
    },
    /// The turn ended without an answer: an API error, an interrupt, a no.
    Failed {
        text: String,
    },
    Verdict {
        tool: String,
        /// The target of the call, in one line.
        target: String,
        verdict: Decision,
        rule: Option<RuleRef>,
        why: String,
        /// `policy` or `person`.
        by: String,
        /// The client that the person used, as it names itself: `cli confirm`, `web`, `ntfy`, …
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<String>,
        /// The hook's answer, if the hook was asked; `none` leaves the call to Claude Code's own rules.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
        /// The agent of Claude Code that made the call; `null` if the conversation itself did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// A tool call has run, as Claude Code's hook tells.
    Ran {
        tool: String,
        /// The target of the call, in one line.
        target: String,
        /// Claude Code's id of the call; it is also in the dialog that asked about it, as `request`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
        /// How it failed, in one line: such as `Exit code 1` of a command.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A key was pressed, with the reason.
    Key {
        key: String,
        reason: String,
    },
    Interrupted,
    /// A person's terminal shows the slot live from now on.
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
    /// Answers by rule and messages continue.
    TypingOver,
    /// A client without a terminal of its own has taken the keyboard.
    KeyboardTaken {
        uid: u32,
        /// The client, as it names itself.
        via: String,
    },
    /// That client has it no more.
    KeyboardLost {
        uid: u32,
        via: String,
        why: String,
    },
    Exit {
        code: Option<i32>,
        signal: Option<i32>,
        cause: String,
        /// When it ended, if no daemon was running then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended_at: Option<DateTime<Utc>>,
    },
    /// A program's output, for listeners that ask for it.
    Data {
        text: String,
        /// Its offset in the whole output, in bytes.
        start: u64,
        /// Bytes before it that this listener has missed.
        dropped_bytes: u64,
    },
    /// A session is gone, with all its data.
    Closed {
        why: String,
    },
    /// The oldest output is being dropped for newer output; sent once until the output is cleared.
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
    /// It stalled, reached a limit, lost its login, runs in another mode or bypassed the gate; `cause` is its name.
    Trouble {
        cause: String,
        text: String,
    },
    /// Claude Code says that it has cost more, in a slot with a `max_cost` or a `max_cost_per_day`.
    Cost {
        /// US dollars since the last such event.
        dollars: f64,
        /// US dollars since a person last started it.
        total: f64,
    },
    /// It is back in the permission mode that it was started in.
    Mode {
        mode: String,
    },
    /// The conversation has a new id (`/clear`).
    Session {
        session_id: String,
    },
    /// A task has another state; on the slot that has it, if there is one.
    Task {
        id: String,
        to: String,
        state: TaskState,
        error: Option<String>,
    },
    /// The config on disk was loaded, or could not be.
    Config {
        ok: bool,
        text: String,
    },
    /// Its screen and Claude Code's own record differ for more than a moment.
    Doubtful {
        why: String,
    },
    /// They have agreed again for 3 s.
    DoubtGone,
    /// The events between these positions are no longer available; its own position is that of the last of them.
    Gap {
        /// The last position before the gap.
        after: u64,
        /// The first position after the gap.
        first: u64,
    },
    /// A warning for a person.
    Warning {
        text: String,
    },
}
