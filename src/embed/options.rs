//! What a supervisor inside another program is started with.

use crate::config::{self, Config};
use crate::core::policy::PermissionPolicy;
use crate::core::text::diagnostic::ConfigError;
use crate::daemon::OwnPolicy;
use crate::os::files;
use crate::os::paths::{self, Env};
use std::io;
use std::path::{Path, PathBuf};

/// The program of the shims, as it is called where it is installed.
const PROGRAM: &str = "missiond";

/// A configuration, and where everything lies.
#[derive(Debug, Clone)]
pub struct Options {
    pub(super) config: Config,
    pub(super) env: Env,
    /// Where one was found or named.
    pub(super) program: Option<PathBuf>,
    pub(super) policy: Option<OwnPolicy>,
}

/// Why there are no options.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{}: {cause}", .place.display())]
    Place { place: PathBuf, cause: String },
}

impl Options {
    /// The slots of a slots.toml, with sockets and state where `missiond run` would have them.
    pub fn from_config(file: impl AsRef<Path>) -> Result<Options, OptionsError> {
        let config = config::load(file.as_ref())?;
        Ok(Options::new(config, Env::of_process()))
    }

    /// No slots, for programs that make sessions only. Logs, sockets and state are in this directory, which is made
    /// where it is missing and must be this user's alone.
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

    /// A policy of one's own beside those of the roles: see [`Supervisor::with_policy`](super::Supervisor::with_policy).
    pub fn policy(mut self, policy: impl PermissionPolicy + 'static) -> Options {
        self.policy = Some(OwnPolicy::new(policy));
        self
    }

    /// The `missiond` program to hold the terminals, where it is not in the PATH or beside this program.
    pub fn program(mut self, program: impl Into<PathBuf>) -> Options {
        self.program = Some(program.into());
        self
    }
}

/// This program itself where it is missiond, else one beside it, else the first in the PATH.
fn installed() -> Option<PathBuf> {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(Path::to_owned);
    // Examples lie in a directory of their own, below the programs.
    let above = beside.as_deref().and_then(Path::parent).map(Path::to_owned);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = beside
        .into_iter()
        .chain(above)
        .chain(std::env::split_paths(&path));
    let mut candidates = directories.map(|directory| directory.join(PROGRAM));
    candidates.find(|candidate| candidate.is_file())
}
