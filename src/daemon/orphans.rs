//! The daemon as the subreaper of its slots. Shims become its children after they have detached themselves, and so do
//! the processes that a killed shim leaves; [`crate::os::orphans`] recognises them by that. A subreaper has to reap
//! what it adopts.

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

/// The interval between two checks. A child that the daemon has started itself is reaped by its starter, well within
/// this time.
const LOOK: Duration = Duration::from_secs(1);

impl DaemonHandle {
    /// The marks by which the processes of the slots are recognised, as they are now.
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

/// Refuses to start a daemon inside one of its own slots: it would end with that slot, and the slot's shim would refuse
/// it. Without a daemon, the living shims tell which processes are inside, as they do in [`DaemonHandle::marks`].
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

/// Makes the daemon adopt the orphans below it, and reaps them in a separate task.
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
            // If no thread can be started, it is tried again later.
            Err(_) => left,
        };
    }
}

/// Reaps ended shims, and ended processes that the last check saw too: no other code of the daemon reaps those. Returns
/// the other ended processes.
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

/// The ended children that were not born in the daemon's session. The daemon's own children all are.
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

/// The children of a process. Each of its threads has a separate list.
fn children(pid: i32) -> Vec<i32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.into_iter().flatten().flatten();
    let lists =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    let lists: Vec<String> = lists.collect();
    let children = lists.iter().flat_map(|list| list.split_whitespace());
    children.filter_map(|child| child.parse().ok()).collect()
}
