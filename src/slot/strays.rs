//! What is left of a slot whose shim was killed: a shim ends its tree with itself, but not when it dies by KILL.
//! Closing the terminal ends most programs; the others are found by the slot that their environment names.

use crate::socket::Address;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Between TERM and KILL. Nobody waits for what they have to say, but a session file may be in writing.
const GRACE: Duration = Duration::from_secs(2);
/// Whoever is still there after this has another user or hangs in the kernel.
const KILL_PATIENCE: Duration = Duration::from_secs(3);
/// A shim that still answers after this was stopped, or is not ours.
const DISMISSAL: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// How a slot's processes are recognised, and where its shim listens while there is one.
#[derive(Debug)]
pub(super) struct Strays {
    pub slot: String,
    pub control_socket: PathBuf,
    pub shim_socket: PathBuf,
}

impl Strays {
    /// Ends them all and says how many there were. A process that cleared its environment is not found.
    pub fn end(&self) -> usize {
        if !self.shim_is_gone() {
            return 0;
        }
        let found = self.find();
        signal(&found, &[Signal::TERM, Signal::CONT]);
        wait(&found, GRACE);
        let deadline = Instant::now() + KILL_PATIENCE;
        let mut left = self.find();
        while !left.is_empty() && Instant::now() < deadline {
            signal(&left, &[Signal::KILL]);
            wait(&left, LOOK);
            // Again, since one of them may have forked.
            left = self.find();
        }
        found.len()
    }

    /// One whose program has ended was told to go, and is waited for; it takes moments.
    fn shim_is_gone(&self) -> bool {
        let deadline = Instant::now() + DISMISSAL;
        while is_answered(&self.shim_socket) {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    /// A handle, and not a number that may belong to another process a moment later.
    fn find(&self) -> Vec<OwnedFd> {
        let wanted = [
            format!("MISSIOND_SLOT={}", self.slot),
            format!("MISSIOND_SOCKET={}", self.control_socket.display()),
        ];
        let own = rustix::process::getpid();
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
            // A daemon that was started from within a slot names that slot too.
            .filter(|pid| *pid != own)
            .filter_map(|pid| {
                let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
                names_all(pid, &wanted).then_some(handle)
            })
            .collect()
    }
}

/// One that has ended and waits to be reaped has no environment any more.
fn names_all(pid: Pid, wanted: &[String]) -> bool {
    let environment = std::fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
    let environment = environment.unwrap_or_default();
    let names = |wanted: &String| {
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable == wanted.as_bytes())
    };
    wanted.iter().all(names)
}

fn is_answered(socket: &Path) -> bool {
    Address::of(socket).and_then(UnixStream::connect).is_ok()
}

fn signal(processes: &[OwnedFd], signals: &[Signal]) {
    for process in processes {
        for signal in signals {
            // It may have ended by itself.
            let _ = pidfd_send_signal(process, *signal);
        }
    }
}

/// Returns when all have ended, or after `patience`.
fn wait(processes: &[OwnedFd], patience: Duration) {
    let deadline = Instant::now() + patience;
    while processes.iter().any(runs) && Instant::now() < deadline {
        std::thread::sleep(LOOK);
    }
}

/// The handle of a process can be read once it has ended.
fn runs(process: &OwnedFd) -> bool {
    let mut ended = [PollFd::new(process, PollFlags::IN)];
    matches!(poll(&mut ended, Some(&Timespec::default())), Ok(0))
}
