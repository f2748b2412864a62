//! The processes of a slot: the child, its descendants, and their orphans. The shim is their subreaper, so that an orphan becomes
//! a child of the shim, also after setsid.

use crate::core::model::ExitReport;
use crate::os::process_stat::{Stat, pids};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use std::collections::{HashMap, HashSet};

/// A process that has ended and was reaped.
#[derive(Debug)]
pub(super) struct Reaped {
    pub pid: Pid,
    pub exit: ExitReport,
}

/// What is left after reaping.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LeftOfTree {
    Some,
    /// No child at all, and so no descendant: each has its parent or the shim above it.
    None,
}

/// Reaps every ended process, including adopted orphans.
pub(super) fn reap(mut ended: impl FnMut(Reaped)) -> LeftOfTree {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => ended(Reaped::new(pid, status)),
            Ok(None) => return LeftOfTree::Some,
            Err(Errno::INTR) => {}
            Err(_) => return LeftOfTree::None,
        }
    }
}

/// Reaps this child if it has ended.
pub(super) fn reap_one(pid: Pid) -> Option<Reaped> {
    let status = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
    let (pid, status) = status.ok()??;
    Some(Reaped::new(pid, status))
}

impl Reaped {
    fn new(pid: Pid, status: WaitStatus) -> Self {
        let exit = ExitReport {
            code: status.exit_status(),
            signal: status.terminating_signal(),
        };
        Self { pid, exit }
    }
}

/// Sends signals to every descendant of this process. One that can't be signalled (it changed its user) or is already gone is
/// skipped: [`reap`] tells whether any is left.
pub(super) fn signal_all(signals: &[Signal]) {
    for pid in all() {
        for &signal in signals {
            let _ = rustix::process::kill_process(pid, signal);
        }
    }
}

/// Whether a process ignores a signal.
pub(super) fn ignores(pid: Pid, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero()));
    let status = status.unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}

/// All descendants of this process.
pub(super) fn all() -> Vec<Pid> {
    descendants(&parents(), rustix::process::getpid())
}

/// All descendants of `root`, from a map of parents.
fn descendants(parents: &HashMap<Pid, Pid>, root: Pid) -> Vec<Pid> {
    let mut found = HashSet::from([root]);
    let mut grown = true;
    while grown {
        let before = found.len();
        let below = parents.iter().filter(|(_, parent)| found.contains(parent));
        let below: Vec<Pid> = below.map(|(&pid, _)| pid).collect();
        found.extend(below);
        grown = found.len() > before;
    }
    found.remove(&root);
    found.into_iter().collect()
}

/// Every process with its parent, including ended ones that were not reaped: a process whose main thread has ended looks the same
/// while its other threads run.
fn parents() -> HashMap<Pid, Pid> {
    pids()
        .filter_map(|number| Some((Pid::from_raw(number)?, parent_in(&Stat::of(number)?)?)))
        .collect()
}

/// `None` for a kernel process.
fn parent_in(stat: &Stat) -> Option<Pid> {
    Pid::from_raw(stat.number(Stat::PARENT)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(number: i32) -> Pid {
        Pid::from_raw(number).unwrap()
    }

    #[test]
    fn descendants_are_found_at_any_depth() {
        let parents = [(2, 1), (5, 2), (3, 5), (4, 1), (9, 8), (8, 1)];
        let parents = parents.map(|(child, parent)| (pid(child), pid(parent)));
        let mut found = descendants(&HashMap::from(parents), pid(2));
        found.sort_by_key(|pid| pid.as_raw_nonzero());
        assert_eq!(found, [pid(3), pid(5)]);
    }

    #[test]
    fn a_name_can_not_disguise_the_parent() {
        let parent_in = |line: &[u8]| parent_in(&Stat::parse(line)?);
        assert_eq!(parent_in(b"7 (a) S 1 (b) \n) R 42 7 7 0"), Some(pid(42)));
        assert_eq!(parent_in(b"7 (\xff\xfe) R 42 7 7 0"), Some(pid(42)));
        assert_eq!(parent_in(b"7 (kthread) S 0 0"), None);
        assert_eq!(parent_in(b""), None);
    }
}
