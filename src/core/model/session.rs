//! Sessions: any program in a terminal, made at run time, and the four tools by which agents use them.

use crate::core::claude::reading::State;
use crate::core::settings::limits::Limits;
use crate::core::text::hex;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a new session is to be. Everything may be left out: the user's shell, then, in the home directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpawnParams {
    /// A name that is free; a UUID where none is given.
    #[serde(default)]
    pub id: Option<String>,
    /// `user`, or `orchestrator:<agent>` with more parts behind it.
    #[serde(default)]
    pub owner: Option<String>,
    /// The session ends when this process does.
    #[serde(default)]
    pub owner_pid: Option<u32>,
    /// The directory in which it runs, an absolute path; the home directory where it is left out.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
    /// The program and its arguments; the shell where there are none.
    #[serde(default)]
    pub command: Vec<String>,
    /// The shell to run; `$SHELL` where it is left out.
    #[serde(default)]
    pub shell: Option<String>,
    /// In a login shell.
    #[serde(default)]
    pub login: bool,
    /// Columns of its terminal, 120 unless told.
    #[serde(default)]
    pub cols: Option<u16>,
    /// Rows of its terminal, 40 unless told.
    #[serde(default)]
    pub rows: Option<u16>,
    /// The program is ended after so many milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// On top of the daemon's environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// `env` is the whole environment, and nothing of the daemon's is added.
    #[serde(default)]
    pub env_clear: bool,
    /// One line for the shell, in place of `command`.
    #[serde(default)]
    pub line: Option<String>,
    /// The program is ended when its processes hold more bytes of memory than this.
    #[serde(default)]
    pub max_memory: Option<u64>,
    /// What the kernel holds each of its processes to; never more than `[sessions] limits` in slots.toml.
    #[serde(default)]
    pub limits: Limits,
    /// The session ends with the connection on which it was asked for.
    #[serde(default)]
    pub with_connection: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpawnAnswer {
    pub id: String,
    pub pid: Option<u32>,
    /// What it wrote first, as plain text.
    pub output: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionsParams {
    /// Only those of this owner, and of those whose name goes on after a colon.
    #[serde(default)]
    pub owner: Option<String>,
}

/// What the task of a session knows beside what every slot has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionStatus {
    pub created_at: DateTime<Utc>,
    pub command: Vec<String>,
    pub cols: usize,
    pub rows: usize,
    pub owner_pid: Option<u32>,
    /// When the program is ended, if it has not by then.
    pub ends_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// It was ended because its time was over.
    #[serde(default)]
    pub timed_out: bool,
    /// Why missiond has ended it, in words; none if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_because: Option<String>,
    /// Whether the shell waits for a command; `None` where that can't be told.
    pub at_prompt: Option<bool>,
    /// It is a shell that says itself where it stands.
    #[serde(default)]
    pub marked: bool,
    /// Why it is to be removed now.
    pub leaving: Option<String>,
}

/// A session, for whoever asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionInfo {
    pub id: String,
    pub owner: String,
    pub owner_pid: Option<u32>,
    pub cols: usize,
    pub rows: usize,
    pub cwd: PathBuf,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The program alone.
    pub shell: String,
    pub created_at: DateTime<Utc>,
    pub ends_at: Option<DateTime<Utc>>,
    pub pid: Option<u32>,
    pub is_alive: bool,
    pub state: State,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// It was ended because its time was over.
    #[serde(default)]
    pub timed_out: bool,
    /// Why it ended or did not start, in words.
    pub last_error: Option<String>,
    /// Seconds from its start until now, or until its end.
    pub uptime: u64,
    pub at_prompt: Option<bool>,
    /// Bytes of output that are kept, and those that made room for newer ones.
    pub output_bytes: u64,
    pub dropped_bytes: u64,
    /// Of all its processes together: resident bytes, percent of one processor, bytes from and to the disk.
    pub memory: Option<u64>,
    pub cpu: Option<f32>,
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
    /// Over the network, where the kernel counts that for this session alone.
    #[serde(default)]
    pub network: Option<Traffic>,
    /// Why that is not known of one that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_unknown: Option<String>,
    pub log: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TypeParams {
    /// The id of the session.
    pub slot: String,
    /// Entered as one, with Enter behind it.
    pub text: String,
    /// Wait until the shell is at its prompt again.
    #[serde(default)]
    pub wait: bool,
    /// Or until nothing was written for so many milliseconds.
    #[serde(default)]
    pub quiet_ms: Option<u64>,
    /// Or until the line at the cursor matches: the prompt of a program that does not say when it is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_prompt: Option<String>,
    /// The wait fails after so many milliseconds, and the command goes on; never where it is left out.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TypeAnswer {
    pub slot: String,
    /// What came of it, as plain text; `None` where nothing was waited for.
    pub output: Option<String>,
    /// Of the command itself; `None` where only silence was waited for.
    pub exit_code: Option<i32>,
    /// Some of the output is no longer there.
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResizeParams {
    /// The id of the session.
    pub slot: String,
    /// Columns of its terminal.
    pub cols: u16,
    /// Rows of its terminal.
    pub rows: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalParams {
    /// The id of the session.
    pub slot: String,
    /// A name such as `INT`, or a number.
    pub signal: String,
}

/// One by its id, or all of an owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CloseParams {
    /// The id of the session; this or `owner`.
    #[serde(default)]
    pub slot: Option<String>,
    /// All sessions of this owner, and of those whose name goes on after a colon.
    #[serde(default)]
    pub owner: Option<String>,
    /// KILL at once.
    #[serde(default)]
    pub force: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CloseAnswer {
    pub closed: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputParams {
    /// The id of the session.
    pub slot: String,
    /// Begin at this byte of all that was ever written; the oldest that is kept where `None`.
    #[serde(default)]
    pub from: Option<u64>,
    /// Begin so many lines before the end.
    #[serde(default)]
    pub lines: Option<usize>,
    /// With its control sequences, as it was written; else as plain text.
    #[serde(default)]
    pub raw: bool,
    /// Where there is nothing yet, wait for it so many milliseconds.
    #[serde(default)]
    pub wait_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputAnswer {
    pub slot: String,
    pub text: String,
    /// The bytes themselves, in hexadecimal digits, where they were asked for `raw` and are not all UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hex: Option<String>,
    /// The bytes that this is of all that was ever written: from `start` up to `end`, where to go on.
    pub start: u64,
    pub end: u64,
    /// How much there is by now: more than `end` where this was only a part.
    pub total: u64,
    /// Bytes between what was asked for and `start` that are no longer kept.
    pub dropped_bytes: u64,
    pub truncated: bool,
    pub running: bool,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// Why missiond ended it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl OutputAnswer {
    /// What was written, byte for byte where it was asked for `raw`.
    pub fn bytes(&self) -> Vec<u8> {
        let exact = self.hex.as_deref().and_then(hex::decode);
        exact.unwrap_or_else(|| self.text.clone().into_bytes())
    }

    /// As text, and in digits where that is not all.
    pub fn set_bytes(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        self.hex = matches!(text, Cow::Owned(_)).then(|| hex::encode(bytes));
        self.text = text.into_owned();
    }
}

/// Either one line for a shell, or the program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "a command is one line of text, or a list of words: the program and its arguments"
)]
pub enum CommandWords {
    Line(String),
    Words(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExecParams {
    /// A line for a shell, or the program and its arguments.
    #[serde(alias = "cmd")]
    pub command: CommandWords,
    /// The directory in which it runs, an absolute path; the home directory where it is left out.
    #[serde(default, alias = "workdir")]
    pub cwd: Option<PathBuf>,
    /// What runs a command that is one line; `$SHELL` unless told.
    #[serde(default)]
    pub shell: Option<String>,
    /// The shell reads its profile first.
    #[serde(default)]
    pub login: bool,
    /// On top of the daemon's environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// `env` is the whole environment, and nothing of the daemon's is added.
    #[serde(default)]
    pub env_clear: bool,
    /// The command is ended when its processes hold more bytes of memory than this.
    #[serde(default)]
    pub max_memory: Option<u64>,
    /// What the kernel holds each of its processes to; never more than `[sessions] limits` in slots.toml.
    #[serde(default)]
    pub limits: Limits,
    /// The session ends with the connection on which it was asked for.
    #[serde(default)]
    pub with_connection: bool,
    /// Whose session it is, such as `orchestrator:planner`; `user` where it is left out.
    #[serde(default)]
    pub owner: Option<String>,
    /// The session ends when this process does.
    #[serde(default)]
    pub owner_pid: Option<u32>,
    /// The command is ended after so many milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Milliseconds to wait for output, 100 unless told; less where the command ends before.
    #[serde(default, alias = "yield_time_ms")]
    pub yield_ms: Option<u64>,
    /// 10,000 unless told, of about four characters each; what is more is left out in the middle.
    #[serde(default, alias = "max_output_tokens")]
    pub max_tokens: Option<usize>,
    /// With its control sequences; else as plain text, or the screen of a program that fills it.
    #[serde(default)]
    pub raw: bool,
}

impl ExecParams {
    /// A command with everything else as usual.
    pub fn new(command: CommandWords) -> ExecParams {
        ExecParams {
            command,
            cwd: None,
            shell: None,
            login: false,
            env: BTreeMap::new(),
            env_clear: false,
            max_memory: None,
            limits: Limits::default(),
            with_connection: false,
            owner: None,
            owner_pid: None,
            timeout_ms: None,
            yield_ms: None,
            max_tokens: None,
            raw: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StdinParams {
    /// The id that `unified_exec` answered with.
    pub session_id: String,
    /// Written as it is; empty only looks.
    #[serde(default, alias = "chars")]
    pub input: String,
    /// Milliseconds to wait for output, 100 unless told; less where the command ends before.
    #[serde(default, alias = "yield_time_ms")]
    pub yield_ms: Option<u64>,
    /// 10,000 unless told, of about four characters each; what is more is left out in the middle.
    #[serde(default, alias = "max_output_tokens")]
    pub max_tokens: Option<usize>,
    /// With its control sequences; else as plain text, or the screen of a program that fills it.
    #[serde(default)]
    pub raw: bool,
}

/// What a tool answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolAnswer {
    /// The command was started, or was written to; how it ended is in `exit_code`.
    pub success: bool,
    pub session_id: String,
    pub output: String,
    pub running: bool,
    /// 128 and the signal's number for one that was ended by a signal, 124 for one whose time was over.
    pub exit_code: Option<i32>,
    /// It was ended because its time was over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// Why missiond has ended it, in words: its time, its memory, its owner. None if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_because: Option<String>,
    /// Some of the output was left out.
    pub truncated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClosePtyParams {
    /// The id that `unified_exec` answered with.
    pub session_id: String,
    /// KILL at once.
    #[serde(default)]
    pub force: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClosePtyAnswer {
    pub success: bool,
    pub session_id: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListPtyAnswer {
    pub success: bool,
    pub sessions: Vec<SessionInfo>,
}

/// Bytes over all interfaces of a namespace but the loopback.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    pub received: u64,
    pub sent: u64,
}
