//! The options of an embedded supervisor.

use crate::config::{self, Config};
use crate::core::policy::PermissionPolicy;
use crate::core::text::diagnostic::ConfigError;
use crate::daemon::{DaemonError, OwnPolicy};
use crate::os::files;
use crate::os::paths::{self, Env};
use std::io;
use std::path::{Path, PathBuf};

/// The installed name of the shim's program.
const PROGRAM: &str = "missiond";

/// A configuration, and the directories to use.
#[derive(Debug, Clone)]
pub struct Options {
    config: Config,
    env: Env,
    /// The program, if one was found or given.
    program: Option<PathBuf>,
    policy: Option<OwnPolicy>,
}

/// Why the options are invalid.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{}: {cause}", .place.display())]
    Place { place: PathBuf, cause: String },
}

impl Options {
    /// The slots of a slots.toml, with sockets and state in the same places as for `missiond run`.
    pub fn from_config(file: impl AsRef<Path>) -> Result<Options, OptionsError> {
        let config = config::load(file.as_ref())?;
        Ok(Options::new(config, Env::of_process()))
    }

    /// No slots, for programs that only create sessions. Logs, sockets and state are in this directory. It is created
    /// if it is missing, and must belong to this user only.
    pub fn in_directory(directory: impl AsRef<Path>) -> Result<Options, OptionsError> {
        let directory = directory.as_ref();
        let fault = |cause: String| OptionsError::Place {
            place: directory.to_owned(),
            cause,
        };
        paths::ensure_private_dir(directory).map_err(|error| fault(error.to_string()))?;
        let directory = &directory
            .canonicalize()
            .map_err(|error: io::Error| fault(error.to_string()))?;
        let file = directory.join("slots.toml");
        if !file.exists() {
            files::replace(&file, "[daemon]\nlogs = \"logs\"\n\n[sessions]\n")
                .map_err(|error| fault(error.to_string()))?;
        }
        let env = Env {
            state_home: Some(directory.join("state")),
            data_home: Some(directory.join("data")),
            runtime_home: Some(directory.join("run")),
            ..Env::of_process()
        };
        Ok(Options::new(config::load(&file)?, env))
    }

    fn new(config: Config, env: Env) -> Options {
        Options {
            config,
            env,
            program: installed(),
            policy: None,
        }
    }

    pub(super) fn config_file(&self) -> &Path {
        &self.config.file
    }

    pub(super) fn has_policy(&self) -> bool {
        self.policy.is_some()
    }

    pub(super) fn socket(&self) -> Result<PathBuf, DaemonError> {
        let socket = self.config.daemon.socket_in(&self.env);
        socket.map_err(|error| DaemonError::place("the socket", error))
    }

    /// The program of the shims, if it is a file.
    pub(super) fn installed_program(&self) -> Option<PathBuf> {
        self.program.clone().filter(|program| program.is_file())
    }

    pub(super) fn into_parts(self) -> (Config, Env, Option<OwnPolicy>) {
        (self.config, self.env, self.policy)
    }

    /// Your own policy in addition to those of the roles: see
    /// [`Supervisor::with_policy`](super::Supervisor::with_policy).
    pub fn policy(mut self, policy: impl PermissionPolicy + 'static) -> Options {
        self.policy = Some(OwnPolicy::new(policy));
        self
    }

    /// The `missiond` program for the shims, if it is not in the PATH or next to this program.
    pub fn program(mut self, program: impl Into<PathBuf>) -> Options {
        self.program = Some(program.into());
        self
    }
}

/// This program itself if it is missiond, otherwise one next to it, otherwise the first in the PATH.
fn installed() -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(Path::to_owned);
    // Cargo puts examples into a directory below the programs.
    let above = beside.as_deref().and_then(Path::parent).map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = beside
        .into_iter()
        .chain(above)
        .chain(std::env::split_paths(&path));
    let mut candidates = directories.map(|directory| directory.join(PROGRAM));
    candidates.find(|candidate| candidate.is_file())
}
