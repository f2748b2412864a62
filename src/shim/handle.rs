//! A shim as a process, for whoever can't reach it by its socket.

use super::process::COMM;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::os::fd::OwnedFd;

/// A handle, and not a number that may belong to another process a moment later.
#[derive(Debug)]
pub struct Handle(OwnedFd);

impl Handle {
    /// `None` where the shim of this number is gone, and its number perhaps another's by now.
    pub fn of(pid: u32) -> Option<Handle> {
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let comm = std::fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero()));
        (comm.ok()?.trim() == COMM).then_some(Handle(handle))
    }

    /// Lets it go on where it was stopped; else nothing happens.
    pub fn wake(&self) {
        self.send(Signal::CONT);
    }

    /// It ends its program, and itself with nobody who takes note of that.
    pub fn dismiss(&self) {
        self.send(Signal::TERM);
        self.wake();
    }

    fn send(&self, signal: Signal) {
        // It may have ended by itself.
        let _ = pidfd_send_signal(&self.0, signal);
    }
}
