//! What is left of a slot whose shim was killed: a shim ends its tree with itself, but not when it dies by KILL.
//! Closing the terminal ends most programs; the others are found by the slot that their environment names. The socket
//! of such a shim is left too, and says that there is something to look for.

use crate::os::cgroup;
use crate::os::process_stat::pids;
use crate::shim::Handle;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io;
use std::os::fd::OwnedFd;
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
pub(super) struct OrphanProcesses {
    pub slot: String,
    /// Where the daemon keeps its state, by which its shims are known.
    pub home: PathBuf,
    pub control_socket: PathBuf,
    pub shim_socket: PathBuf,
    /// The control group of the slot, if it has one.
    pub cgroup: Option<PathBuf>,
}

/// What was found of a slot.
#[derive(Debug)]
pub(crate) enum OrphansFound {
    /// Its shim lives, and nothing was ended.
    Living(Handle),
    /// Nothing, or what a dead shim left: this many processes, which were ended.
    Ended(usize),
}

impl OrphanProcesses {
    /// Ends what a dead shim left. A shim that lives has `patience` to go; if it does not, it is left alone. A process
    /// that cleared its environment is found by the slot's control group only.
    pub fn end(&self, patience: Duration) -> io::Result<OrphansFound> {
        match self.shim()? {
            Some(shim) if !ends_within(&shim, patience) => Ok(OrphansFound::Living(shim)),
            _ => Ok(OrphansFound::Ended(self.end_tree())),
        }
    }

    /// The same with a shim that lives and is of no use: it is told to end, and killed where it does not.
    pub fn end_with_shim(&self) -> io::Result<OrphansFound> {
        if let Some(shim) = self.shim()? {
            shim.dismiss();
            if !ends_within(&shim, SHIM_ENDS) {
                shim.kill();
                ends_within(&shim, KILL_PATIENCE);
            }
        }
        Ok(OrphansFound::Ended(self.end_tree()))
    }

    /// Lets a shim go on that was stopped; whether there is one.
    pub fn wake_shim(&self) -> io::Result<bool> {
        let shim = self.shim()?;
        Ok(shim.inspect(Handle::wake).is_some())
    }

    fn shim(&self) -> io::Result<Option<Handle>> {
        Handle::find(&self.home, &self.slot)
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
        if let Some(group) = &self.cgroup {
            cgroup::kill(group);
            cgroup::remove(group);
        }
        // Where it is there still, nobody listens to it.
        let _ = std::fs::remove_file(&self.shim_socket);
        found.len()
    }

    /// A handle, and not a number that may belong to another process a moment later.
    fn find(&self) -> Vec<OwnedFd> {
        let wanted = [
            format!("MISSIOND_SLOT={}", self.slot),
            format!("MISSIOND_SOCKET={}", self.control_socket.display()),
        ];
        let members = self.cgroup.as_deref().map(cgroup::members);
        let members = members.unwrap_or_default();
        let is_member = |pid: Pid| members.contains(&pid.as_raw_nonzero().get());
        let own = rustix::process::getpid();
        pids()
            .filter_map(Pid::from_raw)
            // A daemon that was started from within a slot names that slot too.
            .filter(|pid| *pid != own)
            .filter_map(|pid| {
                let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
                (is_member(pid) || names_all(pid, &wanted)).then_some(handle)
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

fn signal(processes: &[OwnedFd], signals: &[Signal]) {
    for process in processes {
        for signal in signals {
            // It may have ended by itself.
            let _ = pidfd_send_signal(process, *signal);
        }
    }
}

/// Whether it has ended before its time was over.
fn ends_within(shim: &Handle, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    while shim.runs() && Instant::now() < deadline {
        std::thread::sleep(LOOK);
    }
    !shim.runs()
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
