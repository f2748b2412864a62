//! Sessions: any program in a terminal, made at run time.

use crate::core::settings::SessionTerms;
use crate::core::settings::limits::Limits;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How the program of a session is run: what `spawn` and `unified_exec` both take.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunParams {
    /// Whose session it is: `user`, or `orchestrator:<agent>` with more parts behind it; `user` where it is left out.
    #[serde(default)]
    pub owner: Option<String>,
    /// The session ends when this process does.
    #[serde(default)]
    pub owner_pid: Option<u32>,
    /// The directory in which it runs, an absolute path; the home directory where it is left out.
    #[serde(default, alias = "workdir")]
    pub cwd: Option<PathBuf>,
    /// The shell to run; `$SHELL` where it is left out.
    #[serde(default)]
    pub shell: Option<String>,
    /// In a login shell, which reads its profile first.
    #[serde(default)]
    pub login: bool,
    /// The program is ended after so many milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// On top of the daemon's environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// `env` is the whole environment, and nothing of the daemon's is added.
    #[serde(default)]
    pub env_clear: bool,
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

/// What a new session is to be. Everything may be left out: the user's shell, then, in the home directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpawnParams {
    /// A name that is free; a UUID where none is given.
    #[serde(default)]
    pub id: Option<String>,
    /// The program and its arguments; the shell where there are none.
    #[serde(default)]
    pub command: Vec<String>,
    /// One line for the shell, in place of `command`.
    #[serde(default)]
    pub line: Option<String>,
    /// Columns of its terminal, 120 unless told.
    #[serde(default)]
    pub cols: Option<u16>,
    /// Rows of its terminal, 40 unless told.
    #[serde(default)]
    pub rows: Option<u16>,
    #[serde(flatten)]
    pub run: RunParams,
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

impl SessionStatus {
    /// Before its task has looked at anything.
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

/// Bytes over all interfaces of a namespace but the loopback.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    pub received: u64,
    pub sent: u64,
}
