//! The file in which a slot keeps what it remembers. A thread writes it, so that a disk that does not answer stops nothing;
//! who has to know that something is on the disk is answered when it is.

use super::memory::{KeptDraft, Memory};
use crate::core::machine::{DesiredState, OwnText, Past, Reply, Token};
use crate::core::model::{Fault, RpcError};
use crate::events::Bus;
use crate::os::blocking::Worker;
use crate::os::remedy;
use chrono::{DateTime, TimeDelta, Utc};
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinHandle;

/// How long a write may take.
const LIMIT: Duration = Duration::from_secs(5);

/// The memory of a slot and its file.
#[derive(Debug)]
pub(super) struct MemoryFile {
    memory: Memory,
    path: PathBuf,
    worker: Worker,
    disk: Worker,
    /// What is told before a change is in the logs before the change is on the disk.
    bus: Bus,
    /// The write that is under way, and the last change that it has.
    saving: Option<(u64, JoinHandle<io::Result<()>>)>,
    /// Changes are counted.
    changes: u64,
    /// Why the last write failed.
    fault: Option<SaveFault>,
    /// Answers that are given once the change with this number is on the disk.
    waiting: Vec<(u64, Token, Reply)>,
    /// The daemon ends, and the slot with it: the next one begins as it is set.
    ends_in_order: bool,
}

/// What a daemon that comes after one that was killed must know of the machine.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Course {
    pub past: Past,
    pub standing: Option<DesiredState>,
    pub typed: Option<OwnText>,
    pub held_until: Option<DateTime<Utc>>,
}

/// An answer that may be given now.
pub(super) type Settled = (Token, Result<Reply, RpcError>);

/// What a person should know of the file itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SaveNews {
    Failing(String),
    Recovered(String),
}

impl Deref for MemoryFile {
    type Target = Memory;

    fn deref(&self) -> &Memory {
        &self.memory
    }
}

impl MemoryFile {
    /// What an earlier daemon has left, and what was wrong with it.
    pub fn open(path: &Path, bus: Bus) -> (MemoryFile, Option<String>) {
        let (memory, fault) = Memory::load(path);
        let worker = Worker::new(LIMIT);
        let file = MemoryFile {
            bus,
            ..MemoryFile::new(memory, path, worker)
        };
        (file, fault)
    }

    fn new(memory: Memory, path: &Path, worker: Worker) -> MemoryFile {
        MemoryFile {
            memory,
            path: path.to_owned(),
            worker,
            disk: Worker::new(LIMIT),
            bus: Bus::default(),
            saving: None,
            changes: 0,
            fault: None,
            waiting: Vec::new(),
            ends_in_order: false,
        }
    }

    /// Work on other files of the slot in the state directory. It does not wait for a disk that does not answer.
    pub fn disk(&self) -> &Worker {
        &self.disk
    }

    /// Changes the memory and has it written.
    pub fn change<T>(&mut self, change: impl FnOnce(&mut Memory) -> T) -> T {
        let changed = change(&mut self.memory);
        self.save();
        changed
    }

    /// The same, but it is written only if the change says that there is something new.
    pub fn change_if(&mut self, change: impl FnOnce(&mut Memory) -> bool) -> bool {
        let changed = change(&mut self.memory);
        if changed {
            self.save();
        }
        changed
    }

    /// The settings file that the program was started with; it is no part of this file.
    pub fn set_settings(&mut self, settings: Option<String>) {
        self.memory.settings = settings;
    }

    /// Has it written as it is.
    pub fn save(&mut self) {
        self.changes += 1;
        if self.saving.is_none() {
            self.begin();
        }
    }

    fn begin(&mut self) {
        let (memory, path) = (self.memory.clone(), self.path.clone());
        let (worker, bus) = (self.worker.clone(), self.bus.clone());
        let writing = tokio::spawn(async move {
            bus.settled().await;
            worker.run(move || memory.save(&path)).await.flatten()
        });
        self.saving = Some((self.changes, writing));
    }

    /// Takes what is new of the machine's course.
    pub fn follow(&mut self, course: Course) {
        if self.ends_in_order || (self.fault.is_none() && self.has(&course)) {
            return;
        }
        self.change(|memory| {
            memory.past = course.past;
            memory.standing = course.standing;
            let last = memory.draft.take();
            memory.draft = course.typed.map(|own| KeptDraft::following(own, last));
            memory.held_until = course.held_until;
        });
    }

    fn has(&self, course: &Course) -> bool {
        let Memory {
            past,
            standing,
            draft,
            held_until,
            ..
        } = &self.memory;
        let typed = draft.as_ref().map(|draft| &draft.own);
        (past, standing, typed) == (&course.past, &course.standing, course.typed.as_ref())
            && is_same_time(*held_until, course.held_until)
    }

    /// The daemon ends, and its slots with it: nothing of the machine's course is for the next one.
    pub fn end_in_order(&mut self) {
        self.ends_in_order = true;
        self.change(|memory| {
            (memory.past, memory.standing) = (Past::default(), None);
            memory.held_until = None;
        });
    }

    /// An answer to whoever changed whether the slot is to run. It is no success if the next daemon would not know, so it
    /// waits for the disk. Returns it if it can be given at once.
    pub fn hold(&mut self, token: Token, reply: Reply) -> Option<Settled> {
        match (&self.saving, &self.fault) {
            (None, None) => Some((token, Ok(reply))),
            (None, Some(fault)) => Some((token, Err(unsaved(fault)))),
            (Some(_), _) => {
                self.waiting.push((self.changes, token, reply));
                None
            }
        }
    }

    pub fn is_saving(&self) -> bool {
        self.saving.is_some()
    }

    /// The end of the write that is under way; never, if there is none.
    pub async fn written(&mut self) -> io::Result<()> {
        match &mut self.saving {
            Some((_, writing)) => writing
                .await
                .unwrap_or_else(|error| Err(io::Error::other(error))),
            None => std::future::pending().await,
        }
    }

    /// A write has ended: what is to be told of it, and the answers that waited for it. What has changed meanwhile is
    /// written next.
    pub fn settle(&mut self, written: io::Result<()>) -> (Option<SaveNews>, Vec<Settled>) {
        let up_to = self.saving.take().map_or(self.changes, |(up_to, _)| up_to);
        if up_to < self.changes {
            self.begin();
        }
        let file = self.path.display();
        let fault = written.err().map(|error| SaveFault {
            text: format!("{file} can't be written: {error}"),
            remedy: remedy(&error, &self.path),
        });
        let news = match (&fault, &self.fault) {
            (Some(fault), None) => Some(SaveNews::Failing(fault.text.clone())),
            (None, Some(_)) => Some(SaveNews::Recovered(format!("{file} is written again"))),
            _ => None,
        };
        let is_settled = |waiting: &mut (u64, Token, Reply)| waiting.0 <= up_to;
        let settled = self.waiting.extract_if(.., is_settled);
        let settled = settled.map(|(_, token, reply)| match &fault {
            None => (token, Ok(reply)),
            Some(fault) => (token, Err(unsaved(fault))),
        });
        let settled = settled.collect();
        self.fault = fault;
        (news, settled)
    }

    /// Returns when all is on the disk, or can't be.
    pub async fn flush(&mut self) -> Vec<Settled> {
        let mut settled = Vec::new();
        while self.saving.is_some() {
            let written = self.written().await;
            settled.extend(self.settle(written).1);
        }
        settled
    }
}

/// Why the file can't be written, and what helps.
#[derive(Debug)]
struct SaveFault {
    text: String,
    remedy: String,
}

fn remedy(error: &io::Error, file: &Path) -> String {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            "see what is wrong with the state directory: missiond status".to_owned()
        }
        _ => remedy::of(error, file.parent().unwrap_or(file)),
    }
}

fn unsaved(fault: &SaveFault) -> RpcError {
    let SaveFault { text, remedy } = fault;
    let text = format!("it is done, but could not be saved: {text}");
    RpcError::new(Fault::Failed, text).next(format!(
        "a daemon that is started again would not know of it: {remedy}, then give the command again"
    ))
}

/// A moment that was counted from another now is the same within a second.
fn is_same_time(one: Option<DateTime<Utc>>, other: Option<DateTime<Utc>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => (one - other).abs() < TimeDelta::seconds(1),
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use uuid::Uuid;

    fn kept(path: &Path) -> Option<Uuid> {
        Memory::load(path).0.adopted
    }

    #[tokio::test]
    async fn what_was_changed_is_on_the_disk_when_its_answer_is_given() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        let (mut file, _) = MemoryFile::open(&path, Bus::default());
        assert!(
            file.hold(1, Reply::Done).is_some(),
            "nothing is to be saved"
        );
        let id = Uuid::new_v4();
        file.change(|memory| memory.adopted = Some(Uuid::nil()));
        // The first write is under way: this change needs another one.
        file.change(|memory| memory.adopted = Some(id));
        assert!(file.hold(2, Reply::Done).is_none());
        let written = file.written().await;
        assert!(file.settle(written).1.is_empty(), "it has the first change");
        let settled = file.flush().await;
        assert!(matches!(settled[..], [(2, Ok(Reply::Done))]));
        assert_eq!(kept(&path), Some(id));
    }

    #[tokio::test]
    async fn a_disk_that_fails_is_told_once_and_so_is_its_recovery() {
        let dir = tempfile::tempdir().unwrap();
        let (path, away) = (dir.path().join("d/a.json"), dir.path().join("d"));
        let (mut file, _) = MemoryFile::open(&path, Bus::default());
        for is_first in [true, false] {
            file.save();
            assert!(file.hold(7, Reply::Done).is_none());
            let written = file.written().await;
            let (news, settled) = file.settle(written);
            assert_eq!(matches!(news, Some(SaveNews::Failing(_))), is_first);
            assert!(matches!(settled[..], [(7, Err(_))]));
        }
        assert!(matches!(file.hold(8, Reply::Done), Some((8, Err(_)))));
        std::fs::create_dir(&away).unwrap();
        file.save();
        let written = file.written().await;
        let (news, _) = file.settle(written);
        assert!(matches!(news, Some(SaveNews::Recovered(_))));
    }

    #[tokio::test]
    async fn a_disk_that_hangs_delays_an_answer_until_the_limit() {
        let dir = tempfile::tempdir().unwrap();
        let worker = Worker::new(Duration::from_millis(50));
        let (_release, released) = mpsc::channel::<()>();
        let hung = worker.run(move || released.recv()).await;
        assert!(hung.is_err());
        let mut file = MemoryFile::new(Memory::default(), &dir.path().join("a.json"), worker);
        file.save();
        assert!(file.hold(1, Reply::Done).is_none());
        assert!(matches!(file.flush().await[..], [(1, Err(_))]));
    }

    fn own(text: &str) -> OwnText {
        OwnText::pasted(text, None)
    }

    #[test]
    fn only_what_the_shim_has_was_typed() {
        let pasted = KeptDraft::by_input(OwnText::pasted("b", Some(own("a"))), 7, None);
        assert_eq!(pasted.clone().reached(6), Some(own("a")));
        assert_eq!(pasted.clone().reached(7), Some(pasted.own));
        let first = KeptDraft::by_input(own("a"), 3, None);
        assert_eq!(first.reached(2), None);
    }

    #[tokio::test]
    async fn a_course_that_is_known_is_not_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let (mut file, _) = MemoryFile::open(&dir.path().join("a.json"), Bus::default());
        let course = |typed: &str| Course {
            past: Past::default(),
            standing: Some(DesiredState::Wanted),
            typed: Some(own(typed)),
            held_until: Some(Utc::now()),
        };
        for (typed, is_news) in [("a", true), ("a", false), ("b", true)] {
            let before = file.changes;
            file.follow(course(typed));
            assert_eq!(file.changes > before, is_news, "{typed}");
            file.flush().await;
        }
        file.end_in_order();
        file.follow(course("c"));
        let kept = file.draft.as_ref().map(|draft| draft.own.text());
        assert_eq!(kept, Some("b"), "the daemon ends");
        assert_eq!(file.standing, None);
    }
}
