//! Which conversation a slot has, which it takes over, and where it is written.

use super::Slot;
use super::claude::Claude;
use super::handle::Answer;
use super::kind::ProgramKind;
use super::lookups::{ClaudeFiles, LookedUp};
use super::witness::process_start;
use crate::core::model::{EventKind, Fault, RpcError};
use crate::core::settings::SlotConfig;
use crate::core::text::diagnostic::nearest;
use crate::launch::{self, SessionStart};
use crate::os::local_time;
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use uuid::Uuid;

/// What Claude Code notes of each of its processes, as far as it matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProcessRecord {
    pid: u32,
    session_id: Uuid,
    proc_start: Option<String>,
    /// When the record was last written.
    #[serde(skip)]
    written: Option<SystemTime>,
}

/// A conversation that a program is to go on with, and where to look for it.
#[derive(Debug, Clone)]
pub(crate) struct WantedConversation {
    id: Uuid,
    transcript: Option<PathBuf>,
    records: Option<PathBuf>,
}

/// What was found of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptConversation {
    id: Uuid,
    has_transcript: bool,
    /// The process that has it open.
    holder: Option<u32>,
}

impl WantedConversation {
    /// May hang with the file system.
    pub(super) fn look(&self) -> KeptConversation {
        KeptConversation {
            id: self.id,
            has_transcript: self.transcript.as_ref().is_some_and(|path| path.exists()),
            holder: self
                .records
                .as_deref()
                .and_then(|records| holder_in(records, self.id)),
        }
    }
}

impl KeptConversation {
    /// The process that has this conversation open.
    pub(super) fn holder_of(&self, id: Uuid) -> Option<u32> {
        self.holder.filter(|_| self.id == id)
    }
}

/// Whether a conversation can be taken over: where its transcript is, and who has it open.
pub(crate) struct Claim {
    transcript: Result<(), RpcError>,
    holder: Option<u32>,
}

impl<K: ProgramKind> Slot<K> {
    /// Claude Code no longer knows the conversation: a fresh one, once, and a person is told.
    pub(super) fn replace(&mut self, lost: Uuid) -> Uuid {
        let fresh = Uuid::new_v4();
        self.memory.change(|memory| memory.enter(fresh, None));
        self.warn(&format!("conversation {lost} is gone; a new one is begun"));
        self.tell(EventKind::Session {
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
            .or_else(|| {
                launch::transcript_path(&self.slot_environment(), &self.program.settings().cwd, id)
            })
    }
}

impl Slot<Claude> {
    /// The conversation that the next start is to go on with, if it is to be none that is new.
    pub(super) fn wanted_conversation(&self, config: &SlotConfig) -> Option<WantedConversation> {
        let new_in_config = config.session.filter(|id| !self.memory.knows(*id));
        let remembered = self
            .memory
            .session()
            .map(|session| session.id)
            .filter(|_| config.resume);
        let adopted = self.memory.adopted;
        let id = adopted
            .or(new_in_config)
            .or(remembered)
            .or(config.session)?;
        Some(WantedConversation {
            id,
            transcript: self.transcript_of(id),
            records: self.records_of_home(),
        })
    }

    /// The same conversation by its id, never the latest in the directory. One that died before its first
    /// message has no transcript and is begun anew under its id; one whose transcript is gone is not.
    pub(super) fn session_to_start(
        &mut self,
        config: &SlotConfig,
        kept: Option<KeptConversation>,
    ) -> SessionStart {
        let new_in_config = config.session.filter(|id| !self.memory.knows(*id));
        let adopted = self.memory.adopted;
        match kept {
            Some(KeptConversation {
                id,
                has_transcript: true,
                ..
            }) => SessionStart::Resume(id),
            Some(KeptConversation { id, .. }) if self.memory.has_begun(id) => {
                SessionStart::New(self.replace(id))
            }
            Some(KeptConversation { id, .. }) => {
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

    /// A conversation that this slot goes on with from its next start. The reply says whether that start is to come now.
    pub(super) fn take_over(&mut self, id: Uuid, reply: Answer<bool>) {
        if let Err(refusal) = self.may_take_over() {
            return drop(reply.send(Err(refusal)));
        }
        let cwd = self.machine.config().cwd.clone();
        let (env, records) = (self.slot_environment(), self.records_of_home());
        let is_known = self.memory.knows(id);
        let slot = self.program.settings().name.clone();
        let look = move || Claim {
            transcript: match is_known {
                true => Ok(()),
                false => find_transcript(&slot, &env, id, &cwd),
            },
            holder: records.and_then(|records| holder_in(&records, id)),
        };
        self.lookups.of_claude(look, move |found| {
            LookedUp::Claude(ClaudeFiles::Claim(id, reply, found))
        });
    }

    fn may_take_over(&self) -> Result<(), RpcError> {
        let name = &self.program.settings().name;
        if !self.machine.is_at_rest() {
            let text = format!("{name} is at work on another conversation");
            return Err(RpcError::new(Fault::Refused, text)
                .next(format!("wait until it is idle, or: missiond stop {name}")));
        }
        Ok(())
    }

    /// Takes a conversation over, now that its files were looked at.
    pub(super) fn claimed(&mut self, id: Uuid, claim: io::Result<Claim>) -> Result<bool, RpcError> {
        // It may have begun to work meanwhile.
        self.may_take_over()?;
        let unknown = |error: io::Error| RpcError::new(Fault::Failed, error.to_string());
        let Claim { transcript, holder } = claim.map_err(unknown)?;
        transcript?;
        let own = self
            .memory
            .session()
            .is_some_and(|session| session.id == id);
        let runs_here = own && self.machine.is_up();
        if let Some(pid) = holder.filter(|_| !runs_here) {
            let text = format!("conversation {id} is open in another Claude Code: pid {pid}");
            return Err(RpcError::new(Fault::Refused, text).next("end that one first"));
        }
        if runs_here {
            return Ok(false);
        }
        self.memory.change(|memory| memory.adopted = Some(id));
        Ok(self.machine.is_up())
    }

    /// Where Claude Code keeps its records for this slot.
    pub(super) fn records_of_home(&self) -> Option<PathBuf> {
        let own = launch::own_directory(&self.slot_environment());
        own.map(|own| own.join("sessions"))
    }

    /// Finds out whether Claude Code itself has noted that it is in this conversation by now: in its record, or, since
    /// versions before 2.1.128 write that once or not at all, by the directory that it makes for a conversation which
    /// begins. May hang with the file system.
    pub(super) fn look_whether_entered(&self, id: Uuid) -> impl FnOnce() -> bool + Send + use<> {
        let own = launch::own_directory(&self.slot_environment());
        let own = own.zip(self.machine.pid());
        move || {
            own.is_some_and(|(own, pid)| {
                let record = ProcessRecord::read(&own.join(format!("sessions/{pid}.json")));
                record.is_some_and(|record| record.session_id == id && record.is_alive())
                    || was_made_by(pid, &own.join(format!("session-env/{id}")))
            })
        }
    }

    /// The memory of the slot may be lost: then Claude Code's own record tells which conversation it has open.
    pub(super) async fn recall_conversation(&mut self, pid: u32) {
        let records = self.records_of_home();
        let Some(records) = records.filter(|_| self.memory.session().is_none()) else {
            return;
        };
        let look = move || ProcessRecord::read(&records.join(format!("{pid}.json")));
        let is_own = |record: &ProcessRecord| record.pid == pid && record.is_alive();
        let record = self.lookups.conversations().run(look).await;
        if let Some(record) = record.ok().flatten().filter(is_own) {
            self.memory
                .change(|memory| memory.enter(record.session_id, None));
        }
    }
}

/// A slip in the id, or another directory, is told apart from a conversation that is not there.
fn find_transcript(
    slot: &str,
    env: &[(String, String)],
    id: Uuid,
    cwd: &Path,
) -> Result<(), RpcError> {
    let place = launch::transcript_path(env, cwd, id);
    if place.is_some_and(|path| path.is_file()) {
        return Ok(());
    }
    let refused = |text: String| RpcError::new(Fault::Usage, text);
    let Some(elsewhere) = launch::transcript_elsewhere(env, id) else {
        let known = launch::conversations_in(env, cwd);
        let text = format!("there is no conversation {id} in {}", cwd.display());
        return Err(refused(text).next(which_to_adopt(slot, &id.to_string(), &known)));
    };
    let text = format!(
        "conversation {id} belongs to another directory than {}: {}",
        cwd.display(),
        elsewhere.display()
    );
    Err(refused(text).next("adopt it into a slot whose `cwd` is that directory"))
}

/// The process of a Claude Code that has this conversation open, by the records in this directory.
fn holder_in(records: &Path, id: Uuid) -> Option<u32> {
    let files = std::fs::read_dir(records).ok()?.flatten();
    let mut records = files.filter_map(|file| ProcessRecord::read(&file.path()));
    let held = records.find(|record| record.session_id == id && record.is_alive());
    held.map(|record| record.pid)
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

impl ProcessRecord {
    fn read(path: &Path) -> Option<ProcessRecord> {
        let text = std::fs::read_to_string(path).ok()?;
        let record: ProcessRecord = serde_json::from_str(&text).ok()?;
        let written = path.metadata().and_then(|found| found.modified());
        Some(ProcessRecord {
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

/// How many conversations are named to one who asked for another.
const MOST_NAMED: usize = 5;

/// What can be adopted instead, the newest first.
fn which_to_adopt(slot: &str, wanted: &str, known: &[(String, SystemTime)]) -> String {
    if known.is_empty() {
        return "Claude Code has no conversation there yet; begin one there with: claude"
            .to_owned();
    }
    if let Some(meant) = nearest(wanted, known.iter().map(|(id, _)| id.as_str())) {
        return format!("did you mean: missiond adopt {slot} {meant}");
    }
    let line = |(id, at): &(String, SystemTime)| {
        let used = local_time::clock((*at).into());
        format!("missiond adopt {slot} {id}   last used {used}")
    };
    let named: Vec<String> = known.iter().take(MOST_NAMED).map(line).collect();
    match known.len() - named.len() {
        0 => named.join("\n"),
        more => format!("{}\nand {more} older ones", named.join("\n")),
    }
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
        let of = |proc_start| ProcessRecord {
            pid,
            session_id: Uuid::nil(),
            proc_start,
            written: Some(SystemTime::now()),
        };
        let began = process_start(pid);
        assert!(began.is_some());
        let records = [of(began), of(None)];
        assert!(records.iter().all(ProcessRecord::is_alive));
        assert!(!of(Some("1".to_owned())).is_alive(), "another process");
        let before = began_at(pid).expect("it runs") - Duration::from_secs(1);
        let of_an_earlier_one = ProcessRecord {
            written: Some(before),
            ..of(None)
        };
        assert!(!of_an_earlier_one.is_alive(), "its number is another's");
        child.kill().expect("it is ours");
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(Pid::from_child(&child)), ended).expect("it ends");
        assert!(!records.iter().any(ProcessRecord::is_alive));
        child.wait().expect("it has ended");
    }
}
