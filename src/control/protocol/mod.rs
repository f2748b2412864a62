//! The words of the control socket. Pure: serde types and nothing else.
//!
//! A request is `{"jsonrpc":"2.0","id":1,"method":"status","params":{…}}`, one per line; its answer has the
//! same id. `events` answers first and then sends notifications `{"method":"event","params":{…}}`.

mod attach;
mod event;
mod fault;
mod task;

pub use attach::{
    AttachAnswer, AttachParams, BrokenFrame, Ending, FromViewer, MAX_FRAME, ToViewer,
};
pub use event::{Event, NO_ANSWER, What};
pub use fault::{Fault, Misuse, RpcError, Trace};
pub use task::{OneTask, SubmitParams, TaskParams, TaskState, TaskStatus, TasksParams};

use crate::policy::Summary;
use crate::reading::{Dialog, Login, State};
use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// Longest line either side accepts: a 1 MiB message with every byte escaped, and room for the envelope.
pub const MAX_LINE: usize = 8 * 1024 * 1024;

/// One method: its name, what it takes and what it answers.
pub trait Method {
    const NAME: &'static str;
    type Params: Serialize + DeserializeOwned + std::marker::Send;
    type Answer: Serialize + DeserializeOwned + std::marker::Send;
}

macro_rules! methods {
    ($($(#[$doc:meta])* $method:ident = $name:literal: $params:ty => $answer:ty;)*) => {
        $($(#[$doc])* #[derive(Debug)] pub struct $method;
        impl Method for $method {
            const NAME: &'static str = $name;
            type Params = $params;
            type Answer = $answer;
        })*
        /// The names of these methods.
        pub const NAMES: &[&str] = &[$($name),*];
    };
}

// Below the macro, which it uses.
mod send;
mod session;
pub use send::*;
pub use session::{NAMES as SESSION_NAMES, *};

methods! {
    /// Who answers here.
    Ping = "ping": Nothing => Pong;
    Status = "status": Select => Vec<SlotStatus>;
    Stats = "stats": Nothing => StatsAnswer;
    Start = "start": Select => Vec<Done>;
    Stop = "stop": Select => Vec<Done>;
    Restart = "restart": Select => Vec<Done>;
    /// Takes over a conversation that exists.
    Adopt = "adopt": AdoptParams => AdoptAnswer;
    Send = "send": SendParams => SendAnswer;
    /// What became of a message that was sent with an id.
    Sent = "sent": SentParams => SentAnswer;
    Pending = "pending": Select => Vec<PendingDialog>;
    Confirm = "confirm": ConfirmParams => ConfirmAnswer;
    Interrupt = "interrupt": OneSlot => InterruptAnswer;
    Screen = "screen": ScreenParams => ScreenAnswer;
    History = "history": HistoryParams => HistoryAnswer;
    Search = "search": SearchParams => Vec<Match>;
    Wait = "wait": WaitParams => WaitAnswer;
    Write = "write": WriteParams => Done;
    /// Answers once, then the connection is the slot's live terminal: frames instead of lines.
    Attach = "attach": AttachParams => AttachAnswer;
    Why = "why": OneSlot => WhyAnswer;
    /// Answers with nothing, then the snapshot and what happens come as notifications.
    Events = "events": EventsParams => Nothing;
    /// The policy of a slot, as it is in force.
    InForce = "policy": OneSlot => PolicyAnswer;
    /// Puts a task into the queue; it is on the disk before this answers.
    Submit = "submit": SubmitParams => TaskStatus;
    Task = "task": TaskParams => TaskStatus;
    Tasks = "tasks": TasksParams => Vec<TaskStatus>;
    /// Answers when the task has ended.
    Cancel = "cancel": OneTask => TaskStatus;
    Reload = "reload": Nothing => ReloadAnswer;
    Down = "down": DownParams => Nothing;
    /// What `missiond hook` passes on from Claude Code.
    Hook = "hook": HookParams => HookAnswer;
}

/// The names of all methods.
pub fn all_methods() -> impl Iterator<Item = &'static str> {
    NAMES.iter().chain(SESSION_NAMES).copied()
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nothing {}

/// Names, `@role`s, or nothing for all.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Select {
    #[serde(default)]
    pub slots: Vec<String>,
}

/// Which slots, as in [`Select`], and whether what they write is told too.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventsParams {
    #[serde(default)]
    pub slots: Vec<String>,
    #[serde(default)]
    pub data: bool,
    /// In place of a snapshot: what has happened behind this position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
}

impl From<Select> for EventsParams {
    fn from(select: Select) -> EventsParams {
        let Select { slots } = select;
        EventsParams {
            slots,
            ..EventsParams::default()
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OneSlot {
    pub slot: String,
}

/// Who a daemon is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Terminals that show it live.
    #[serde(default)]
    pub attached: usize,
    /// Settings on disk differ from those it runs with; they take effect at the next start.
    pub changed: bool,
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
    /// Where the dialog on the screen is about none of them: the calls that have come to the gate and have not run.
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
    /// Nothing of its program is left. One that is only about to be started has not ended.
    pub fn is_over(&self) -> bool {
        match &self.session {
            Some(session) => session.ended_at.is_some() || self.state == State::Error,
            None => matches!(self.state, State::Exited | State::Error),
        }
    }
}

/// What Claude Code tells of the conversation, each as far as it does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatsAnswer {
    pub total: usize,
    pub running: usize,
    pub idle: usize,
    pub busy: usize,
    pub stopped: usize,
    /// Sessions, which are no slots: those that run, and those that have ended and are kept.
    #[serde(default)]
    pub sessions: usize,
    #[serde(default)]
    pub sessions_ended: usize,
}

/// One slot of several was dealt with; `error` where it was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    pub slot: String,
    pub state: State,
    /// There was nothing to do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub already: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RpcError>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdoptParams {
    pub slot: String,
    pub session_id: uuid::Uuid,
    /// Start the slot with it, where it does not run.
    #[serde(default)]
    pub start: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdoptAnswer {
    pub slot: String,
    pub session_id: uuid::Uuid,
    /// It runs with it now; else from its next start.
    pub running: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PendingDialog {
    pub slot: String,
    pub role: String,
    pub since: DateTime<Utc>,
    pub dialog: Dialog,
    /// Why no rule answered it.
    pub why: Option<String>,
    /// What `confirm always` would do with it.
    #[serde(default)]
    pub always: Option<Always>,
    /// Why what the screen shows is not to be trusted: a plain `confirm` is refused.
    #[serde(default)]
    pub doubtful: Option<String>,
    /// Where the dialog is about none of them: the calls that have come to the gate and have not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_calls: Vec<WaitingCall>,
}

/// What `confirm always` would do with a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Always {
    /// The rule that it would add to the role's policy.
    pub rule: Option<String>,
    /// Why no rule would help; then `always` is a yes for this once, and is not offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

impl From<Result<String, String>> for Always {
    fn from(found: Result<String, String>) -> Always {
        Always {
            rule: found.as_ref().ok().cloned(),
            why_not: found.err(),
        }
    }
}

/// A tool call as the gate knows it, with its whole input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingCall {
    pub tool: String,
    pub input: Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfirmParams {
    pub slot: String,
    /// `yes`, `no`, `always` or a label of the dialog. A word that is no option is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// In place of `answer`: words of one's own, for the free line of a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The dialog that was seen; refused when another one is up.
    #[serde(default)]
    pub dialog: Option<String>,
    #[serde(default)]
    pub reason: Option<String>,
    /// Also where the slot is doubtful.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anyway: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmAnswer {
    pub slot: String,
    pub dialog: String,
    /// The label that was chosen, or `Esc`.
    pub chosen: String,
    /// The rule that `always` added to the policy.
    pub rule: Option<String>,
    /// Why `always` added none: it was a yes for this once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub this_once: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptAnswer {
    pub slot: String,
    /// `nothing` (it was idle), `declined` (a dialog), `interrupted`.
    pub effect: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScreenParams {
    pub slot: String,
    /// The last N lines, scrollback included, instead of the visible screen.
    #[serde(default)]
    pub lines: Option<usize>,
    /// With colours, as escape sequences.
    #[serde(default)]
    pub ansi: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScreenAnswer {
    pub slot: String,
    pub cols: usize,
    pub rows: usize,
    pub title: String,
    pub cursor: (usize, usize),
    pub lines: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistoryParams {
    pub slot: String,
    #[serde(default)]
    pub last: Option<usize>,
}

/// A conversation, or the end of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistoryAnswer {
    pub turns: Vec<Turn>,
    /// Older entries were wanted too, and did not fit into one answer.
    pub left_out: bool,
}

/// One entry of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    pub time: Option<DateTime<Utc>>,
    /// `user`, `assistant`, `tool_call`, `tool_result`; `command` and `command_output` for what Claude Code or the
    /// shell was told in place of a message, and `summary` for what a conversation was made shorter to.
    pub role: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    pub session_id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchParams {
    pub slot: String,
    pub pattern: String,
    #[serde(default)]
    pub limit: Option<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Match {
    /// `screen` (with scrollback) or `history`; for a session `output`.
    pub place: String,
    pub line: usize,
    pub text: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WaitParams {
    pub slot: String,
    /// Any of these states.
    #[serde(default)]
    pub states: Vec<State>,
    /// The program ends.
    #[serde(default)]
    pub exit: bool,
    /// No output for this long.
    #[serde(default)]
    pub quiet_ms: Option<u64>,
    /// A line on the screen or in the output matches.
    #[serde(default)]
    pub output: Option<String>,
    /// The shell waits for a command.
    #[serde(default)]
    pub prompt: bool,
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitAnswer {
    pub slot: String,
    pub state: State,
    /// The line that matched.
    pub matched: Option<String>,
    pub exit_code: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteParams {
    pub slot: String,
    /// The bytes, as text; escapes were resolved by the client.
    pub bytes: Vec<u8>,
    /// Also where a dialog is open in a slot of Claude Code: it is written down as a person's verdict.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub into_dialog: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhyAnswer {
    pub slot: String,
    pub state: State,
    pub evidence: Vec<Evidence>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// `screen`, `title`, `cursor`, `hook`, `process`, …
    pub witness: String,
    pub says: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyAnswer {
    pub slot: String,
    pub role: String,
    /// The file on disk allows more, and waits for `reload`.
    pub waits: bool,
    #[serde(flatten)]
    pub policy: Summary,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadAnswer {
    /// One line for each thing that changed.
    pub changes: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DownParams {
    /// Leave the slots running in their shims.
    #[serde(default)]
    pub keep: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookParams {
    pub slot: String,
    /// The JSON that Claude Code gave.
    pub payload: Value,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HookAnswer {
    /// What to print for Claude Code; nothing to print where `None`.
    pub output: Option<Value>,
}
