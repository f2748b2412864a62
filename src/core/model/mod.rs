//! The types of the control socket that several layers share. Pure: serde types and nothing else. The requests themselves are in
//! `control/requests`.
//!
//! A request is `{"jsonrpc":"2.0","id":1,"method":"status","params":{…}}`, one per line; its answer has the same id. `events`
//! answers first and then sends notifications `{"method":"event","params":{…}}`.

mod attach;
mod dialog;
pub mod envelope;
mod event;
mod exit;
mod fault;
mod keyboard;
mod matches;
mod person;
mod send;
mod session;
mod task;

pub use attach::{AttachAnswer, BrokenFrame, Ending, FromViewer, MAX_FRAME, ToViewer};
pub use dialog::*;
pub use event::{Event, EventKind, NO_ANSWER};
pub use exit::ExitReport;
pub use fault::{Fault, Misuse, RpcError, Trace};
pub use keyboard::{KeyboardAction, KeyboardHolder};
pub use matches::Matches;
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

/// The longest line that either side accepts: a 1 MiB message with every byte escaped, and room for the envelope.
pub const MAX_LINE: usize = 8 * 1024 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Nothing {}

/// Names, `@role`s, or nothing for all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Select {
    /// Names, or `@role` for every slot of a role; empty means all slots.
    #[serde(default)]
    pub slots: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OneSlot {
    /// The name of the slot, or the id of the session.
    pub slot: String,
}

/// The identity and the health of a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pong {
    pub name: String,
    pub version: String,
    pub pid: u32,
    /// The config that it runs with and reads again on `reload`: the path that it was started with, absolute.
    pub config: PathBuf,
    pub logs: PathBuf,
    /// The path of its socket.
    #[serde(default)]
    pub socket: Option<PathBuf>,
    /// Why the daemon does not use the config on the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_fault: Option<String>,
    /// The roles whose policy on the disk is more permissive, and waits for `reload`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wider_policies: Vec<String>,
    /// Files that were removed while the daemon ran, since its start or the last `reload`: created again, or missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// Its current problems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<Ailment>,
}

/// A problem that affects a daemon and all of its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// The disk of the log or the state directory is full.
    DiskFull,
    /// The disk of the log or the state directory, or of a recording, does not answer. The text has the path.
    DiskHangs,
    /// A directory that the daemon needs was removed and can't be made again, or can't be used any more.
    DirectoryLost,
    AuditUnwritable,
    ClockSetBack,
    /// File descriptors are running out.
    FewDescriptors,
    /// Messages of a channel of `[notify]` do not arrive.
    NotifyFails,
}

/// What became of a test message of a channel of `[notify]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelTest {
    /// `command`, `webhook`, `ntfy` or `slack`.
    pub channel: String,
    pub ok: bool,
    /// Why it did not arrive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

impl ChannelTest {
    pub fn new(channel: &str, result: Result<std::time::Duration, String>) -> ChannelTest {
        let duration = result.as_ref().ok();
        ChannelTest {
            channel: channel.to_owned(),
            ok: result.is_ok(),
            duration_ms: duration.and_then(|time| time.as_millis().try_into().ok()),
            error: result.err(),
        }
    }
}

/// A current problem that affects a daemon and all of its slots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ailment {
    pub condition: Condition,
    /// Since when the daemon knows of it.
    pub since: DateTime<Utc>,
    /// What it is, and its consequences.
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
    /// When the running program was started.
    pub started_at: Option<DateTime<Utc>>,
    pub pid: Option<u32>,
    /// The process that owns its terminal and adopts its orphans.
    #[serde(default)]
    pub shim_pid: Option<u32>,
    /// How often it was restarted automatically, after a failure.
    pub restarts: u32,
    /// The id of Claude Code's conversation.
    pub session_id: Option<String>,
    pub task_id: Option<String>,
    pub cwd: PathBuf,
    pub dialog: Option<Dialog>,
    /// The basis of an automatic allow: `hook`, `weak` (the hook, but the project's own settings apply too), `screen`, `ungated`,
    /// or `none` for a plain program.
    pub gate: String,
    /// The permission mode last seen, by Claude Code's name.
    pub mode: Option<String>,
    /// The last API error, or why the slot is down.
    pub last_error: Option<String>,
    pub owner: String,
    pub log: PathBuf,
    /// What it is doing or waiting for, in a few words, for a person.
    pub doing: Option<String>,
    /// Background agents or shells behind an idle slot.
    pub background: u32,
    /// Messages that wait until the slot is idle.
    pub queued: usize,
    /// Messages without an answer so far: the queued ones, the one that is being typed and the one of the current turn.
    #[serde(default)]
    pub unanswered: usize,
    /// The command in the foreground of a plain program's terminal, if it is not the program itself; looked up on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreground: Option<String>,
    /// If a signal has stopped its program or its shim: how to continue it; looked up on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Its recording, while the disk of that does not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hung_recording: Option<PathBuf>,
    /// The daemon's current problems, which affect this slot too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health: Vec<Ailment>,
    /// Terminals that show it live.
    #[serde(default)]
    pub attached: usize,
    /// Who types into its terminal, if somebody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyboard: Option<KeyboardHolder>,
    /// Settings on disk differ from those it runs with; they take effect at the next start.
    pub changed: bool,
    /// The names of the settings that take effect at the next start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new_settings: Vec<String>,
    /// Why no rule answered the current dialog.
    pub waits_because: Option<String>,
    /// What `confirm always` would do with the current dialog.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<Always>,
    /// Who answered its last dialog, and how; of this daemon's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<AnsweredDialog>,
    /// How the last run ended.
    pub exit_code: Option<i32>,
    /// Why it last ended or did not start, by name: `crash`, `not logged in`, …
    #[serde(default)]
    pub cause: Option<String>,
    /// Memory of its processes in bytes, measured on request; shared pages count for each.
    #[serde(default)]
    pub memory: Option<u64>,
    /// CPU use of its processes since the last measurement, in percent of one processor.
    #[serde(default)]
    pub cpu: Option<f32>,
    /// US dollars since a person last started it, if `max_cost` or `max_cost_per_day` is set.
    #[serde(default)]
    pub cost: Option<f64>,
    #[serde(default)]
    pub conversation: Conversation,
    /// Why its screen is not to be trusted; while it is set, rules answer nothing.
    pub doubtful: Option<String>,
    /// The calls that the gate has seen and that have not run, if the screen shows no dialog about one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_calls: Vec<WaitingCall>,
    /// Set for a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionStatus>,
    /// Its program runs, but the slot is no longer in the config.
    #[serde(default)]
    pub removed: bool,
}

impl SlotStatus {
    /// Whether its end would cut something off although it is idle. The foreground command counts if it was looked up.
    pub fn has_work_before_it(&self) -> bool {
        self.background > 0
            || self.queued > 0
            || self.task_id.is_some()
            || self.foreground.is_some()
    }
}

impl SlotStatus {
    /// Whether nothing of its program is left. A slot that is about to start has not ended.
    pub fn is_over(&self) -> bool {
        match &self.session {
            Some(session) => session.ended_at.is_some() || self.state == State::Error,
            None => matches!(self.state, State::Exited | State::Error),
        }
    }
}

/// What Claude Code reports about the conversation; each value is optional.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conversation {
    /// The model that gave the last answer.
    pub model: Option<String>,
    /// Tokens in its context then.
    pub context_tokens: Option<u64>,
    /// The rest of the context in percent, as the screen shows it.
    pub context_left: Option<u32>,
    /// The context is being compacted.
    pub compacting: bool,
    /// What is wrong with the login: `missing`, `expired`, `refused`.
    pub login: Option<Login>,
}

/// What the end of a slot's program has cut off, if a person requested the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cut {
    /// Its open dialog and message, as texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waited: Vec<String>,
    /// The ids of waiting messages that were dropped when the slot was stopped or restarted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
}

/// The result for one of several slots; `error` if it failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {
    pub slot: String,
    pub state: State,
    /// There was nothing to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    #[serde(flatten)]
    pub cut: Cut,
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
    /// Row and column, counted from 0.
    #[schemars(with = "[usize; 2]")]
    pub cursor: (usize, usize),
    pub lines: Vec<String>,
}

/// A conversation, or its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryAnswer {
    pub turns: Vec<Turn>,
    /// Older entries were requested too, but did not fit into one answer.
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

/// The request by which `missiond hook` passes on Claude Code's hook events.
pub const HOOK: &str = "hook";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HookParams {
    /// The slot in which the hook runs.
    pub slot: String,
    /// The JSON from Claude Code.
    pub payload: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HookAnswer {
    /// The output for Claude Code; `null` if there is none.
    pub output: Option<Value>,
}
