//! The process that owns a session, watched until it ends.

use crate::core::settings::OwnerProcess;
use crate::os::peer::{Proc, ProcessTable};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How often an owner is checked: its sessions may outlive it by this time.
const LOOK: Duration = Duration::from_millis(250);

/// What is known about an owner.
#[derive(Debug)]
pub(super) enum Owner {
    /// There is no owner.
    None,
    /// The owner's handle, which always refers to the same process.
    Watched(OwnedFd),
    Gone,
}

impl Owner {
    pub fn watch(process: Option<OwnerProcess>) -> Owner {
        match process {
            None => Owner::None,
            Some(process) => handle(process).map_or(Owner::Gone, Owner::Watched),
        }
    }

    /// Tells whether the owner has ended. The handle of a process becomes readable when it has ended.
    pub fn is_gone(&self) -> bool {
        match self {
            Owner::None => false,
            Owner::Gone => true,
            Owner::Watched(handle) => {
                let mut ended = [PollFd::new(handle, PollFlags::IN)];
                matches!(poll(&mut ended, Some(&Timespec::default())), Ok(1..))
            }
        }
    }

    /// Returns when the owner has ended; never if there is none.
    pub async fn gone(&self) {
        if matches!(self, Owner::None) {
            return std::future::pending().await;
        }
        while !self.is_gone() {
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// A running process, in a form that can be recognised later; `None` if the id is unused.
pub fn running_process(pid: u32) -> Option<OwnerProcess> {
    let stat = Proc::default().stat(i32::try_from(pid).ok()?)?;
    Some(OwnerProcess {
        pid,
        started: stat.started,
    })
}

/// A handle of this process. The handle is opened first, because it always refers to the same process; the start time
/// then tells whether it is the right one.
fn handle(process: OwnerProcess) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(process.pid).ok()?)?;
    let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
    let same = running_process(process.pid) == Some(process);
    same.then_some(handle)
}
