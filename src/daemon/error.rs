//! Why a daemon did not start.

use super::Holder;
use crate::core::text::diagnostic::ConfigError;
use crate::os::remedy;
use std::io;
use std::path::{Path, PathBuf};

/// The cause, and the next step if it is known.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Another daemon has the name, the log directory or the socket.
    #[error("{what} is running already{}", in_words(holder.as_ref()))]
    Taken {
        what: String,
        holder: Option<Holder>,
    },
    /// Programs run that a daemon with the same name and another config has started.
    #[error("slots of another config run under the same name: {slots}, of {}", theirs.display())]
    Foreign {
        slots: String,
        theirs: PathBuf,
        ours: PathBuf,
    },
    /// A daemon with the same name and another config has left conversations, with which these slots would go on.
    #[error("the state of this name is that of another config, {}: these slots would go on with its conversations: {slots}", theirs.display())]
    StateOfAnother {
        slots: String,
        theirs: PathBuf,
        ours: PathBuf,
    },
    /// The daemon would run inside one of its own slots.
    #[error(
        "this runs inside the slot {slot}, and the daemon of a slot is not started from inside the slot"
    )]
    Inside { slot: String },
    #[error("{what}: {cause}")]
    Place {
        what: String,
        cause: String,
        next: Option<String>,
    },
}

fn in_words(holder: Option<&Holder>) -> String {
    holder.map_or_else(String::new, |Holder { pid, config, .. }| {
        format!(": pid {pid}, with {}", config.display())
    })
}

impl DaemonError {
    pub(crate) fn place(what: impl Into<String>, cause: impl ToString) -> DaemonError {
        DaemonError::Place {
            what: what.into(),
            cause: cause.to_string(),
            next: None,
        }
    }

    /// The error for a file or directory of the daemon that can't be used.
    pub(crate) fn file(path: &Path, error: &io::Error) -> DaemonError {
        let fault = DaemonError::place(path.display().to_string(), error);
        let remedy = remedy::of(error, path.parent().unwrap_or(path));
        fault.next(format!("{remedy}; then start it again"))
    }

    pub(crate) fn next(self, step: impl Into<String>) -> DaemonError {
        match self {
            DaemonError::Place { what, cause, .. } => DaemonError::Place {
                what,
                cause,
                next: Some(step.into()),
            },
            other => other,
        }
    }
}
