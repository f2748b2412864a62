//! What all slots of a daemon share.

use super::claims::Claims;
use crate::audit::Audit;
use crate::events::Bus;
use crate::paths::{Env, PathError};
use crate::sends::Sends;
use crate::usage::Meter;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct World {
    /// This program, for shims and hooks.
    pub program: PathBuf,
    /// The control socket, for hooks.
    pub socket: PathBuf,
    /// The daemon's environment, from which a slot's is made.
    pub environment: Vec<(String, String)>,
    pub logs: PathBuf,
    /// Slots' memories and settings files.
    pub state: PathBuf,
    /// Where the worktrees of slots are. They are the slots' to write, and so never in `state`.
    pub worktrees: PathBuf,
    /// Where things are, and the daemon's name: together they say where a shim listens.
    pub env: Env,
    pub name: String,
    pub bus: Bus,
    pub sends: Sends,
    pub audit: Audit,
    pub meter: Arc<Meter>,
    pub claims: Claims,
}

impl World {
    pub fn memory_file(&self, slot: &str) -> PathBuf {
        self.state.join(format!("{slot}.json"))
    }

    /// What is kept of each session.
    pub fn sessions_dir(&self) -> PathBuf {
        super::record::sessions_dir(&self.state)
    }

    pub fn session_file(&self, id: &str) -> PathBuf {
        self.sessions_dir().join(format!("{id}.json"))
    }

    /// What its shell reads at its start.
    pub fn shell_dir(&self, id: &str) -> PathBuf {
        self.sessions_dir().join(format!("{id}.shell"))
    }

    /// A variable of the daemon's environment, if it is set to anything.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let mut variables = self.environment.iter();
        let found = variables.find(|(key, _)| key == name);
        found
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    pub fn shim_socket(&self, slot: &str) -> Result<PathBuf, PathError> {
        self.env.shim_socket(&self.name, slot)
    }

    /// Whether a shim listens for it, answering or not. A shim that has a daemon lets go of it to answer this.
    pub fn has_shim(&self, slot: &str) -> bool {
        self.shim_socket(slot)
            .is_ok_and(|socket| crate::socket::is_listening(&socket))
    }

    /// Whether there is the socket of a shim. A shim removes it at its end, but not when it is killed.
    pub fn has_shim_socket(&self, slot: &str) -> bool {
        let socket = self.shim_socket(slot);
        socket.is_ok_and(|socket| socket.symlink_metadata().is_ok())
    }

    pub fn settings_file(&self, slot: &str) -> PathBuf {
        self.state.join(format!("{slot}.settings.json"))
    }
}
