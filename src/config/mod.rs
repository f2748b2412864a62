//! slots.toml and policies/ on the disk: read and checked ([`load`]), watched, and compared after a change. Their
//! content is defined in [`crate::core::settings`].

mod diff;
mod load;
mod places;
mod watch;

pub use diff::{ConfigChange, diff, keys_that_differ};
pub use load::{for_sessions_alone, load, load_at_home, load_daemon, read_source};
pub use places::{LOG_FILE, LOG_LOCK};
pub use watch::{ConfigChanged, ConfigWatch, WatchError, watch};

use crate::core::policy::Policy;
use crate::core::settings::{DaemonConfig, NotifyConfig, SessionsConfig, SlotConfig};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A whole, checked configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Config {
    /// The absolute path of its file.
    pub file: PathBuf,
    pub daemon: DaemonConfig,
    pub notify: NotifyConfig,
    pub sessions: SessionsConfig,
    pub slots: Vec<SlotConfig>,
    /// The policy of every role that a slot of Claude Code has.
    #[serde(skip)]
    pub policies: BTreeMap<String, RolePolicy>,
}

/// A role's policy, and the text that it was read from.
#[derive(Debug, Clone)]
pub struct RolePolicy {
    pub text: Arc<str>,
    pub policy: Arc<Policy>,
}

impl PartialEq for RolePolicy {
    fn eq(&self, other: &RolePolicy) -> bool {
        (&self.text, &self.policy.file) == (&other.text, &other.policy.file)
    }
}

impl Eq for RolePolicy {}
