//! The log of a background daemon: its standard output and standard error are a file, which `up` has opened.

use crate::os::files;
use rustix::stdio::{dup2_stderr, dup2_stdout};
use std::io;
use std::path::{Path, PathBuf};

/// The file that this process prints into, if that is the daemon's log.
#[derive(Debug)]
pub(super) struct OwnLog {
    path: PathBuf,
}

impl OwnLog {
    /// The log of this process, if it prints into the file at this path.
    pub fn at(path: &Path) -> Option<OwnLog> {
        let printed = rustix::fs::fstat(rustix::stdio::stderr()).ok()?;
        let there = rustix::fs::stat(path).ok()?;
        let is_it = (printed.st_dev, printed.st_ino) == (there.st_dev, there.st_ino);
        is_it.then(|| OwnLog {
            path: path.to_owned(),
        })
    }

    /// Creates the log again if it was removed, so that output goes to the expected path.
    pub fn restore(&self) -> io::Result<()> {
        if self.path.symlink_metadata().is_ok() {
            return Ok(());
        }
        let again = files::append(&self.path)?;
        dup2_stdout(&again)?;
        dup2_stderr(&again)?;
        Ok(())
    }
}
