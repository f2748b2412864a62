//! What people configure, as checked values, and the parser of slots.toml. Pure: the text comes in.

mod keys;
pub mod limits;
mod parse;
#[cfg(test)]
mod sample;
mod schema;
mod session;
mod supervision;
pub(crate) mod table;

pub use keys::mode_words;
pub use parse::{DAEMONS_OWN, FOR_CLAUDE, Places, is_name};
pub(crate) use parse::{Draft, DraftSlot, parse, parse_daemon, resolve, syntax_error};
pub use schema::schema;
pub use session::{OwnerProcess, SessionTerms, SessionsConfig, Shell, ShellMarks};
pub use supervision::{OnLimit, OnStall, Supervision};
pub use table::bytes as parse_size;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DaemonConfig {
    /// Names the socket and the lock.
    pub name: String,
    /// Where the slots' logs go; absolute once it is loaded.
    pub logs: PathBuf,
    /// Where the `<role>.toml` files are; absolute once it is loaded.
    pub policies: PathBuf,
    /// Where the socket is, when it is not in the runtime directory.
    pub socket: Option<PathBuf>,
    /// Where the worktrees of slots are, when they are not in the user's data directory.
    pub worktrees: Option<PathBuf>,
}

/// The program that fetches a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotifyConfig {
    /// Its words; none: nobody is told.
    pub command: Vec<String>,
    /// How long a slot waits for a person before the command is run; `None` for never.
    #[serde(serialize_with = "supervision::time_or_off")]
    #[schemars(with = "String")]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SlotConfig {
    /// What commands call it.
    pub name: String,
    /// Its policy: `<role>.toml` in the directory of the policies.
    pub role: String,
    pub kind: Kind,
    /// Where it works; relative paths begin at the file's directory.
    pub cwd: PathBuf,
    /// The program and its first words.
    pub command: Vec<String>,
    /// More words for it.
    pub args: Vec<String>,
    /// On top of the daemon's environment.
    pub env: BTreeMap<String, String>,
    /// Begin with no environment but what `env_pass` names.
    pub env_clear: bool,
    /// What is taken over where `env_clear` is set.
    pub env_pass: Vec<String>,
    /// Columns of its terminal.
    pub cols: u16,
    /// Rows of its terminal.
    pub rows: u16,
    /// Claude Code's permission mode, in its newest word.
    pub mode: String,
    pub gate: Gate,
    /// Also read the project's own settings, hooks and all.
    pub project_settings: bool,
    /// Start it with the daemon.
    pub autostart: bool,
    /// Which ends lead to a restart.
    pub restart: Restart,
    /// A restart goes on with the same conversation.
    pub resume: bool,
    /// Its first message.
    pub prompt: Option<String>,
    /// A conversation to take over.
    #[schemars(with = "Option<String>")]
    pub session: Option<uuid::Uuid>,
    #[serde(flatten)]
    pub supervision: Supervision,
    /// Set by the daemon when `cwd` is a worktree: the directory that the file names.
    #[serde(skip)]
    pub worktree_of: Option<PathBuf>,
    /// For a slot that was made at run time and is in no file.
    #[serde(skip)]
    pub terms: Option<SessionTerms>,
    /// Set by the daemon for a slot that is in the file no more while its program runs.
    #[serde(skip)]
    pub removed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    #[default]
    Claude,
    /// Any program: no dialogs are read and no policy is applied.
    Shell,
}

/// What an automatic allow may rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// Claude Code's own hook, which has the tool's whole input.
    #[default]
    Hook,
    /// The screen alone, for programs and versions that have no hooks.
    Screen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    Always,
    #[default]
    OnFailure,
    Never,
}
