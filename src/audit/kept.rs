//! The head of the chain, kept in the state directory: an audit file that was cut or replaced does not contain it.

use super::{AuditGap, Head, hash_of};
use crate::os::files;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The size of the file in bytes. It is written in place and never grows, so that it can be written on a full disk.
const LENGTH: usize = 512;

/// The state directory's record of an audit file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptHead {
    #[serde(flatten)]
    pub head: Head,
    /// Entries that could not be written, and are not in the audit as a gap yet.
    pub gap: Option<AuditGap>,
}

/// The real path of a directory, even if it was removed.
fn really_at(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().find_map(|there| {
        let rest = directory.strip_prefix(there).ok()?;
        Some(there.canonicalize().ok()?.join(rest))
    })
}

impl KeptHead {
    /// The file in the state directory of a daemon. An audit in another log directory has another file.
    pub fn file(state: &Path, audit: &Path) -> PathBuf {
        let directory = audit.parent().and_then(really_at);
        let name = audit.file_name().unwrap_or_default();
        let place = directory.map_or_else(|| audit.to_owned(), |dir| dir.join(name));
        let hash = hash_of(place.as_os_str().as_bytes());
        state.join(format!("audit.{}.head", &hash[..16]))
    }

    /// Loads the file; a missing one is `None`. An error names the file.
    pub fn load(file: &Path) -> io::Result<Option<KeptHead>> {
        let fault = |error: &dyn fmt::Display| {
            io::Error::other(format!("{} can't be read: {error}", file.display()))
        };
        let text = match files::read_text(file) {
            Ok(text) => text,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(fault(&error)),
        };
        let kept = serde_json::from_str(&text);
        kept.map(Some).map_err(|error| fault(&error))
    }

    /// The heads of an audit that all daemons of this user have kept; `states` is the parent of their state
    /// directories.
    pub fn heads(states: &Path, audit: &Path) -> io::Result<Vec<Head>> {
        let Ok(entries) = std::fs::read_dir(states) else {
            return Ok(Vec::new());
        };
        let files = entries
            .flatten()
            .map(|one| KeptHead::file(&one.path(), audit));
        let kept = files.map(|file| KeptHead::load(&file));
        let kept: Vec<Option<KeptHead>> = kept.collect::<io::Result<_>>()?;
        Ok(kept.into_iter().flatten().map(|kept| kept.head).collect())
    }

    pub fn save(&self, file: &Path) -> io::Result<()> {
        let mut text = serde_json::to_string(self).map_err(io::Error::other)?;
        let padding = LENGTH.saturating_sub(text.len() + 1);
        text.push_str(&" ".repeat(padding));
        text.push('\n');
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
        options.open(file)?.write_all_at(text.as_bytes(), 0)
    }
}

/// Tells whether the error means that the file or its directory does not exist.
fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::Utc;

    #[test]
    fn it_is_read_as_it_was_written_and_never_grows() {
        let dir = tempfile::tempdir().unwrap();
        let file = KeptHead::file(dir.path(), &dir.path().join("audit.jsonl"));
        assert_eq!(KeptHead::load(&file).unwrap(), None);
        let full = KeptHead {
            head: Head {
                seq: u64::MAX,
                hash: hash_of(b""),
            },
            gap: Some(AuditGap {
                lost: u64::MAX,
                refused: u64::MAX,
                from: Utc::now(),
                to: Utc::now(),
            }),
        };
        for kept in [KeptHead::default(), full, KeptHead::default()] {
            kept.save(&file).unwrap();
            assert_eq!(KeptHead::load(&file).unwrap(), Some(kept));
            assert_eq!(file.metadata().unwrap().len(), LENGTH as u64);
        }
    }
}
