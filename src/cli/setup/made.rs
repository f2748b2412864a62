//! The record of what `setup` has made, so that it is changed and removed, and nothing else is.

use crate::audit::hash_of;
use crate::cli::failure::{Blame, Failure};
use crate::core::model::Fault;
use crate::os::files;
use crate::os::paths::Env;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const FILE: &str = "setup.json";

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct MadeFiles {
    /// The files, each with the hash of what was written.
    pub files: BTreeMap<PathBuf, String>,
    /// Whether the user's programs were made to go on after the last logout.
    pub linger: bool,
}

impl MadeFiles {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && !self.linger
    }
}

/// What becomes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChange {
    None,
    New,
    Again,
}

impl MadeFiles {
    pub fn load(env: &Env) -> Result<MadeFiles, Failure> {
        let file = env.state_dir()?.join(FILE);
        match std::fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| unusable(&file, &error)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(MadeFiles::default()),
            Err(error) => Err(unusable(&file, &error)),
        }
    }

    pub fn save(&self, env: &Env) -> Result<(), Failure> {
        let directory = env.state_dir()?;
        let file = directory.join(FILE);
        crate::os::paths::ensure_private_dir(&directory)?;
        let text = serde_json::to_string_pretty(self).map_err(|error| unusable(&file, &error))?;
        files::save(&file, &text).map_err(|error| unusable(&file, &error))
    }

    /// What is to be done to have this text in a file; one that missiond has not written is refused.
    pub fn change(&self, path: &Path, text: &str) -> Result<FileChange, Failure> {
        let found = match std::fs::symlink_metadata(path) {
            Ok(_) => std::fs::read(path).unwrap_or_default(),
            Err(_) => return Ok(FileChange::New),
        };
        if found == text.as_bytes() {
            return Ok(FileChange::None);
        }
        match self.is_own(path, &found) {
            true => Ok(FileChange::Again),
            false => {
                let text = format!(
                    "{} is there, and missiond has not written it",
                    path.display()
                );
                Err(Failure::new(Blame::Fault(Fault::Refused), text)
                    .next("move it away, or keep it and do without `missiond setup`"))
            }
        }
    }

    /// Whether a file is what was written, unchanged.
    pub fn is_own(&self, path: &Path, found: &[u8]) -> bool {
        let is_plain = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
        is_plain && self.files.get(path) == Some(&hash_of(found))
    }

    pub fn write(&mut self, path: &Path, text: &str) -> Result<(), Failure> {
        let fault = |error| Failure::failed(format!("cannot write {}: {error}", path.display()));
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).map_err(fault)?;
        }
        std::fs::write(path, text).map_err(fault)?;
        self.files.insert(path.to_owned(), hash_of(text.as_bytes()));
        Ok(())
    }
}

fn unusable(file: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::failed(format!("cannot use {}: {error}", file.display()))
}
