//! The text of slots.toml and policies/ as checked values. Only `load` reads files, only `watch` names notify.

mod care;
mod diff;
mod keys;
mod load;
mod parse;
#[cfg(test)]
mod sample;
mod session;
pub(crate) mod table;
mod watch;

pub use care::{Care, OnLimit, OnStall};
pub use diff::{Change, diff};
pub use load::{ConfigError, load, load_at_home, load_daemon, read_source};
pub use parse::{DAEMONS_OWN, is_name};
pub use session::{OwnerProcess, SessionTerms, SessionsConfig, Shell, ShellMarks};
pub use watch::{Changed, Watch, WatchError, watch};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A whole, checked configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Config {
    /// The file it came from, absolute.
    pub file: PathBuf,
    pub daemon: DaemonConfig,
    pub notify: NotifyConfig,
    pub sessions: SessionsConfig,
    pub slots: Vec<SlotConfig>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DaemonConfig {
    /// Names the socket and the lock.
    pub name: String,
    /// Absolute.
    pub logs: PathBuf,
    /// Absolute; `<role>.toml` files.
    pub policies: PathBuf,
    /// Where the socket is, when it is not in the runtime directory.
    pub socket: Option<PathBuf>,
}

/// The program that fetches a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotifyConfig {
    /// Its words; none: nobody is told.
    pub command: Vec<String>,
    /// How long a slot waits for a person before the command is run; `None` for never.
    #[serde(serialize_with = "care::time_or_off")]
    pub notify_after: Option<Duration>,
}

impl Default for NotifyConfig {
    fn default() -> NotifyConfig {
        NotifyConfig {
            command: Vec::new(),
            notify_after: Some(Duration::from_secs(60)),
        }
    }
}

/// One slot, defaults filled in, paths absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SlotConfig {
    pub name: String,
    pub role: String,
    pub kind: Kind,
    pub cwd: PathBuf,
    pub command: Vec<String>,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub env_clear: bool,
    pub env_pass: Vec<String>,
    pub cols: u16,
    pub rows: u16,
    /// Claude Code's permission mode, in its newest word.
    pub mode: String,
    pub gate: Gate,
    pub project_settings: bool,
    pub autostart: bool,
    pub restart: Restart,
    pub resume: bool,
    pub prompt: Option<String>,
    /// A conversation to take over.
    pub session: Option<uuid::Uuid>,
    #[serde(flatten)]
    pub care: Care,
    /// Set by the daemon when `cwd` is a worktree: the directory that the file names.
    #[serde(skip)]
    pub worktree_of: Option<PathBuf>,
    /// For a slot that was made at run time and is in no file.
    #[serde(skip)]
    pub terms: Option<SessionTerms>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    #[default]
    Claude,
    /// Any program: no dialogs are read and no policy is applied.
    Shell,
}

/// What an automatic allow may rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// Claude Code's own hook, which has the tool's whole input.
    #[default]
    Hook,
    /// The screen alone, for programs and versions that have no hooks.
    Screen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    Always,
    #[default]
    OnFailure,
    Never,
}
