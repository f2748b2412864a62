//! Sessions: any program in a terminal, started at run time.

use crate::core::settings::SessionTerms;
use crate::core::settings::limits::Limits;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How to run the program of a session: the parameters that `spawn` and `unified_exec` share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunParams {
    /// The owner of the session: `user`, or `orchestrator:<agent>` with optional further parts; default `user`.
    #[serde(default)]
    pub owner: Option<String>,
    /// The session ends when this process does.
    #[serde(default)]
    pub owner_pid: Option<u32>,
    /// The working directory, an absolute path; default: the home directory.
    #[serde(default, alias = "workdir")]
    pub cwd: Option<PathBuf>,
    /// The shell to run; default: `$SHELL`.
    #[serde(default)]
    pub shell: Option<String>,
    /// Run a login shell, which reads its profile first.
    #[serde(default)]
    pub login: bool,
    /// The program is ended after this many milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Variables in addition to the daemon's environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// `env` is the whole environment; nothing is inherited from the daemon.
    #[serde(default)]
    pub env_clear: bool,
    /// The program is ended when its processes use more bytes of memory than this.
    #[serde(default)]
    pub max_memory: Option<u64>,
    /// The kernel's limits for each of its processes; never more than `[sessions] limits` in slots.toml.
    #[serde(default)]
    pub limits: Limits,
    /// The session ends with the connection that requested it.
    #[serde(default)]
    pub with_connection: bool,
}

/// The parameters of a new session. All are optional: by default it is the user's shell in the home directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpawnParams {
    /// An unused name; default: a UUID.
    #[serde(default)]
    pub id: Option<String>,
    /// The program and its arguments; default: the shell.
    #[serde(default)]
    pub command: Vec<String>,
    /// One line for the shell, instead of `command`.
    #[serde(default)]
    pub line: Option<String>,
    /// Columns of its terminal; default 120.
    #[serde(default)]
    pub cols: Option<u16>,
    /// Rows of its terminal; default 40.
    #[serde(default)]
    pub rows: Option<u16>,
    #[serde(flatten)]
    pub run: RunParams,
}

/// What a session has in addition to the status of every slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionStatus {
    pub created_at: DateTime<Utc>,
    pub command: Vec<String>,
    pub cols: usize,
    pub rows: usize,
    pub owner_pid: Option<u32>,
    /// When the program will be ended, if it has not ended by then.
    pub ends_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// It was ended because its time was over.
    #[serde(default)]
    pub timed_out: bool,
    /// Why missiond has ended it; `null` if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_because: Option<String>,
    /// Whether the shell waits for a command; `null` if that is unknown.
    pub at_prompt: Option<bool>,
    /// It is a shell that marks its own prompts.
    #[serde(default)]
    pub marked: bool,
    /// Why it is about to be removed.
    pub leaving: Option<String>,
}

impl SessionStatus {
    /// The status before its task has looked at anything.
    pub fn first(terms: &SessionTerms) -> SessionStatus {
        SessionStatus {
            created_at: terms.created_at,
            command: terms.command.clone(),
            cols: 0,
            rows: 0,
            owner_pid: terms.owner_process.map(|process| process.pid),
            ends_at: terms.ends_at,
            ended_at: None,
            signal: None,
            timed_out: false,
            ended_because: None,
            at_prompt: terms.marks.as_ref().map(|_| false),
            marked: terms.marks.is_some(),
            leaving: None,
        }
    }
}

/// Bytes over all interfaces of a network namespace except the loopback.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    pub received: u64,
    pub sent: u64,
}
