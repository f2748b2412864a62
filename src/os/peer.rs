//! The origin of a connection: a process outside all slots, or one that a slot runs.
//!
//! The kernel names the process that connected; its ancestors are looked up in /proc. A shim adopts the orphans of its
//! slot, so a tool can't leave its slot by losing its parents; the orphans of a killed shim are recognised by the place
//! that the kernel gives them ([`super::orphans`]). This detects accidents and simple attacks, but it is not a security
//! boundary: a program of the same user can have itself started by another process.

use super::orphans::{self, KnownShim};
use crate::core::model::Person;
use crate::core::model::envelope::Request;
use crate::core::text::secrets;
use crate::os::cgroup;
use crate::os::process_stat;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// A client, as it was when it connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub pid: Option<i32>,
    pub uid: u32,
    pub origin: PeerOrigin,
    /// The name that it gives itself.
    pub via: String,
}

impl Peer {
    /// The person that it acts for, as the audit names them.
    pub fn person(&self) -> Person {
        Person {
            uid: self.uid,
            pid: self.pid,
            via: self.via.clone(),
        }
    }

    /// The client, with the name that it gives itself in this request.
    pub fn asking(&self, request: &Request) -> Peer {
        Peer {
            via: request.client_name(),
            ..self.clone()
        }
    }

    /// The answer for this client: a slot does not get another slot's secrets.
    pub fn may_see(&self, answer: Value) -> Value {
        match self.origin {
            PeerOrigin::Outside => answer,
            PeerOrigin::Slot(_)
            | PeerOrigin::Left(_)
            | PeerOrigin::Daemon
            | PeerOrigin::Untold
            | PeerOrigin::Unseen(_) => {
                let mut masked = secrets::mask_json(&answer);
                // Hex can't be masked; the text beside it is enough.
                masked.as_object_mut().map(|answer| answer.remove("hex"));
                masked
            }
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerOrigin {
    /// It is outside all slots: a person, or a program that a person started.
    Outside,
    /// It runs inside this slot.
    Slot(String),
    /// It may be an orphan of this slot's killed shim.
    Left(String),
    /// The daemon runs it outside all slots, such as the command of `[notify]`.
    Daemon,
    /// It was gone before it could be looked up, or is not visible from here.
    Untold,
    /// The look-up failed, for this reason: the daemon lacks a resource.
    Unseen(String),
}

/// In the environment of programs that the daemon runs outside its slots: the daemon's socket.
pub const RUN_BY: &str = "MISSIOND_RUN_BY";

/// What identifies the processes of a daemon's slots.
#[derive(Debug, Default)]
pub struct PeerMarks {
    /// Shims and the programs in them.
    pub pids: HashMap<i32, String>,
    /// `MISSIOND_SOCKET` of this daemon's slots. A slot that is just being started has no known shim yet, and one whose
    /// shim was killed has none any more: their processes still have the slot's environment.
    pub socket: String,
    /// The name of the control groups of this daemon's slots.
    pub group: Option<String>,
    /// Shims that have not reported the end of their trees, including killed ones.
    pub shims: Vec<Arc<KnownShim>>,
    /// The daemon's process, unless another program runs in it too. It adopts the orphans below it: nothing leaves it
    /// by losing its parents.
    pub daemon: Option<i32>,
}

/// A source of process data.
pub trait ProcessTable {
    fn stat(&self, pid: i32) -> Option<StatOfPeer>;
    /// The environment that it was started with, `NAME=value` separated by NUL.
    fn environment(&self, pid: i32) -> Option<Vec<u8>>;
    /// The real user, which a program with the set-user-ID bit does not change.
    fn user(&self, pid: i32) -> Option<u32>;
    /// Its control groups, as the kernel writes them.
    fn cgroup(&self, pid: i32) -> Option<Vec<u8>>;
    /// Why existing data could not be read.
    fn fault(&self) -> Option<String>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatOfPeer {
    /// 0 if there is none.
    pub parent: i32,
    /// In clock ticks since the machine was started: together with the id, this identifies a process.
    pub started: u64,
    pub session: i32,
    /// Whether it has ended, and its parent has not waited for it yet.
    pub has_ended: bool,
}

impl StatOfPeer {
    /// Parses the line of /proc/PID/stat.
    fn parse(line: &[u8]) -> Option<StatOfPeer> {
        let fields = process_stat::Stat::parse(line)?;
        Some(StatOfPeer {
            parent: fields.number(process_stat::Stat::PARENT)?,
            started: fields.number(process_stat::Stat::START)?,
            session: fields.number(process_stat::Stat::SESSION)?,
            has_ended: matches!(fields.field(process_stat::Stat::STATE)?, "Z" | "X"),
        })
    }
}

/// The processes of this machine.
#[derive(Debug, Default)]
pub struct Proc {
    fault: RefCell<Option<String>>,
}

impl Proc {
    fn read(&self, pid: i32, file: &str) -> Option<Vec<u8>> {
        let read = std::fs::read(format!("/proc/{pid}/{file}"));
        read.map_err(|error| self.note(&error)).ok()
    }

    /// A process that has ended and one of another user are ordinary.
    fn note(&self, error: &io::Error) {
        let is_gone = error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error());
        let ordinary = [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied];
        if !is_gone && !ordinary.contains(&error.kind()) {
            self.fault.replace(Some(error.to_string()));
        }
    }
}

impl ProcessTable for Proc {
    fn stat(&self, pid: i32) -> Option<StatOfPeer> {
        StatOfPeer::parse(&self.read(pid, "stat")?)
    }

    fn environment(&self, pid: i32) -> Option<Vec<u8>> {
        self.read(pid, "environ")
    }

    fn user(&self, pid: i32) -> Option<u32> {
        let status = String::from_utf8(self.read(pid, "status")?).ok()?;
        let users = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        users.split_whitespace().next()?.parse().ok()
    }

    fn cgroup(&self, pid: i32) -> Option<Vec<u8>> {
        self.read(pid, "cgroup")
    }

    fn fault(&self) -> Option<String> {
        self.fault.borrow().clone()
    }
}

/// If an ancestor ends during the walk, it starts again, at most this often.
const TRIES: usize = 5;
/// More generations than any machine has between a process and its first ancestor.
const MAX_GENERATIONS: usize = 4096;

/// The origin of this process.
pub fn origin(pid: Option<i32>, marks: &PeerMarks, table: &dyn ProcessTable) -> PeerOrigin {
    let Some(pid) = pid.filter(|pid| *pid > 0) else {
        return PeerOrigin::Untold;
    };
    let found = (0..TRIES).find_map(|_| walk_up(pid, marks, table));
    match (found, table.fault()) {
        (Some(PeerOrigin::Slot(slot)), _) => PeerOrigin::Slot(slot),
        // A mark may have been overlooked.
        (_, Some(fault)) => PeerOrigin::Unseen(fault),
        (found, None) => found.unwrap_or(PeerOrigin::Untold),
    }
}

/// `None` if the line of ancestors changed during the walk.
fn walk_up(pid: i32, marks: &PeerMarks, table: &dyn ProcessTable) -> Option<PeerOrigin> {
    let first = table.stat(pid)?;
    let mut ancestors = vec![(pid, first)];
    let mut is_daemons = false;
    while let &[.., (at, stat)] = &ancestors[..] {
        if let Some(slot) = marks.slot_of(at, table) {
            return Some(PeerOrigin::Slot(slot));
        }
        is_daemons |= marks.is_run_by_daemon(at, table) || (at != pid && Some(at) == marks.daemon);
        if stat.parent <= 0 {
            break;
        }
        if ancestors.len() > MAX_GENERATIONS {
            return None;
        }
        ancestors.push((stat.parent, table.stat(stat.parent)?));
    }
    let left = orphans::left_by(&ancestors, &marks.shims, table);
    // Only the same, unchanged process has shown its own ancestors.
    (table.stat(pid)? == first).then_some(match left {
        Some(slot) => PeerOrigin::Left(slot),
        None if is_daemons => PeerOrigin::Daemon,
        None => PeerOrigin::Outside,
    })
}

impl PeerMarks {
    fn slot_of(&self, pid: i32, table: &dyn ProcessTable) -> Option<String> {
        if let Some(slot) = self.pids.get(&pid) {
            return Some(slot.clone());
        }
        // The environment of another user's process is not visible; then its ancestors decide.
        let environment = table.environment(pid).unwrap_or_default();
        let by_environment = slot_in(&environment, &self.socket);
        let group = || self.group.as_deref().zip(table.cgroup(pid));
        by_environment.or_else(|| group().and_then(|(mark, groups)| cgroup::slot_in(&groups, mark)))
    }

    fn is_run_by_daemon(&self, pid: i32, table: &dyn ProcessTable) -> bool {
        let environment = table.environment(pid).unwrap_or_default();
        variable(&environment, RUN_BY) == Some(self.socket.as_bytes())
    }
}

fn variable<'a>(environment: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut variables = environment.split(|&byte| byte == 0);
    variables.find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
}

/// The slot that an environment names, if it is one of this daemon's.
fn slot_in(environment: &[u8], socket: &str) -> Option<String> {
    let slot = variable(environment, "MISSIOND_SLOT")?;
    (variable(environment, "MISSIOND_SOCKET")? == socket.as_bytes())
        .then(|| String::from_utf8_lossy(slot).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Process, parent, environment.
    struct Table(Vec<(i32, i32, &'static str)>);

    impl ProcessTable for Table {
        fn stat(&self, pid: i32) -> Option<StatOfPeer> {
            let (_, parent, _) = self.0.iter().find(|(id, ..)| *id == pid)?;
            Some(StatOfPeer {
                parent: *parent,
                started: 1,
                session: pid,
                has_ended: false,
            })
        }

        fn user(&self, _: i32) -> Option<u32> {
            None
        }

        fn cgroup(&self, _: i32) -> Option<Vec<u8>> {
            None
        }

        fn environment(&self, pid: i32) -> Option<Vec<u8>> {
            let (.., environment) = self.0.iter().find(|(id, ..)| *id == pid)?;
            Some(environment.replace(' ', "\0").into_bytes())
        }

        fn fault(&self) -> Option<String> {
            None
        }
    }

    fn marks() -> PeerMarks {
        PeerMarks {
            pids: HashMap::from([(50, "coder".to_owned()), (51, "coder".to_owned())]),
            socket: "/run/a.sock".to_owned(),
            group: None,
            shims: Vec::new(),
            daemon: Some(90),
        }
    }

    fn of(pid: i32) -> PeerOrigin {
        let table = Table(vec![
            (1, 0, ""),
            (10, 1, "HOME=/root"),
            (11, 10, "HOME=/root"),
            (50, 1, ""),
            (51, 50, "MISSIOND_SLOT=coder MISSIOND_SOCKET=/run/a.sock"),
            (52, 51, ""),
            (53, 52, ""),
            // An orphan that the shim has adopted.
            (54, 50, ""),
            (60, 1, ""),
            (61, 60, "MISSIOND_SLOT=new MISSIOND_SOCKET=/run/a.sock"),
            (62, 61, ""),
            // Inside a slot of another daemon.
            (70, 1, "MISSIOND_SLOT=coder MISSIOND_SOCKET=/run/b.sock"),
            // Its parent has ended, or is not visible.
            (80, 79, ""),
            (90, 1, ""),
            // What the daemon runs, as its child and as an orphan that has kept its environment.
            (91, 90, ""),
            (92, 91, ""),
            (93, 1, "MISSIOND_RUN_BY=/run/a.sock"),
            (94, 93, ""),
            (95, 1, "MISSIOND_RUN_BY=/run/b.sock"),
            // A slot that the daemon has just started.
            (96, 90, "MISSIOND_SLOT=new MISSIOND_SOCKET=/run/a.sock"),
            (97, 96, "MISSIOND_RUN_BY=/run/a.sock"),
        ]);
        origin(Some(pid), &marks(), &table)
    }

    #[test]
    fn a_slot_is_found_at_any_depth_and_by_either_mark() {
        for pid in [50, 51, 52, 53, 54] {
            assert_eq!(of(pid), PeerOrigin::Slot("coder".into()), "{pid}");
        }
        assert_eq!(of(62), PeerOrigin::Slot("new".into()));
    }

    #[test]
    fn a_person_and_another_daemons_slot_are_outside() {
        assert_eq!(of(11), PeerOrigin::Outside);
        assert_eq!(of(70), PeerOrigin::Outside);
    }

    #[test]
    fn what_the_daemon_runs_is_no_person() {
        for pid in [91, 92, 93, 94] {
            assert_eq!(of(pid), PeerOrigin::Daemon, "{pid}");
        }
        assert_eq!(of(95), PeerOrigin::Outside, "another daemon's");
        for pid in [96, 97] {
            assert_eq!(of(pid), PeerOrigin::Slot("new".into()), "{pid}");
        }
    }

    #[test]
    fn whoever_is_gone_or_has_no_known_ancestors_is_untold() {
        assert_eq!(of(99), PeerOrigin::Untold);
        assert_eq!(of(80), PeerOrigin::Untold);
        assert_eq!(origin(None, &marks(), &Proc::default()), PeerOrigin::Untold);
        assert_eq!(
            origin(Some(0), &marks(), &Proc::default()),
            PeerOrigin::Untold
        );
    }

    /// Processes of which only the parents can be read.
    struct Bare<F> {
        /// The parent of a process, and when it started.
        parent_and_start: F,
        fault: Option<&'static str>,
    }

    impl<F: Fn(i32) -> (i32, u64)> ProcessTable for Bare<F> {
        fn stat(&self, pid: i32) -> Option<StatOfPeer> {
            let (parent, started) = (self.parent_and_start)(pid);
            Some(StatOfPeer {
                parent,
                started,
                session: 1,
                has_ended: false,
            })
        }

        fn user(&self, _: i32) -> Option<u32> {
            None
        }

        fn cgroup(&self, _: i32) -> Option<Vec<u8>> {
            None
        }

        fn environment(&self, _: i32) -> Option<Vec<u8>> {
            None
        }

        fn fault(&self) -> Option<String> {
            self.fault.map(str::to_owned)
        }
    }

    #[test]
    fn what_could_not_be_looked_up_is_not_outside() {
        let table = Bare {
            parent_and_start: |pid| (if pid == 50 { 0 } else { pid - 1 }, 1),
            fault: Some("Too many open files"),
        };
        let unseen = PeerOrigin::Unseen("Too many open files".to_owned());
        assert_eq!(origin(Some(60), &PeerMarks::default(), &table), unseen);
        let known = PeerOrigin::Slot("coder".to_owned());
        assert_eq!(origin(Some(60), &marks(), &table), known);
    }

    #[test]
    fn who_is_gone_is_no_fault_of_the_daemon() {
        let table = Proc::default();
        for ordinary in [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied] {
            table.note(&ordinary.into());
        }
        table.note(&io::Error::from_raw_os_error(3));
        assert_eq!(table.fault(), None);
        table.note(&io::Error::from_raw_os_error(24));
        assert!(
            table
                .fault()
                .is_some_and(|fault| fault.contains("open files"))
        );
    }

    #[test]
    fn an_id_that_was_given_to_another_process_is_untold() {
        // Another process takes the id while its ancestors are looked up.
        let looks = Cell::new(0);
        let table = Bare {
            parent_and_start: |pid| {
                looks.set(looks.get() + 1);
                if pid == 1 { (0, 0) } else { (1, looks.get()) }
            },
            fault: None,
        };
        assert_eq!(origin(Some(9), &marks(), &table), PeerOrigin::Untold);
    }

    #[test]
    fn a_name_can_not_disguise_the_parent() {
        let rest = "0 9 0 -1 4194304 100 0 0 0 1 2 0 0 20 0 1 0 777 1 1";
        let line = format!("7 (a) S 1 (b) \n) R 42 {rest}");
        let parent = |line: &str| StatOfPeer::parse(line.as_bytes());
        assert_eq!(
            parent(&line),
            Some(StatOfPeer {
                parent: 42,
                started: 777,
                session: 9,
                has_ended: false,
            })
        );
        assert_eq!(parent("7 (a) R"), None);
        assert_eq!(parent(""), None);
    }

    #[test]
    fn this_test_is_outside_and_known_by_its_own_mark() {
        let own = std::process::id().cast_signed();
        assert_eq!(
            origin(Some(own), &PeerMarks::default(), &Proc::default()),
            PeerOrigin::Outside
        );
        let pids = HashMap::from([(own, "me".to_owned())]);
        let marks = PeerMarks {
            pids,
            ..PeerMarks::default()
        };
        assert_eq!(
            origin(Some(own), &marks, &Proc::default()),
            PeerOrigin::Slot("me".into())
        );
        let started = Proc::default().stat(own).map(|stat| stat.started);
        assert!(started.is_some_and(|ticks| ticks > 0), "{started:?}");
    }
}
