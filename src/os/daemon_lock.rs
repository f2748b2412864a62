//! The lock of a daemon: its holder, by the text in the file and by the kernel.

use crate::os::paths::Env;
use crate::os::process_stat::Stat;
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Far more than two paths and a number need.
const MAX_BYTES: u64 = 16 * 1024;

/// A daemon, as its lock file names it. The text remains when a daemon is killed: only the lock itself proves that it
/// is alive, and only its answer proves its identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: u32,
    pub socket: PathBuf,
    pub config: PathBuf,
}

impl Holder {
    pub fn this_process(socket: &Path, config: &Path) -> Holder {
        Holder {
            pid: std::process::id(),
            socket: socket.to_owned(),
            config: config.to_owned(),
        }
    }

    /// The daemon that holds this lock now.
    pub fn living(lock: &Path) -> Option<Holder> {
        let file = File::open(lock).ok()?;
        let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        Holder::read(lock).filter(|_| is_held)
    }

    pub fn write(&self, mut lock: &File) -> io::Result<()> {
        lock.set_len(0)?;
        let text = serde_json::to_string(self).map_err(io::Error::other)?;
        writeln!(lock, "{text}")
    }

    /// The last daemon that held this lock, if the file names it.
    pub fn read(lock: &Path) -> Option<Holder> {
        let mut text = String::new();
        let file = File::open(lock).ok()?;
        file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }
}

/// The process that has locked this file, according to the kernel. The text of the file proves nothing: any process of
/// the user can write it, also one in a slot.
fn owner(lock: &Path) -> Option<u32> {
    let found = std::fs::metadata(lock).ok()?;
    let (major, minor) = (
        rustix::fs::major(found.dev()),
        rustix::fs::minor(found.dev()),
    );
    let file = format!("{major:02x}:{minor:02x}:{}", found.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let mut fields = line
            .split_whitespace()
            .skip_while(|field| *field != "FLOCK");
        let pid = fields.nth(3)?.parse().ok()?;
        (fields.next()? == file).then_some(pid)
    })
}

/// Tells whether this process holds this lock.
pub fn is_held_by(lock: &Path, pid: u32) -> bool {
    owner(lock) == Some(pid)
}

/// Tells whether this process holds the lock of a daemon.
pub fn is_daemon(env: &Env, pid: u32) -> bool {
    let locks = env.all_locks();
    locks.iter().any(|lock| owner(lock) == Some(pid))
}

/// The living daemon whose socket this is, if another process listens there.
pub fn displaced_daemon(env: &Env, socket: &Path, listener: u32) -> Option<u32> {
    let locks = env.all_locks().into_iter();
    locks
        .filter(|lock| Holder::read(lock).is_some_and(|holder| holder.socket == socket))
        .find_map(|lock| other_owner(&lock, listener))
}

/// The daemon that holds this lock, if another process listens at its socket. The service manager may have opened the
/// socket for the daemon that it started.
pub fn other_owner(lock: &Path, listener: u32) -> Option<u32> {
    let parent = |pid: u32| Stat::of(pid)?.field(Stat::PARENT)?.parse::<u32>().ok();
    owner(lock).filter(|owner| *owner != listener && parent(*owner) != Some(listener))
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

    #[test]
    fn the_kernel_says_who_has_a_lock_whatever_its_file_says() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.lock");
        let lock = crate::os::files::append(&path).unwrap();
        assert_eq!(owner(&path), None);
        lock.lock().unwrap();
        let forged = Holder {
            pid: 1,
            ..Holder::this_process(&dir.path().join("m.sock"), dir.path())
        };
        forged.write(&lock).unwrap();
        let (own, parent) = (std::process::id(), std::os::unix::process::parent_id());
        assert_eq!(owner(&path), Some(own));
        assert_eq!(other_owner(&path, own), None);
        assert_eq!(other_owner(&path, parent), None);
        assert_eq!(other_owner(&path, u32::MAX), Some(own));
    }
}
