//! The daemon as the subreaper of its slots: shims are its children after they have detached themselves, and so is what
//! a killed shim leaves, by which [`crate::os::orphans`] knows it. Whoever adopts has to reap.

use super::{DaemonError, DaemonHandle};
use crate::os::blocking;
use crate::os::cgroup;
use crate::os::orphans::Shims;
use crate::os::peer::{self, PeerMarks, PeerOrigin, Proc, ProcessTable, StatOfPeer};
use crate::shim;
use crate::slot::SlotContext;
use rustix::process::{Pid, WaitOptions};
use std::collections::HashSet;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

/// Between two looks. A child that the daemon has started itself is reaped by whoever started it, well within this.
const LOOK: Duration = Duration::from_secs(1);

impl DaemonHandle {
    /// By what the processes of the slots are known, as they are now.
    pub fn marks(&self) -> PeerMarks {
        let slots = self.slots();
        let pids = slots
            .iter()
            .flat_map(|(name, slot)| slot.pids().map(|pid| (pid, name.clone())));
        PeerMarks {
            pids: pids.collect(),
            socket: self.context.socket.display().to_string(),
            group: Some(cgroup::mark(&self.context.socket)),
            shims: self.context.shims.all(),
            daemon: self.own_process,
        }
    }
}

/// A daemon inside one of its own slots would end with that slot, and its shim would refuse it. With no daemon the living
/// shims say who is inside, as they do in [`DaemonHandle::marks`].
pub(super) fn check_outside(
    context: &SlotContext,
    living: &[shim::Handle],
) -> Result<(), DaemonError> {
    let pids = living.iter();
    let pids = pids.map(|shim| (shim.pid().cast_signed(), shim.slot().to_owned()));
    let marks = PeerMarks {
        pids: pids.collect(),
        socket: context.socket.display().to_string(),
        group: Some(cgroup::mark(&context.socket)),
        ..PeerMarks::default()
    };
    let own = rustix::process::getpid().as_raw_nonzero().get();
    match peer::origin(Some(own), &marks, &Proc::default()) {
        PeerOrigin::Slot(slot) => Err(DaemonError::Inside { slot }),
        _ => Ok(()),
    }
}

/// From here on the daemon adopts what is orphaned below it, and reaps it in a task of its own.
pub(super) fn adopt(shims: Shims) -> Result<JoinHandle<()>, DaemonError> {
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own))
        .map_err(|error| DaemonError::place("orphans", error))?;
    let ended =
        signal(SignalKind::child()).map_err(|error| DaemonError::place("signals", error))?;
    Ok(tokio::spawn(reap_adopted(ended, shims)))
}

async fn reap_adopted(mut ended: Signal, shims: Shims) {
    let mut left = HashSet::new();
    loop {
        match left.is_empty() {
            true => drop(ended.recv().await),
            false => tokio::time::sleep(LOOK).await,
        }
        let (seen, shims) = (left.clone(), shims.clone());
        left = match blocking::run(move || reap(&seen, &shims)).await {
            Ok(left) => left,
            // No thread: later.
            Err(_) => left,
        };
    }
}

/// Reaps shims, and what was seen before: that belongs to nobody else. Says what has ended and is left.
fn reap(seen: &HashSet<i32>, shims: &Shims) -> HashSet<i32> {
    let shims: HashSet<i32> = shims.all().iter().map(|shim| shim.pid).collect();
    let (mine, others): (Vec<i32>, Vec<i32>) = ended_and_adopted()
        .into_iter()
        .partition(|pid| shims.contains(pid) || seen.contains(pid));
    for pid in mine.into_iter().filter_map(Pid::from_raw) {
        let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
    }
    others.into_iter().collect()
}

/// The children that have ended and were not born in the daemon's session, as all are that it starts.
fn ended_and_adopted() -> Vec<i32> {
    let table = Proc::default();
    let own = std::process::id().cast_signed();
    let Some(session) = table.stat(own).map(|stat| stat.session) else {
        return Vec::new();
    };
    let is_ours = |stat: &StatOfPeer| stat.has_ended && stat.session != session;
    let has_ended = |pid: &i32| table.stat(*pid).as_ref().is_some_and(is_ours);
    children(own).into_iter().filter(has_ended).collect()
}

/// Each thread has a list of its own.
fn children(pid: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let lists: Vec<String> = lists.collect();
    let children = lists.iter().flat_map(|list| list.split_whitespace());
    children.filter_map(|child| child.parse().ok()).collect()
}
