//! Who holds a daemon's lock, written into the file of the lock for whoever finds it taken.

use crate::config;
use crate::os::paths::Env;
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

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
    pub(super) fn this_process(socket: &Path, config: &Path) -> Holder {
        Holder {
            pid: std::process::id(),
            socket: socket.to_owned(),
            config: config.to_owned(),
        }
    }

    /// The daemon that has this lock now.
    pub fn living(lock: &Path) -> Option<Holder> {
        let file = File::open(lock).ok()?;
        let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        Holder::read(lock).filter(|_| is_held)
    }

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

/// The configs of all daemons of this user, those that run and those that have run, and when each was last written.
pub type Configs = Vec<(PathBuf, Option<SystemTime>)>;

pub fn configs(env: &Env) -> Configs {
    let holders = env.all_locks().into_iter();
    let configs = holders.filter_map(|lock| Some(Holder::read(&lock)?.config));
    let mut configs: Vec<PathBuf> = configs.collect();
    configs.sort();
    configs.dedup();
    let written = |config: &PathBuf| std::fs::metadata(config).and_then(|file| file.modified());
    let with_time = |config: PathBuf| {
        let written = written(&config).ok();
        (config, written)
    };
    configs.into_iter().map(with_time).collect()
}

/// What the daemons of these configs go by and write: no slot of any daemon may write it, since that would be a way to
/// change the rules of another. Of a config that can't be read nothing more is known than its own place.
pub fn files_of(configs: &Configs) -> Vec<PathBuf> {
    let files = |(config, _): &(PathBuf, _)| match config::load_daemon(config) {
        Ok(daemon) => daemon.own_files(config).to_vec(),
        Err(_) => vec![config.clone()],
    };
    configs.iter().flat_map(files).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_names_its_last_holder_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.lock");
        assert_eq!(Holder::read(&path), None);
        let lock = crate::os::files::append(&path).unwrap();
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
