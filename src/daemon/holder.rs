//! Who holds a daemon's lock, written into the file of the lock for whoever finds it taken.

use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Far more than two paths and a number need.
const MAX_BYTES: u64 = 16 * 1024;

/// A daemon, as its lock file names it. The text stays behind when a daemon is killed: only the lock itself says
/// whether it lives, and only its answer says who it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    pub socket: PathBuf,
    pub config: PathBuf,
}

impl Holder {
    pub(super) fn write(&self, mut lock: &File) -> io::Result<()> {
        lock.set_len(0)?;
        let text = serde_json::to_string(self).map_err(io::Error::other)?;
        writeln!(lock, "{text}")
    }

    /// The last daemon that had this lock, if it said so.
    pub fn read(lock: &Path) -> Option<Holder> {
        let mut text = String::new();
        let file = File::open(lock).ok()?;
        file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_names_its_last_holder_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.lock");
        assert_eq!(Holder::read(&path), None);
        let lock = crate::files::append(&path).unwrap();
        let holder = |name: &str| Holder {
            pid: 7,
            socket: dir.path().join("m.sock"),
            config: dir.path().join(name),
        };
        for name in ["a-long-name-of-a-config.toml", "b.toml"] {
            holder(name).write(&lock).unwrap();
            assert_eq!(Holder::read(&path), Some(holder(name)));
        }
        std::fs::write(&path, "garbage").unwrap();
        assert_eq!(Holder::read(&path), None);
    }
}
