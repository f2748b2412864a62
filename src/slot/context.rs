//! What all slots of a daemon share.

use super::conversation_locks::ConversationLocks;
use super::journal::SlotPaths;
use super::memory::memory_file;
use super::role_costs::RoleCosts;
use crate::audit::Audit;
use crate::events::Bus;
use crate::launch;
use crate::os::orphans::Shims;
use crate::os::paths::{Env, PathError};
use crate::os::usage::Meter;
use crate::shim;
use crate::slot::once::OnceRequests;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct SlotContext {
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
    /// The config that the daemon runs with.
    pub config: PathBuf,
    pub bus: Bus,
    pub once: OnceRequests,
    pub audit: Audit,
    pub meter: Arc<Meter>,
    pub across: AcrossSlots,
    pub shims: Shims,
}

/// What slots must know of each other.
#[derive(Debug, Clone, Default)]
pub struct AcrossSlots {
    pub conversation_locks: ConversationLocks,
    pub role_costs: RoleCosts,
}

/// Where a daemon keeps what it knows of sessions, in its state directory.
pub fn sessions_dir(state: &Path) -> PathBuf {
    state.join("sessions")
}

impl SlotContext {
    /// What Claude Code runs before each tool call of this slot. The daemon's lock is beside its state directory.
    pub fn hook_command(&self, slot: &str) -> String {
        let lock = self.state.with_extension("lock");
        launch::hook_command(&self.program, &self.socket, &lock, slot)
    }

    pub fn memory_file(&self, slot: &str) -> PathBuf {
        memory_file(&self.state, slot)
    }

    /// What is kept of each session.
    pub fn sessions_dir(&self) -> PathBuf {
        sessions_dir(&self.state)
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

    /// The living shim of a slot, answering or not; what its socket became does not matter.
    pub fn shim(&self, slot: &str) -> io::Result<Option<shim::Handle>> {
        shim::Handle::find(&self.state, slot)
    }

    /// Whether there is the socket of a shim. A shim removes it at its end, but not when it is killed.
    pub fn has_shim_socket(&self, slot: &str) -> bool {
        let socket = self.shim_socket(slot);
        socket.is_ok_and(|socket| socket.symlink_metadata().is_ok())
    }

    /// Whether what is kept of a slot was removed or, while its program runs, the recording or the shim's socket.
    pub fn has_lost_files(&self, slot: &str, runs: bool) -> bool {
        let is_gone = |path: PathBuf| path.symlink_metadata().is_err();
        let recording = || SlotPaths::new(&self.logs, slot).recording;
        is_gone(self.memory_file(slot))
            || (runs && (is_gone(recording()) || !self.has_shim_socket(slot)))
    }

    pub fn settings_file(&self, slot: &str) -> PathBuf {
        self.state.join(format!("{slot}.settings.json"))
    }
}
