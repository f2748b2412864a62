//! Shims as processes. A shim has its slot and its daemon in its arguments, so that the kernel's process table shows which shims
//! live, whatever happened to sockets and files.

use super::ShimKeeper;
use super::process::{COMM, DETACHED, VERB};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A handle to the process, since a number may belong to another process a moment later.
#[derive(Debug)]
pub struct Handle {
    process: OwnedFd,
    pid: u32,
    slot: String,
    keeper: ShimKeeper,
}

impl Handle {
    /// `None` if no shim of this user has this process id.
    pub fn of_pid(pid: u32) -> Option<Handle> {
        Self::look(pid).ok().flatten()
    }

    /// The living shims whose daemon keeps its state in `home`. An error, such as a shortage of descriptors, says nothing about
    /// which live.
    pub fn all(home: &Path) -> io::Result<Vec<Handle>> {
        Self::kept_by(|keeper| keeper.home == home)
    }

    /// The living shims of this user whose daemon matches.
    pub fn kept_by(is_wanted: impl Fn(&ShimKeeper) -> bool) -> io::Result<Vec<Handle>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            found.extend(Self::look(pid)?.filter(|shim| is_wanted(&shim.keeper)));
        }
        Ok(found)
    }

    /// The living shim of a slot.
    pub fn find(home: &Path, slot: &str) -> io::Result<Option<Handle>> {
        let mut all = Self::all(home)?.into_iter();
        Ok(all.find(|shim| shim.slot == slot))
    }

    fn look(pid: u32) -> io::Result<Option<Handle>> {
        let of_process = |file: &str| PathBuf::from(format!("/proc/{pid}/{file}"));
        let Some(comm) = there(std::fs::read(of_process("comm")))? else {
            return Ok(None);
        };
        if comm.trim_ascii_end() != COMM.as_bytes() {
            return Ok(None);
        }
        let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let Some(number) = number else {
            return Ok(None);
        };
        let opened = pidfd_open(number, PidfdFlags::empty()).map_err(io::Error::from);
        let Some(process) = there(opened)? else {
            return Ok(None);
        };
        let owner = there(std::fs::metadata(of_process("")))?.map(|found| found.uid());
        let line = there(std::fs::read(of_process("cmdline")))?.unwrap_or_default();
        let is_ours = owner == Some(rustix::process::geteuid().as_raw());
        let named = named_in(&line).filter(|_| is_ours);
        Ok(named.map(|(slot, keeper)| Handle {
            process,
            pid,
            slot,
            keeper,
        }))
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn slot(&self) -> &str {
        &self.slot
    }

    /// The daemon that started it.
    pub fn keeper(&self) -> &ShimKeeper {
        &self.keeper
    }

    pub fn runs(&self) -> bool {
        // The handle of a process becomes readable when it has ended.
        let mut ended = [PollFd::new(&self.process, PollFlags::IN)];
        matches!(poll(&mut ended, Some(&Timespec::default())), Ok(0))
    }

    /// Asks it to create its socket again and, for a while, to listen at [`bell`] too, which needs no file. The kernel permits
    /// this only to its own user.
    pub fn ring(&self) {
        self.send(Signal::USR1);
    }

    /// Continues it if it was stopped; otherwise nothing happens.
    pub fn wake(&self) {
        self.send(Signal::CONT);
    }

    /// It ends its program and itself, without a report to anybody.
    pub fn dismiss(&self) {
        self.send(Signal::TERM);
        self.wake();
    }

    pub fn kill(&self) {
        self.send(Signal::KILL);
    }

    fn send(&self, signal: Signal) {
        // It may have ended by itself.
        let _ = pidfd_send_signal(&self.process, signal);
    }
}

/// The name in the abstract namespace at which a shim listens after [`Handle::ring`]. Such names have no owner and no mode: both
/// sides check who the other one is.
pub(super) fn bell(pid: u32) -> String {
    format!("{COMM}-{pid}")
}

/// The slot and the daemon in a shim's arguments.
fn named_in(line: &[u8]) -> Option<(String, ShimKeeper)> {
    let mut arguments = line.split(|byte| *byte == 0).skip(1);
    let is_shim = arguments.next()? == VERB.as_bytes() && arguments.next()? == DETACHED.as_bytes();
    let slot = String::from_utf8(arguments.next()?.to_vec()).ok()?;
    let mut path = || Some(PathBuf::from(OsStr::from_bytes(arguments.next()?)));
    let (home, config) = (path()?, path()?);
    is_shim.then_some((slot, ShimKeeper { home, config }))
}

/// A process that has ended in between is `None`.
fn there<T>(looked: io::Result<T>) -> io::Result<Option<T>> {
    match looked {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(None),
        // Another user's.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shim_is_known_by_its_arguments_and_nothing_else_is() {
        let found =
            named_in(b"missiond\0shim\0--detached\0coder\0/state/m\0/slots.toml\0").unwrap();
        assert_eq!(found.0, "coder");
        assert_eq!(found.1.home, Path::new("/state/m"));
        assert_eq!(found.1.config, Path::new("/slots.toml"));
        for other in [
            &b""[..],
            b"missiond\0shim\0coder\0/state/m\0/slots.toml\0",
            b"missiond\0shim\0--detached\0coder\0/state/m",
            b"missiond\0run\0--detached\0coder\0/state/m\0/slots.toml\0",
        ] {
            assert_eq!(named_in(other), None);
        }
    }

    #[test]
    fn the_table_can_be_read_and_this_process_is_no_shim() {
        assert!(Handle::of_pid(std::process::id()).is_none());
        let nobody = Handle::all(Path::new("/no/such/state")).unwrap();
        assert!(nobody.is_empty());
    }
}
