//! The orphans of a killed shim: processes that belong to a slot, without any ancestor of the slot.
//!
//! While a shim lives, it adopts the orphans of its slot. If it is killed, the kernel gives them to the nearest
//! subreaper above the shim: the daemon that started it or, if that daemon has ended, the shim's new parent, or init.
//! So a process below such a reaper may belong to the slot if it is younger than the killed shim, and if nothing shows
//! another origin. Nothing that a process of the slot can do by itself (wait, fork, begin a session, clear its
//! environment) changes this.

use super::peer::{Proc, ProcessTable, StatOfPeer};
use crate::os::process_stat::pids;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most killed shims that are kept. Beyond this the youngest is dropped: an older one covers it.
const MAX_LOST: usize = 256;

/// The process id of a shim that has not reported it yet.
const UNKNOWN: i32 = 0;

const INIT: i32 = 1;

/// How often all processes are listed again, if one of them ends meanwhile.
const LISTINGS: usize = 50;

/// A shim whose tree may not have ended completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownShim {
    pub slot: String,
    pub pid: i32,
    /// In clock ticks since the machine was started.
    pub started: u64,
    /// The processes that adopt the orphans of its slot if it is killed.
    pub reapers: Vec<i32>,
    /// The control groups of its tree, as in /proc/PID/cgroup.
    pub cgroup: Option<Vec<u8>>,
}

impl KnownShim {
    fn is_alive(&self, table: &dyn ProcessTable) -> bool {
        let stat = table.stat(self.pid);
        stat.is_some_and(|stat| stat.started == self.started && !stat.has_ended)
    }

    /// Tells whether `child`, whose parent is `reaper`, may be an orphan of this shim's slot.
    fn may_have_left(
        &self,
        child: (i32, StatOfPeer),
        reaper: (i32, StatOfPeer),
        table: &dyn ProcessTable,
    ) -> bool {
        let ((pid, stat), (above, reaper)) = (child, reaper);
        self.reapers.contains(&above)
            && stat.started >= self.started
            // A shim begins a session: no process of its slot is in the session of an ancestor.
            && stat.session != reaper.session
            && !self.is_older(stat.session, table)
            && table.user(pid).is_none_or(|user| Some(user) == table.user(own_pid()))
            && (self.cgroup.is_none() || table.cgroup(pid).is_none_or(|cgroup| Some(cgroup) == self.cgroup))
            && !self.is_alive(table)
    }

    /// Tells whether it is certain that no process belongs to this shim. If one ends during the check, it may have had
    /// a child that was not listed yet: then all are listed again.
    fn left_nothing(&self, table: &dyn ProcessTable) -> bool {
        for _ in 0..LISTINGS {
            // Listed before any of them is checked.
            let listed: Vec<i32> = pids().collect();
            let stats = listed.into_iter().map(|pid| Some((pid, table.stat(pid)?)));
            if let Some(all) = stats.collect::<Option<HashMap<_, _>>>() {
                let is_left = |(pid, stat): (&i32, &StatOfPeer)| {
                    let reaper = all.get(&stat.parent).map(|above| (stat.parent, *above));
                    *pid != own_pid()
                        && reaper
                            .is_some_and(|reaper| self.may_have_left((*pid, *stat), reaper, table))
                };
                return !all.iter().any(is_left);
            }
        }
        false
    }

    /// Tells whether a session was begun by a process that is older than the slot and still leads it.
    fn is_older(&self, session: i32, table: &dyn ProcessTable) -> bool {
        let leader = table
            .stat(session)
            .filter(|leader| leader.session == session);
        leader.is_some_and(|leader| leader.started < self.started)
    }
}

/// The slot of a killed shim that may have left this process, found by its ancestors, with the process itself first.
pub(super) fn left_by(
    ancestors: &[(i32, StatOfPeer)],
    shims: &[Arc<KnownShim>],
    table: &dyn ProcessTable,
) -> Option<String> {
    ancestors
        .windows(2)
        // The daemon itself may be younger than a shim that it has adopted.
        .filter(|pair| pair[0].0 != own_pid())
        .find_map(|pair| {
            shims
                .iter()
                .find(|shim| shim.may_have_left(pair[0], pair[1], table))
        })
        .map(|shim| shim.slot.clone())
}

fn own_pid() -> i32 {
    std::process::id().cast_signed()
}

/// The shims of a daemon, from before their start until their trees have ended. A killed shim stays until no process
/// can be left of it.
#[derive(Debug, Clone, Default)]
pub struct Shims {
    known: Arc<Mutex<Vec<Arc<KnownShim>>>>,
}

impl Shims {
    /// Notes that this process is about to start a shim of this slot.
    pub fn begins(&self, slot: &str) {
        let table = Proc::default();
        let shim = KnownShim {
            slot: slot.to_owned(),
            pid: UNKNOWN,
            started: now_in_ticks(),
            reapers: vec![own_pid()],
            cgroup: None,
        };
        let mut known = self.known();
        known.push(Arc::new(shim));
        forget_youngest(&mut known, &table);
    }

    /// Notes that the shim was not started.
    pub fn never_began(&self, slot: &str) {
        self.known()
            .retain(|shim| shim.pid != UNKNOWN || shim.slot != slot);
    }

    /// Notes that the shim runs and is connected to this daemon.
    pub fn joined(&self, slot: &str, pid: u32) {
        let (pid, table) = (pid.cast_signed(), Proc::default());
        let Some(stat) = table.stat(pid) else {
            // It was already killed: the entry from `begins` stays.
            return;
        };
        let shim = KnownShim {
            slot: slot.to_owned(),
            pid,
            started: stat.started,
            reapers: match stat.parent == own_pid() {
                true => vec![stat.parent],
                false => vec![stat.parent, INIT],
            },
            cgroup: table.cgroup(pid),
        };
        self.never_began(slot);
        let mut known = self.known();
        known.retain(|one| (one.pid, one.started) != (shim.pid, shim.started));
        known.push(Arc::new(shim));
    }

    /// Notes that the shim has reported that no process of its tree is left.
    pub fn ended(&self, pid: u32) {
        self.known().retain(|shim| shim.pid != pid.cast_signed());
    }

    /// Drops the killed shims without remaining processes: no running process may be theirs.
    pub fn settle(&self) {
        let table = Proc::default();
        let is_over = |shim: &KnownShim| {
            shim.pid != UNKNOWN && !shim.is_alive(&table) && shim.left_nothing(&table)
        };
        let over: Vec<Arc<KnownShim>> = self
            .all()
            .into_iter()
            .filter(|shim| is_over(shim))
            .collect();
        self.known().retain(|shim| !over.contains(shim));
    }

    pub fn all(&self) -> Vec<Arc<KnownShim>> {
        self.known().clone()
    }

    /// The list, locked only for a moment and never across an await.
    fn known(&self) -> MutexGuard<'_, Vec<Arc<KnownShim>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forget_youngest(known: &mut Vec<Arc<KnownShim>>, table: &dyn ProcessTable) {
    let is_lost = |shim: &&Arc<KnownShim>| !shim.is_alive(table);
    if known.len() > MAX_LOST && known.iter().filter(is_lost).count() > MAX_LOST {
        let lost = known.iter().filter(is_lost);
        let youngest = lost.max_by_key(|shim| shim.started).cloned();
        known.retain(|shim| youngest.as_ref() != Some(shim));
    }
}

/// The time in the kernel's hundredths of a second, like `started`. Without /proc, no origin is known anyway.
fn now_in_ticks() -> u64 {
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    let digits = uptime
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .replace('.', "");
    digits.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    const DAEMON: i32 = 40;
    const SHIM: i32 = 50;
    const SLOT: &[u8] = b"0::/slot\n";

    #[derive(Clone, Copy)]
    struct Process {
        stat: StatOfPeer,
        user: u32,
        cgroup: &'static [u8],
    }

    struct Table(HashMap<i32, Process>);

    impl ProcessTable for Table {
        fn stat(&self, pid: i32) -> Option<StatOfPeer> {
            self.0.get(&pid).map(|process| process.stat)
        }

        fn environment(&self, _: i32) -> Option<Vec<u8>> {
            None
        }

        fn user(&self, pid: i32) -> Option<u32> {
            // This process represents the daemon.
            let pid = if pid == own_pid() { DAEMON } else { pid };
            self.0.get(&pid).map(|process| process.user)
        }

        fn cgroup(&self, pid: i32) -> Option<Vec<u8>> {
            self.0.get(&pid).map(|process| process.cgroup.to_vec())
        }

        fn fault(&self) -> Option<String> {
            None
        }
    }

    fn process(parent: i32, session: i32, started: u64) -> Process {
        Process {
            stat: StatOfPeer {
                parent,
                started,
                session,
                has_ended: false,
            },
            user: 1000,
            cgroup: SLOT,
        }
    }

    /// Init, an old login shell, a daemon, and no shim: it was killed.
    fn machine() -> Table {
        Table(HashMap::from([
            (1, process(0, 1, 0)),
            (20, process(1, 20, 100)),
            (DAEMON, process(1, DAEMON, 200)),
        ]))
    }

    fn shim(reapers: &[i32]) -> Arc<KnownShim> {
        Arc::new(KnownShim {
            slot: "coder".to_owned(),
            pid: SHIM,
            started: 300,
            reapers: reapers.to_vec(),
            cgroup: Some(SLOT.to_vec()),
        })
    }

    /// Tells whether process 60, and so its child 61, may come from the shim.
    fn is_suspected(mut table: Table, shim: &Arc<KnownShim>, suspect: Process) -> bool {
        table.0.insert(60, suspect);
        let mut ancestors = vec![(61, process(60, 61, 900).stat)];
        while let Some(parent) = ancestors
            .last()
            .map(|(_, stat)| stat.parent)
            .filter(|pid| *pid > 0)
        {
            ancestors.push((parent, table.0[&parent].stat));
        }
        left_by(&ancestors, std::slice::from_ref(shim), &table).is_some()
    }

    /// What a process of the slot can make of itself: its own session or the slot's, at any time since the start.
    #[test]
    fn nothing_that_a_process_does_by_itself_takes_it_out() {
        for reaper in [DAEMON, 1] {
            let shim = shim(&[reaper]);
            for session in [SHIM, 51, 60] {
                for started in [300, 301, 60_000] {
                    let orphan = process(reaper, session, started);
                    assert!(
                        is_suspected(machine(), &shim, orphan),
                        "{reaper} {session} {started}"
                    );
                }
            }
        }
    }

    /// Each row has one property that no process of the slot can have.
    #[test]
    fn whoever_came_from_elsewhere_is_not_suspected() {
        let root = Process {
            user: 0,
            ..process(1, 60, 400)
        };
        let unit = Process {
            cgroup: b"0::/other\n",
            ..process(1, 60, 400)
        };
        for (why, reapers, other) in [
            ("older than the shim", &[1][..], process(1, 60, 299)),
            (
                "in the session of its parent, as PID 1 of a container",
                &[1],
                process(1, 1, 400),
            ),
            (
                "in a session that is older than the shim",
                &[1],
                process(1, 20, 400),
            ),
            ("of another user, as sshd or cron", &[1], root),
            ("of another unit of the service manager", &[1], unit),
            (
                "below a process that gets no orphans of the slot",
                &[DAEMON],
                process(1, 60, 400),
            ),
            (
                "with no parent, as `docker exec` has it",
                &[1],
                process(0, 60, 400),
            ),
            (
                "started by the daemon",
                &[DAEMON],
                process(DAEMON, DAEMON, 400),
            ),
        ] {
            assert!(!is_suspected(machine(), &shim(reapers), other), "{why}");
        }
    }

    #[test]
    fn while_a_shim_lives_all_of_its_slot_is_below_it() {
        let alive = |stat: StatOfPeer| {
            let mut table = machine();
            table.0.insert(
                SHIM,
                Process {
                    stat,
                    ..process(1, SHIM, 300)
                },
            );
            !is_suspected(table, &shim(&[1]), process(1, 60, 400))
        };
        let stat = process(1, SHIM, 300).stat;
        assert!(alive(stat));
        assert!(!alive(StatOfPeer {
            has_ended: true,
            ..stat
        }));
        assert!(
            !alive(StatOfPeer {
                started: 301,
                ..stat
            }),
            "another process has its number"
        );
    }

    #[test]
    fn a_shim_is_forgotten_when_its_tree_has_ended_and_not_before() {
        let shims = Shims::default();
        let own = std::process::id();
        shims.begins("a");
        shims.begins("b");
        shims.never_began("b");
        assert_eq!(shims.all().len(), 1);
        assert!(shims.all()[0].started > 0);
        shims.joined("a", own);
        shims.joined("a", own);
        let [known] = &shims.all()[..] else {
            panic!("{:?}", shims.all());
        };
        assert_eq!(known.pid, own_pid());
        assert!(known.is_alive(&Proc::default()));
        assert!(known.cgroup.is_some());
        shims.ended(own);
        assert!(shims.all().is_empty());
    }

    #[test]
    fn a_killed_shim_is_forgotten_once_nothing_can_be_left_of_it() {
        let shims = Shims::default();
        let own = Proc::default().stat(own_pid()).expect("it runs");
        let killed = KnownShim {
            pid: i32::MAX,
            started: own.started,
            reapers: vec![own_pid()],
            cgroup: None,
            ..KnownShim::clone(&shim(&[]))
        };
        shims.known().push(Arc::new(killed));
        let mut orphan = Command::new("setsid")
            .args(["-w", "cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("setsid");
        let pid = orphan.id().cast_signed();
        let leads = || {
            Proc::default()
                .stat(pid)
                .is_some_and(|stat| stat.session == pid)
        };
        while !leads() {
            std::thread::yield_now();
        }
        shims.settle();
        assert_eq!(shims.all().len(), 1, "a process may be left of it");
        drop(orphan.stdin.take());
        orphan.wait().expect("it ends");
        shims.settle();
        assert!(shims.all().is_empty());
    }

    #[test]
    fn the_memory_of_killed_shims_has_a_bound_and_keeps_the_oldest() {
        let shims = Shims::default();
        for n in 0..=MAX_LOST {
            shims.begins(&n.to_string());
        }
        assert_eq!(shims.all().len(), MAX_LOST);
        assert_eq!(shims.all()[0].slot, "0");
    }
}
