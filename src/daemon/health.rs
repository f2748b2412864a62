//! Conditions that hamper a daemon and its slots without an error elsewhere: a full disk, a program that was stopped by
//! a signal, a clock that was set back, descriptors that run out. Each is an event with its remedy when it begins, an
//! event when it ends, and in the status meanwhile.

use super::Slots;
use crate::audit::AuditFault;
use crate::core::model::{Ailment, Condition, EventKind, SlotStatus};
use crate::os::blocking::Worker;
use crate::os::process_stat::Stat;
use crate::os::{headroom, local_time, remedy};
use crate::push::Failing;
use crate::slot::{SlotCommand, SlotContext};
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The interval between two checks: soon enough for a person, and a check costs less than a millisecond.
const PACE: Duration = Duration::from_secs(2);

/// A correct clock is adjusted by less than this between two checks.
const STEP: Duration = Duration::from_secs(1);

/// A slot that does not take its warning within this time is busy; the status has the warning in any case.
const LONGEST: Duration = Duration::from_secs(1);

/// A kind of problem.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Trouble {
    Disk(&'static str, PathBuf),
    Hangs(PathBuf),
    Audit,
    Clock,
    Files,
    Notify(&'static str),
    Stopped(String),
}

/// The description of a problem, and its remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    pub text: String,
    pub remedy: String,
}

impl Words {
    pub fn new(text: impl Into<String>, remedy: impl Into<String>) -> Words {
        let (text, remedy) = (text.into(), remedy.into());
        Words { text, remedy }
    }

    /// A problem that begins now.
    pub fn ailment(self, condition: Condition) -> Ailment {
        Ailment {
            condition,
            since: Utc::now(),
            text: self.text,
            remedy: self.remedy,
        }
    }
}

type Troubles = BTreeMap<Trouble, Words>;

/// The problems that the daemon has now.
pub(super) type Ailments = watch::Receiver<Vec<Ailment>>;

/// Starts the task that checks for problems at an interval.
pub(super) fn start(
    context: Arc<SlotContext>,
    slots: watch::Receiver<Slots>,
    unsent: watch::Receiver<Failing>,
) -> (JoinHandle<()>, Ailments) {
    let (told, ailments) = watch::channel(Vec::new());
    let mut health = Health {
        context,
        slots,
        unsent,
        told,
        known: Troubles::new(),
        since: BTreeMap::new(),
        clock: WallClock::new(SystemTime::now(), Instant::now()),
        looking: Worker::new(PACE),
        disks: [Worker::new(PACE), Worker::new(PACE)],
    };
    let task = tokio::spawn(async move {
        loop {
            tokio::time::sleep(PACE).await;
            health.look().await;
        }
    });
    (task, ailments)
}

/// Why a slot's program does not run on, if a signal has stopped it or its shim.
pub fn stopped(pid: Option<u32>, shim_pid: Option<u32>) -> Option<String> {
    stopped_in_words(pid, shim_pid).map(|words| words.to_string())
}

fn stopped_in_words(pid: Option<u32>, shim_pid: Option<u32>) -> Option<Words> {
    let is_stopped = |pid: &u32| Stat::of(pid).is_some_and(|stat| stat.is_stopped());
    let by_signal = |text: &str, pid: u32| {
        let remedy = format!("SIGCONT to process {pid} continues it");
        Words::new(text, remedy)
    };
    let shim = shim_pid.filter(is_stopped);
    let program = || pid.filter(is_stopped);
    match shim {
        Some(pid) => Some(by_signal(
            "its shim was stopped by a signal, and no key reaches its program",
            pid,
        )),
        None => program().map(|pid| by_signal("its program was stopped by a signal", pid)),
    }
}

struct Health {
    context: Arc<SlotContext>,
    slots: watch::Receiver<Slots>,
    unsent: watch::Receiver<Failing>,
    told: watch::Sender<Vec<Ailment>>,
    known: Troubles,
    since: BTreeMap<Trouble, DateTime<Utc>>,
    clock: WallClock,
    looking: Worker,
    /// The same for the log and the state directory, so that the one that hangs is named.
    disks: [Worker; 2],
}

impl Health {
    async fn look(&mut self) {
        let slots = self.slots.borrow().clone();
        let mut programs = Vec::new();
        let mut hung_recordings = Vec::new();
        for slot in slots.values() {
            let status = slot.watch_status();
            let status = status.borrow();
            programs.push(HeavyProgram::of(&status));
            hung_recordings.extend(status.hung_recording.clone());
        }
        let found = self.looking.run(move || look(programs)).await;
        let lack = |error: io::Error| Words::new(error.to_string(), headroom::MORE_FILES);
        let mut troubles = found.map_err(lack).flatten().unwrap_or_else(|lack| {
            // Nothing else could be checked, so the known problems stay.
            let mut known = self.known.clone();
            known.insert(Trouble::Files, lack);
            known
        });
        troubles.retain(|trouble, _| !matches!(trouble, Trouble::Disk(..) | Trouble::Hangs(_)));
        self.look_at_disks(&mut troubles, hung_recordings).await;
        let audit = self.context.audit.failing().borrow().clone();
        troubles.extend(audit.map(|fault| (Trouble::Audit, audit_fails(fault))));
        let set_back = self.clock.look(SystemTime::now(), Instant::now());
        troubles.extend(set_back.map(|text| (Trouble::Clock, text)));
        let unsent = self.unsent.borrow().clone().into_iter();
        let words = |text: String| Words::new(text, "try it: missiond notify test");
        troubles.extend(unsent.map(|(part, text)| (Trouble::Notify(part), words(text))));
        self.tell(troubles, &slots).await;
    }

    /// The disks that are full, and those that do not answer, each with its path.
    async fn look_at_disks(&self, troubles: &mut Troubles, hung_recordings: Vec<PathBuf>) {
        let places = [
            ("log", self.context.logs.clone()),
            ("state", self.context.state.clone()),
        ];
        let mut hung = BTreeMap::new();
        for ((name, path), disk) in places.into_iter().zip(&self.disks) {
            let place = path.clone();
            match disk.run(move || headroom::is_disk_full(&place)).await {
                Ok(true) => {
                    let words = disk_is_full(name, &path);
                    troubles.insert(Trouble::Disk(name, path), words);
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    let text = format!("the disk of the {name} directory does not answer");
                    hung.insert(path, text);
                }
                // A thread or a descriptor is missing, which is told elsewhere.
                Ok(false) | Err(_) => {}
            }
        }
        for (path, text) in self.context.bus.hanging(&self.context.logs) {
            hung.insert(path, text);
        }
        if let Some(first) = hung_recordings.first() {
            let text = match hung_recordings.len() {
                1 => format!(
                    "the disk of the recording {} does not answer",
                    first.display()
                ),
                count => format!("the disk of {count} recordings does not answer"),
            };
            let logs = self.context.logs.clone();
            hung.entry(logs)
                .and_modify(|known| *known = format!("{known}; {text}"))
                .or_insert(text);
        }
        for (path, text) in hung {
            let text = format!("{}: {text}", path.display());
            let words = Words::new(text, remedy::hung(&path));
            troubles.insert(Trouble::Hangs(path), words);
        }
    }

    async fn tell(&mut self, troubles: Troubles, slots: &Slots) {
        let known = std::mem::replace(&mut self.known, troubles.clone());
        self.since.retain(|one, _| troubles.contains_key(one));
        for one in troubles.keys() {
            self.since.entry(one.clone()).or_insert_with(Utc::now);
        }
        // The status is updated first, so that a client that gets the event finds the problem there.
        let ailments = troubles.iter().filter_map(|(one, words)| {
            Some(Ailment {
                condition: one.condition()?,
                since: *self.since.get(one)?,
                text: words.text.clone(),
                remedy: words.remedy.clone(),
            })
        });
        self.told.send_replace(ailments.collect());
        let begun = troubles.iter().filter(|(one, _)| !known.contains_key(one));
        for (trouble, words) in begun {
            self.warn(trouble, words.to_string(), slots).await;
        }
        for trouble in known.keys().filter(|one| !troubles.contains_key(one)) {
            self.warn(trouble, trouble.is_over(), slots).await;
        }
    }

    async fn warn(&self, trouble: &Trouble, text: String, slots: &Slots) {
        let what = EventKind::Warning { text };
        match trouble {
            Trouble::Stopped(name) => {
                let Some(slot) = slots.get(name) else { return };
                // A slot that has ended meanwhile needs no warning.
                let told = slot.send(SlotCommand::Note(what));
                let _ = tokio::time::timeout(LONGEST, told).await;
            }
            _ => {
                if let EventKind::Warning { text } = &what {
                    tracing::warn!("{text}");
                }
                self.context.bus.publish(None, what);
            }
        }
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.text, self.remedy)
    }
}

impl Trouble {
    /// The name of the problem, if it concerns the daemon as a whole.
    fn condition(&self) -> Option<Condition> {
        match self {
            Trouble::Disk(..) => Some(Condition::DiskFull),
            Trouble::Hangs(_) => Some(Condition::DiskHangs),
            Trouble::Audit => Some(Condition::AuditUnwritable),
            Trouble::Clock => Some(Condition::ClockSetBack),
            Trouble::Files => Some(Condition::FewDescriptors),
            Trouble::Notify(_) => Some(Condition::NotifyFails),
            Trouble::Stopped(_) => None,
        }
    }

    /// The text of the event for its end.
    fn is_over(&self) -> String {
        match self {
            Trouble::Disk(name, path) => {
                format!(
                    "the disk of the {name} directory {} has room again",
                    path.display()
                )
            }
            Trouble::Hangs(path) => format!("the disk of {} answers again", path.display()),
            Trouble::Audit => "the audit is written again".to_owned(),
            Trouble::Clock => "the clock has passed the time from which it was set back".to_owned(),
            Trouble::Files => "there are file descriptors again".to_owned(),
            Trouble::Notify(part) => format!("[notify] {part}: it works again"),
            Trouble::Stopped(_) => {
                "neither its program nor its shim is stopped any more".to_owned()
            }
        }
    }
}

/// The processes of a slot.
struct HeavyProgram {
    slot: String,
    pid: Option<u32>,
    shim_pid: Option<u32>,
}

impl HeavyProgram {
    fn of(status: &SlotStatus) -> HeavyProgram {
        HeavyProgram {
            slot: status.slot.clone(),
            pid: status.pid,
            shim_pid: status.shim_pid,
        }
    }
}

/// Checks descriptors and processes. An error says that nothing can be checked.
fn look(programs: Vec<HeavyProgram>) -> Result<Troubles, Words> {
    headroom::check_files_left().map_err(|lack| Words::new(lack.to_string(), lack.next))?;
    let stopped = programs.into_iter().filter_map(|program| {
        let words = stopped_in_words(program.pid, program.shim_pid)?;
        Some((Trouble::Stopped(program.slot), words))
    });
    Ok(stopped.collect())
}

fn disk_is_full(name: &str, path: &Path) -> Words {
    let comes_of_it = match name {
        "log" => {
            "output is not recorded, and actions that missiond can't record are refused: messages, keys, approvals"
        }
        _ => "starts and stops of programs can't be saved",
    };
    let path = path.display();
    let text = format!("the disk of the {name} directory {path} is full: {comes_of_it}");
    Words::new(text, format!("make room on the disk of {path}"))
}

fn audit_fails(fault: AuditFault) -> Words {
    let text = format!(
        "the audit can't be written ({}): messages, keys and approvals are refused, and a no, an interrupt and a stop \
         still work",
        fault.text
    );
    Words::new(text, fault.remedy)
}

/// The wall clock, compared with the time that has passed.
#[derive(Debug)]
struct WallClock {
    time: SystemTime,
    at: Instant,
    /// By how much it was set back, and from when.
    set_back: Option<(Duration, SystemTime)>,
}

impl WallClock {
    fn new(time: SystemTime, at: Instant) -> WallClock {
        WallClock {
            time,
            at,
            set_back: None,
        }
    }

    /// The warning while the clock shows times that it has already shown.
    fn look(&mut self, time: SystemTime, at: Instant) -> Option<Words> {
        let expected = self.time + at.saturating_duration_since(self.at);
        (self.time, self.at) = (time, at);
        let latest = self
            .set_back
            .map_or(expected, |(_, from)| from.max(expected));
        match expected.duration_since(time) {
            Ok(by) if by > STEP => self.set_back = Some((by, latest)),
            _ => {}
        }
        self.set_back = self.set_back.filter(|(_, from)| *from > time);
        let (by, from) = self.set_back?;
        let rounded = by + Duration::from_millis(500);
        let by = humantime::format_duration(Duration::from_secs(rounded.as_secs()));
        let text = format!(
            "the clock was set back by {by}: until {} logs and events repeat earlier times, but positions still increase",
            local_time::clock(from.into())
        );
        Some(Words::new(
            text,
            "see whether the time is right: timedatectl",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_back_is_told_until_it_has_caught_up() {
        let (time, at) = (SystemTime::now(), Instant::now());
        let after = Duration::from_secs;
        let mut clock = WallClock::new(time, at);
        // On time, a little late, set forward, and asleep with the machine.
        assert_eq!(clock.look(time + after(2), at + after(2)), None);
        assert_eq!(clock.look(time + after(3), at + after(4)), None);
        assert_eq!(clock.look(time + after(900), at + after(6)), None);
        assert_eq!(clock.look(time + after(5000), at + after(8)), None);

        // By an hour, plus the time between the reads of the two clocks.
        let read_late = Duration::from_millis(1);
        let told = clock
            .look(time + after(1402) + read_late, at + after(10))
            .unwrap();
        assert!(told.text.contains("set back by 1h:"), "{told}");
        let told = clock.look(time + after(4400), at + after(3008)).unwrap();
        assert!(told.text.contains("set back by 1h:"), "{told}");
        assert_eq!(clock.look(time + after(5003), at + after(3611)), None);
    }

    #[test]
    fn a_stopped_process_is_told_with_the_way_to_continue_it() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let pid = child.id();
        assert_eq!(stopped(Some(pid), Some(pid)), None);
        let process = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(process, rustix::process::Signal::STOP).unwrap();
        let how = rustix::process::WaitOptions::UNTRACED;
        rustix::process::waitpid(Some(process), how).unwrap();
        let told = [stopped(Some(pid), None), stopped(None, Some(pid))].map(Option::unwrap);
        assert!(told[0].starts_with("its program was stopped"), "{told:?}");
        assert!(told[1].starts_with("its shim was stopped"), "{told:?}");
        let way_out = format!("; SIGCONT to process {pid} continues it");
        assert!(told.iter().all(|text| text.ends_with(&way_out)), "{told:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(stopped(Some(pid), Some(pid)), None);
    }
}
