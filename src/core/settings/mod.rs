//! What people configure, as checked values, and the parser of slots.toml. Pure: the text comes in.

mod keys;
pub mod limits;
mod notify;
mod parse;
mod schema;
mod session;
mod supervision;
pub(crate) mod table;

pub use keys::mode_words;
pub(crate) use notify::HIDDEN_KEYS;
pub use notify::{NotifyConfig, NtfyConfig, QuietHours, RemoteAnswers, SlackConfig, WebhookConfig};
pub use parse::{DAEMONS_OWN, FOR_CLAUDE, Places, is_name};
pub(crate) use parse::{DraftConfig, DraftSlot, parse, parse_daemon, resolve, syntax_error};
pub use schema::schema;
pub use session::{OwnerProcess, SessionTerms, SessionsConfig, Shell, ShellMarks};
pub use supervision::{OnLimit, OnStall, Supervision};
pub use table::bytes as parse_size;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DaemonConfig {
    /// The daemon's name, which is part of the names of its socket and its lock.
    pub name: String,
    /// The directory of the slots' logs.
    pub logs: PathBuf,
    /// The directory of the policies, one file `<role>.toml` for each role.
    pub policies: PathBuf,
    /// The path of the control socket, if it is not in the runtime directory.
    pub socket: Option<PathBuf>,
    /// The directory of the slots' worktrees, if it is not in the user's data directory.
    pub worktrees: Option<PathBuf>,
}

/// One slot, defaults filled in, paths absolute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SlotConfig {
    /// The name that commands use for the slot.
    pub name: String,
    /// The slot's policy: the file `<role>.toml` in the directory of policies.
    pub role: String,
    /// What the slot runs.
    pub kind: Kind,
    /// The directory that the slot works in. A relative path begins at the directory of slots.toml.
    pub cwd: PathBuf,
    /// The program, and arguments that come before all others.
    pub command: Vec<String>,
    /// More arguments for the program.
    pub args: Vec<String>,
    /// Environment variables that are added to those of the daemon.
    pub env: BTreeMap<String, String>,
    /// Start the program without the daemon's environment, except for the variables in `env_pass`.
    pub env_clear: bool,
    /// The names of variables that the program gets although `env_clear` is set.
    pub env_pass: Vec<String>,
    /// The columns of the slot's terminal.
    pub cols: u16,
    /// The rows of the slot's terminal.
    pub rows: u16,
    /// Claude Code's permission mode. `default` is the older name of `manual`.
    pub mode: String,
    /// What an automatic allow is based on.
    pub gate: Gate,
    /// Claude Code also reads the settings in the project's directory, and runs the hooks that they name.
    pub project_settings: bool,
    /// Start the slot when the daemon starts.
    pub autostart: bool,
    /// Which ends of the program are followed by a restart.
    pub restart: Restart,
    /// A restart continues the same conversation.
    pub resume: bool,
    /// The first message of a new conversation.
    pub prompt: Option<String>,
    /// The id of a conversation that the slot continues at its first start.
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

impl SlotConfig {
    /// A Claude Code with the usual settings, whose role has the slot's name.
    pub fn usual(name: &str, cwd: impl Into<PathBuf>) -> SlotConfig {
        SlotConfig {
            name: name.to_owned(),
            role: name.to_owned(),
            kind: Kind::Claude,
            cwd: cwd.into(),
            command: vec!["claude".to_owned()],
            args: Vec::new(),
            env: BTreeMap::new(),
            env_clear: false,
            env_pass: Vec::new(),
            cols: 120,
            rows: 40,
            mode: "manual".to_owned(),
            gate: Gate::Hook,
            project_settings: false,
            autostart: true,
            restart: Restart::OnFailure,
            resume: true,
            prompt: None,
            session: None,
            supervision: Supervision::default(),
            worktree_of: None,
            terms: None,
            removed: false,
        }
    }
}

/// What a slot runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Claude Code.
    #[default]
    Claude,
    /// Any program. missiond reads no dialogs and applies no policy.
    Shell,
}

impl Kind {
    /// Whether missiond can tell that the program has nothing to do.
    pub fn shows_rest(self) -> bool {
        match self {
            Kind::Claude => true,
            Kind::Shell => false,
        }
    }
}

/// What an automatic allow is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// Claude Code's own hook, which has the tool's whole input.
    #[default]
    Hook,
    /// The screen alone, for programs and versions without hooks. With one that has hooks they are the gate, and Claude Code,
    /// which gets no allow rules here, asks about more than with `hook`.
    Screen,
}

/// Which ends of the program are followed by a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Every end.
    Always,
    /// An end with an exit code other than 0, or by a signal.
    #[default]
    OnFailure,
    /// None.
    Never,
}
