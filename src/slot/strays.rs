//! What is left of a slot whose shim was killed: a shim ends its tree with itself, but not when it dies by KILL.
//! Closing the terminal ends most programs; the others are found by the slot that their environment names. The socket
//! of such a shim is left too, and says that there is something to look for.

use crate::socket::Address;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Between TERM and KILL. Nobody waits for what they have to say, but a session file may be in writing.
const GRACE: Duration = Duration::from_secs(2);
/// Whoever is still there after this has another user or hangs in the kernel.
const KILL_PATIENCE: Duration = Duration::from_secs(3);
/// A shim that was dismissed is gone before this; one that is not was stopped, or is not ours.
pub(super) const DISMISSAL: Duration = Duration::from_secs(5);
/// What a shim needs at most that is told to end: its own grace, then its patience after KILL.
const SHIM_ENDS: Duration = Duration::from_secs(12);
const LOOK: Duration = Duration::from_millis(20);

/// How a slot's processes are recognised, and where its shim listens while there is one.
#[derive(Debug)]
pub(super) struct Strays {
    pub slot: String,
    pub control_socket: PathBuf,
    pub shim_socket: PathBuf,
}

impl Strays {
    /// Ends them all and says how many there were. A shim that lives has `patience` to go; where it does not, it is
    /// left alone (`None`). A process that cleared its environment is not found.
    pub fn end(&self, patience: Duration) -> io::Result<Option<usize>> {
        let shim: Vec<OwnedFd> = self.shim()?.into_iter().collect();
        wait(&shim, patience);
        match shim.iter().any(runs) {
            true => Ok(None),
            false => Ok(Some(self.end_tree())),
        }
    }

    /// The same with a shim that lives and is of no use: it is told to end, and killed where it does not.
    pub fn end_with_shim(&self) -> io::Result<usize> {
        let shim: Vec<OwnedFd> = self.shim()?.into_iter().collect();
        // One that was stopped hears nothing before it goes on.
        signal(&shim, &[Signal::TERM, Signal::CONT]);
        wait(&shim, SHIM_ENDS);
        signal(&shim, &[Signal::KILL]);
        wait(&shim, KILL_PATIENCE);
        Ok(self.end_tree())
    }

    /// Lets a shim go on that was stopped; whether there is one.
    pub fn wake_shim(&self) -> io::Result<bool> {
        let shim: Vec<OwnedFd> = self.shim()?.into_iter().collect();
        signal(&shim, &[Signal::CONT]);
        Ok(!shim.is_empty())
    }

    fn end_tree(&self) -> usize {
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
        // Where it is there still, nobody listens to it.
        let _ = std::fs::remove_file(&self.shim_socket);
        found.len()
    }

    /// The shim that listens, whether it answers or not. The kernel knows whose socket it is.
    fn shim(&self) -> io::Result<Option<OwnedFd>> {
        let stream = match Address::of(&self.shim_socket).and_then(UnixStream::connect) {
            Ok(stream) => stream,
            Err(error) if is_nobody(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let shim = rustix::net::sockopt::socket_peercred(&stream)?.pid;
        match pidfd_open(shim, PidfdFlags::empty()) {
            Err(rustix::io::Errno::SRCH) => Ok(None),
            shim => Ok(Some(shim?)),
        }
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

/// Any other error, such as a shortage, says nothing of who listens.
fn is_nobody(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::ConnectionRefused
    )
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
