//! Which conversation a slot has, which it takes over, and where it is written.

use super::Slot;
use super::witness::process_start;
use crate::core::model::{Fault, RpcError, What};
use crate::core::settings::{Kind, SlotConfig};
use crate::launch::{self, SessionStart};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// What Claude Code notes of each of its processes, as far as it matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    pid: u32,
    session_id: Uuid,
    proc_start: Option<String>,
    /// When the record was last written.
    #[serde(skip)]
    written: Option<SystemTime>,
}

impl Slot {
    /// The same conversation by its id, never the latest in the directory. One that died before its first
    /// message has no transcript and is begun anew under its id; one whose transcript is gone is not.
    pub(super) fn session_to_start(&mut self, config: &SlotConfig) -> SessionStart {
        let new_in_config = config.session.filter(|id| !self.memory.knows(*id));
        let adopted = self.memory.adopted;
        let remembered = self
            .memory
            .session()
            .map(|session| session.id)
            .filter(|_| config.resume);
        let known = adopted.or(new_in_config).or(remembered).or(config.session);
        match known {
            Some(id) if self.transcript_of(id).is_some_and(|path| path.exists()) => {
                SessionStart::Resume(id)
            }
            Some(id) if self.memory.has_begun(id) => SessionStart::New(self.replace(id)),
            Some(id) => {
                if new_in_config.or(adopted) == Some(id) {
                    self.warn(&format!(
                        "there is no conversation {id} in {}; one is begun under this id",
                        config.cwd.display()
                    ));
                }
                SessionStart::New(id)
            }
            None => SessionStart::New(Uuid::new_v4()),
        }
    }

    /// Claude Code no longer knows the conversation: a fresh one, once, and a person is told.
    pub(super) fn replace(&mut self, lost: Uuid) -> Uuid {
        let fresh = Uuid::new_v4();
        self.memory.enter(fresh, None);
        self.save_memory();
        self.warn(&format!("conversation {lost} is gone; a new one is begun"));
        self.tell(What::Session {
            session_id: fresh.to_string(),
        });
        fresh
    }

    /// The transcript of the present conversation, whether it exists yet or not.
    pub(super) fn transcript(&self) -> Option<PathBuf> {
        self.memory
            .session()
            .and_then(|session| self.transcript_of(session.id))
    }

    /// As a hook told it; else where Claude Code puts it.
    pub(super) fn transcript_of(&self, id: Uuid) -> Option<PathBuf> {
        let told = self.memory.sessions.iter().find(|session| session.id == id);
        told.and_then(|session| session.transcript.clone())
            .or_else(|| launch::transcript_path(&self.slot_environment(), &self.running.cwd, id))
    }

    /// A conversation that this slot goes on with from its next start. Whether that start is to come now.
    pub(super) fn take_over(&mut self, id: Uuid) -> Result<bool, RpcError> {
        let name = self.running.name.clone();
        if self.running.kind == Kind::Shell {
            let text = format!("{name} is a plain program, which has no conversation");
            return Err(RpcError::new(Fault::Refused, text));
        }
        if !self.machine.is_at_rest() {
            let text = format!("{name} is at work on another conversation");
            return Err(RpcError::new(Fault::Refused, text)
                .next(format!("wait until it is idle, or: missiond stop {name}")));
        }
        let config = self.machine.config().clone();
        self.find_transcript(id, &config.cwd)?;
        let own = self
            .memory
            .session()
            .is_some_and(|session| session.id == id);
        let holder = self
            .holder_of(id)
            .filter(|_| !(own && self.machine.is_up()));
        if let Some(pid) = holder {
            let text = format!("conversation {id} is open in another Claude Code: pid {pid}");
            return Err(RpcError::new(Fault::Refused, text).next("end that one first"));
        }
        if own && self.machine.is_up() {
            return Ok(false);
        }
        self.memory.adopted = Some(id);
        self.save_memory();
        Ok(self.machine.is_up())
    }

    /// A slip in the id, or another directory, is told apart from a conversation that is not there.
    fn find_transcript(&self, id: Uuid, cwd: &Path) -> Result<(), RpcError> {
        let env = self.slot_environment();
        let place = launch::transcript_path(&env, cwd, id);
        if place.as_ref().is_some_and(|path| path.is_file()) || self.memory.knows(id) {
            return Ok(());
        }
        let refused = |text: String| RpcError::new(Fault::Usage, text);
        let Some(elsewhere) = launch::transcript_elsewhere(&env, id) else {
            let shown = place.map_or("its place".to_owned(), |path| path.display().to_string());
            return Err(refused(format!(
                "there is no conversation {id}: {shown} is not there"
            ))
            .next("its id is in `claude --resume`, and the name of its file"));
        };
        let text = format!(
            "conversation {id} belongs to another directory than {}: {}",
            cwd.display(),
            elsewhere.display()
        );
        Err(refused(text).next("adopt it into a slot whose `cwd` is that directory"))
    }

    /// Whether Claude Code itself has noted that it is in this conversation by now: in its record, or, since versions
    /// before 2.1.128 write that once or not at all, by the directory that it makes for a conversation which begins.
    pub(super) fn has_entered(&self, id: Uuid) -> bool {
        let own = launch::own_directory(&self.slot_environment());
        let Some((own, pid)) = own.zip(self.machine.pid()) else {
            return false;
        };
        let record = Record::read(&own.join(format!("sessions/{pid}.json")));
        record.is_some_and(|record| record.session_id == id && record.is_alive())
            || was_made_by(pid, &own.join(format!("session-env/{id}")))
    }

    /// The memory of the slot may be lost: then Claude Code's own record tells which conversation it has open.
    pub(super) fn recall_conversation(&mut self, pid: u32) {
        let own = launch::own_directory(&self.slot_environment());
        let Some(own) = own.filter(|_| self.memory.session().is_none()) else {
            return;
        };
        let record = Record::read(&own.join(format!("sessions/{pid}.json")));
        if let Some(record) = record.filter(|record| record.pid == pid && record.is_alive()) {
            self.memory.enter(record.session_id, None);
            self.save_memory();
        }
    }

    /// The process of another Claude Code of the same home that has this conversation open.
    pub(super) fn holder_of(&self, id: Uuid) -> Option<u32> {
        let records = launch::own_directory(&self.slot_environment())?.join("sessions");
        let files = std::fs::read_dir(records).ok()?.flatten();
        let mut records = files.filter_map(|file| Record::read(&file.path()));
        let held = records.find(|record| record.session_id == id && record.is_alive());
        held.map(|record| record.pid)
    }
}

/// Whether a file or directory is no older than this process.
fn was_made_by(pid: u32, path: &Path) -> bool {
    let made = path.symlink_metadata().and_then(|found| found.modified());
    began_at(pid).is_some_and(|began| made.is_ok_and(|made| made >= began))
}

/// When a process began, to the second below.
pub(super) fn began_at(pid: u32) -> Option<SystemTime> {
    /// The kernel counts in these towards everybody, whatever it does inside.
    const TICKS_PER_SECOND: u64 = 100;
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let boot = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    let ticks: u64 = process_start(pid)?.parse().ok()?;
    let seconds = boot.trim().parse::<u64>().ok()? + ticks / TICKS_PER_SECOND;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

impl Record {
    fn read(path: &Path) -> Option<Record> {
        let text = std::fs::read_to_string(path).ok()?;
        let record: Record = serde_json::from_str(&text).ok()?;
        let written = path.metadata().and_then(|found| found.modified());
        Some(Record {
            written: written.ok(),
            ..record
        })
    }

    /// A record that a killed process left behind says nothing, also where its number is another's by now.
    fn is_alive(&self) -> bool {
        match process_start(self.pid) {
            None => false,
            Some(_) if self.proc_start.is_none() => self.is_by(self.pid),
            began => self.proc_start == began,
        }
    }

    /// Older versions don't note when their process began. One that began after the record was written has not written
    /// it; as the clock may have been set, one that is called like Claude Code is taken for it all the same.
    fn is_by(&self, pid: u32) -> bool {
        let was_there = began_at(pid)
            .zip(self.written)
            .is_none_or(|(began, at)| began <= at);
        was_there || is_called_claude(pid)
    }
}

/// Whether a process, or the script that it runs, has Claude Code's name.
fn is_called_claude(pid: u32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut program = line.split(|byte| *byte == 0).take(2);
    program.any(|word| String::from_utf8_lossy(word).contains("claude"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn what_a_process_has_made_is_no_older_than_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let own = std::process::id();
        assert!(was_made_by(own, directory.path()));
        assert!(!was_made_by(own, Path::new("/proc/no/such/place")));
        let old = std::fs::File::open(directory.path()).expect("it is there");
        let before = began_at(own).expect("this process runs") - Duration::from_secs(1);
        old.set_modified(before).expect("it is ours");
        assert!(!was_made_by(own, directory.path()));
    }

    /// Whoever has to wait for a process may do so much later, and it holds nothing until then.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_killed_process_holds_no_conversation_though_nobody_has_waited_for_it() {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .expect("sleep");
        let pid = child.id();
        let of = |proc_start| Record {
            pid,
            session_id: Uuid::nil(),
            proc_start,
            written: Some(SystemTime::now()),
        };
        let began = process_start(pid);
        assert!(began.is_some());
        let records = [of(began), of(None)];
        assert!(records.iter().all(Record::is_alive));
        assert!(!of(Some("1".to_owned())).is_alive(), "another process");
        let before = began_at(pid).expect("it runs") - Duration::from_secs(1);
        let of_an_earlier_one = Record {
            written: Some(before),
            ..of(None)
        };
        assert!(!of_an_earlier_one.is_alive(), "its number is another's");
        child.kill().expect("it is ours");
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&child)), ended).expect("it ends");
        assert!(!records.iter().any(Record::is_alive));
        child.wait().expect("it has ended");
    }
}
