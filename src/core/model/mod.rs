//! The types of the control socket that several layers share. Pure: serde types and nothing else. The requests themselves
//! are in `control/requests`.
//!
//! A request is `{"jsonrpc":"2.0","id":1,"method":"status","params":{…}}`, one per line; its answer has the
//! same id. `events` answers first and then sends notifications `{"method":"event","params":{…}}`.

mod attach;
mod dialog;
pub mod envelope;
mod event;
mod exit;
mod fault;
mod person;
mod send;
mod session;
mod task;

pub use attach::{AttachAnswer, BrokenFrame, Ending, FromViewer, MAX_FRAME, ToViewer};
pub use dialog::*;
pub use event::{Event, NO_ANSWER, What};
pub use exit::ExitReport;
pub use fault::{Fault, Misuse, RpcError, Trace};
pub use person::Person;
pub use send::*;
pub use session::*;
pub use task::{TaskState, TaskStatus};

pub use crate::core::claude::transcript::Turn;

use crate::core::claude::reading::{Dialog, Login, State};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// Longest line either side accepts: a 1 MiB message with every byte escaped, and room for the envelope.
pub const MAX_LINE: usize = 8 * 1024 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Nothing {}

/// Names, `@role`s, or nothing for all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Select {
    /// Names, or `@role` for every slot of a role; all slots where there is none.
    #[serde(default)]
    pub slots: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OneSlot {
    /// The name of the slot, or the id of the session.
    pub slot: String,
}

/// Who a daemon is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pong {
    pub name: String,
    pub version: String,
    pub pid: u32,
    /// The config that it runs with and reads again on `reload`: the path that it was started with, absolute.
    pub config: PathBuf,
    pub logs: PathBuf,
    /// Where it listens.
    #[serde(default)]
    pub socket: Option<PathBuf>,
    /// Why the config on the disk is not the one that it goes by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_fault: Option<String>,
    /// The roles whose policy on the disk allows more, and waits for `reload`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wider_policies: Vec<String>,
    /// What was removed under the daemon since it was started, or since the last `reload`: made again, or missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// What hampers it at present.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<Ailment>,
}

/// What can hamper a daemon and all of its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// The disk of the log or the state directory.
    DiskFull,
    AuditUnwritable,
    ClockSetBack,
    /// File descriptors run out.
    FewDescriptors,
}

/// Something that hampers a daemon and all of its slots at present.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ailment {
    pub condition: Condition,
    /// Since when the daemon knows of it.
    pub since: DateTime<Utc>,
    /// What it is, and what comes of it.
    pub text: String,
    pub remedy: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SlotStatus {
    pub slot: String,
    pub role: String,
    pub kind: String,
    pub state: State,
    /// Since when it is in this state.
    pub since: DateTime<Utc>,
    /// When the program that runs now was started.
    pub started_at: Option<DateTime<Utc>>,
    pub pid: Option<u32>,
    /// The process that holds its terminal and adopts its orphans.
    #[serde(default)]
    pub shim_pid: Option<u32>,
    /// How often it was started again by itself, after a failure.
    pub restarts: u32,
    /// Claude Code's conversation.
    pub session_id: Option<String>,
    pub task_id: Option<String>,
    pub cwd: PathBuf,
    pub dialog: Option<Dialog>,
    /// What an automatic allow rests on: `hook`, `weak` (the hook, with the project's own settings beside it),
    /// `screen`, `ungated`, or `none` for a plain program.
    pub gate: String,
    /// The permission mode last seen, in Claude Code's word.
    pub mode: Option<String>,
    /// The last API error, or why the slot is down.
    pub last_error: Option<String>,
    pub owner: String,
    pub log: PathBuf,
    /// What it is doing or waiting for, in a few words, for a person.
    pub doing: Option<String>,
    /// Background agents or shells behind an idle slot.
    pub background: u32,
    /// Messages that wait for the slot to be idle.
    pub queued: usize,
    /// The command in the foreground of a plain program's terminal, if it is not the program itself; looked for when it
    /// is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreground: Option<String>,
    /// Its program or its shim was stopped by a signal: how to continue it; looked for when it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// What hampers the daemon at present, and so this slot too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<Ailment>,
    /// Terminals that show it live.
    #[serde(default)]
    pub attached: usize,
    /// Settings on disk differ from those it runs with; they take effect at the next start.
    pub changed: bool,
    /// The names of the settings that take effect at the next start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new_settings: Vec<String>,
    /// Why no rule answered the dialog that is up.
    pub waits_because: Option<String>,
    /// What `confirm always` would do with the dialog that is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<Always>,
    /// How the last run ended.
    pub exit_code: Option<i32>,
    /// Why it last ended or did not start, by name: `crash`, `not logged in`, …
    #[serde(default)]
    pub cause: Option<String>,
    /// Bytes that its processes hold, measured when it is asked; shared pages count for each.
    #[serde(default)]
    pub memory: Option<u64>,
    /// Its processes' share of one processor since they were last measured, in percent.
    #[serde(default)]
    pub cpu: Option<f32>,
    /// US dollars since a person last started it, where `max_cost` is set.
    #[serde(default)]
    pub cost: Option<f64>,
    #[serde(default)]
    pub conversation: Conversation,
    /// Why what its screen shows is not to be trusted: nothing is answered by rule until it is `None` again.
    pub doubtful: Option<String>,
    /// The calls that have come to the gate and have not run, if the screen shows no dialog about one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_calls: Vec<WaitingCall>,
    /// For one that was made at run time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionStatus>,
    /// Its program runs, and it is in the config no more.
    #[serde(default)]
    pub removed: bool,
}

impl SlotStatus {
    /// Whether its end would cut something off although it is idle. The command in the foreground counts if it was looked for.
    pub fn has_work_before_it(&self) -> bool {
        self.background > 0
            || self.queued > 0
            || self.task_id.is_some()
            || self.foreground.is_some()
    }
}

impl SlotStatus {
    /// Nothing of its program is left. One that is only about to be started has not ended.
    pub fn is_over(&self) -> bool {
        match &self.session {
            Some(session) => session.ended_at.is_some() || self.state == State::Error,
            None => matches!(self.state, State::Exited | State::Error),
        }
    }
}

/// What Claude Code tells of the conversation, each as far as it does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conversation {
    /// The model that gave the last answer.
    pub model: Option<String>,
    /// Tokens that were in its context then.
    pub context_tokens: Option<u64>,
    /// Percent of the context that are left, as the screen says.
    pub context_left: Option<u32>,
    /// It is being made shorter.
    pub compacting: bool,
    /// What is wrong with the login: `missing`, `expired`, `refused`.
    pub login: Option<Login>,
}

/// One slot of several was dealt with; `error` where it was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {
    pub slot: String,
    pub state: State,
    /// There was nothing to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    /// The ids of messages that waited for the slot and were dropped as it was stopped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RpcError>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScreenParams {
    /// The name of the slot, or the id of the session.
    pub slot: String,
    /// The last N lines, scrollback included, instead of the visible screen.
    #[serde(default)]
    pub lines: Option<usize>,
    /// With colours, as escape sequences.
    #[serde(default)]
    pub ansi: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScreenAnswer {
    pub slot: String,
    pub cols: usize,
    pub rows: usize,
    pub title: String,
    pub cursor: (usize, usize),
    pub lines: Vec<String>,
}

/// A conversation, or the end of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryAnswer {
    pub turns: Vec<Turn>,
    /// Older entries were wanted too, and did not fit into one answer.
    pub left_out: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Match {
    /// `screen` (with scrollback) or `history`; for a session `output`.
    pub place: String,
    pub line: usize,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// `screen`, `title`, `cursor`, `hook`, `process`, …
    pub witness: String,
    pub says: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReloadAnswer {
    /// One line for each thing that changed.
    pub changes: Vec<String>,
}

/// The request by which `missiond hook` passes on what Claude Code tells it.
pub const HOOK: &str = "hook";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HookParams {
    /// The slot in which the hook runs.
    pub slot: String,
    /// The JSON that Claude Code gave.
    pub payload: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HookAnswer {
    /// What to print for Claude Code; nothing to print where `None`.
    pub output: Option<Value>,
}
