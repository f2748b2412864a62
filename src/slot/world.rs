//! What all slots of a daemon share, none of which changes while it runs.

use crate::audit::Audit;
use crate::events::Bus;
use crate::paths::{Env, PathError};
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
    /// Where things are, and the daemon's name: together they say where a shim listens.
    pub env: Env,
    pub name: String,
    pub bus: Bus,
    pub audit: Audit,
    pub meter: Arc<Meter>,
}

impl World {
    pub fn memory_file(&self, slot: &str) -> PathBuf {
        self.state.join(format!("{slot}.json"))
    }

    pub fn shim_socket(&self, slot: &str) -> Result<PathBuf, PathError> {
        self.env.shim_socket(&self.name, slot)
    }

    pub fn settings_file(&self, slot: &str) -> PathBuf {
        self.state.join(format!("{slot}.settings.json"))
    }
}
