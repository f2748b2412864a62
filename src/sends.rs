//! Messages that carry an id of the sender's: each is sent once, and its answer can be asked for again, also from the
//! next daemon. What is known of each is a small file: that it waits is on the disk before it is queued, that it is
//! entered before Enter is pressed, and its answer before anybody is told.

use crate::control::protocol::{Fault, RpcError, SendAnswer};
use crate::{files, paths};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Messages that are remembered in all; the oldest are forgotten first.
const MAX_KEPT: usize = 1000;
/// The longest id.
const MAX_ID: usize = 64;

/// What is known of one message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub slot: String,
    pub id: String,
    pub text: String,
    /// It is a message, and no command of Claude Code or of a shell: a message is found again in the conversation.
    pub plain: bool,
    /// Nobody waits for its answer: the next daemon sends it by itself where this one is killed before.
    #[serde(default)]
    pub unattended: bool,
    pub queued_at: DateTime<Utc>,
    /// When Enter was about to be pressed.
    #[serde(default)]
    pub entered_at: Option<DateTime<Utc>>,
    /// How it has ended.
    #[serde(default)]
    pub outcome: Option<Outcome>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Answered(Box<SendAnswer>),
    Failed(RpcError),
}

impl Outcome {
    pub fn result(self) -> Result<SendAnswer, RpcError> {
        match self {
            Outcome::Answered(answer) => Ok(*answer),
            Outcome::Failed(error) => Err(error),
        }
    }
}

type Key = (String, String);

/// The messages that were sent with an id, so that a repeated `send` is done once.
#[derive(Debug, Clone)]
pub struct Sends {
    directory: Arc<PathBuf>,
    /// Messages that are being sent, or whose answer a client waits for.
    active: Arc<Mutex<BTreeMap<Key, Arc<Active>>>>,
}

/// A message that is on its way.
#[derive(Debug)]
pub struct Active {
    outcome: watch::Sender<Option<Result<SendAnswer, RpcError>>>,
    stage: watch::Sender<Stage>,
    waiting: AtomicUsize,
    /// Nobody waits for it any more.
    pub abandoned: CancellationToken,
}

/// How far a message has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    #[default]
    New,
    /// The slot has it: it is being typed, or waits for its turn.
    Accepted,
    /// Claude Code has it.
    Taken,
}

/// One who waits for a message. When the last one goes, the message is taken back where it still waits.
pub struct Waiter(Arc<Active>);

/// What is to be done about a message.
pub enum Begun {
    /// It has ended before.
    Ended(Outcome),
    /// Somebody is at work on it.
    UnderWay(Waiter),
    /// The caller is to see to it, as far as it has come.
    Yours(Waiter, Box<Record>),
}

impl Sends {
    pub fn open(directory: PathBuf) -> io::Result<Sends> {
        paths::ensure_private_dir(&directory).map_err(io::Error::other)?;
        Ok(Sends {
            directory: Arc::new(directory),
            active: Arc::default(),
        })
    }

    /// Takes up a message, which is new, known, or left by an earlier daemon.
    pub fn begin(&self, new: Record) -> Result<Begun, RpcError> {
        check_id(&new.id)?;
        let mut active = self.active();
        let key = (new.slot.clone(), new.id.clone());
        let known = self.load(&new.slot, &new.id);
        if known.as_ref().is_some_and(|known| known.text != new.text) {
            let text = format!("the id {} was given to another message", new.id);
            return Err(RpcError::new(Fault::Refused, text).next("choose another id"));
        }
        if let Some(outcome) = known.as_ref().and_then(|known| known.outcome.clone()) {
            return Ok(Begun::Ended(outcome));
        }
        if let Some(active) = active.get(&key) {
            return Ok(Begun::UnderWay(Waiter::new(active)));
        }
        let record = match known {
            Some(known) => Record {
                unattended: new.unattended,
                ..known
            },
            None => new,
        };
        self.save(&record).map_err(|error| {
            let text = format!("the message can't be written down, and was not sent: {error}");
            RpcError::new(Fault::Failed, text)
        })?;
        self.forget_oldest();
        let entry = Arc::new(Active {
            outcome: watch::Sender::default(),
            stage: watch::Sender::default(),
            waiting: AtomicUsize::new(0),
            abandoned: CancellationToken::new(),
        });
        active.insert(key, entry.clone());
        Ok(Begun::Yours(Waiter::new(&entry), Box::new(record)))
    }

    /// Enter is about to be pressed for a message: from now on it counts as sent.
    pub fn entered(&self, slot: &str, id: &str) -> io::Result<()> {
        match self.load(slot, id) {
            Some(record) if record.entered_at.is_none() => self.save(&Record {
                entered_at: Some(Utc::now()),
                ..record
            }),
            _ => Ok(()),
        }
    }

    pub fn reached(&self, slot: &str, id: &str, stage: Stage) {
        let key = (slot.to_owned(), id.to_owned());
        if let Some(active) = self.active().get(&key) {
            active.stage.send_modify(|now| *now = stage.max(*now));
        }
    }

    /// What has come of a message: written down, where it is the end of it, and told to all who wait.
    pub fn settle(&self, slot: &str, id: &str, came: Came) {
        let key = (slot.to_owned(), id.to_owned());
        let mut active = self.active();
        let written = match (&came, self.load(slot, id)) {
            (Came::Nothing(_), _) => std::fs::remove_file(self.file(slot, id)),
            (Came::End(outcome), Some(record)) => self.save(&Record {
                outcome: Some(outcome.clone()),
                ..record
            }),
            (Came::Part(_) | Came::End(_), _) => Ok(()),
        };
        if let Err(error) = written {
            tracing::warn!("what came of the message {id} can't be written down: {error}");
        }
        if let Some(entry) = active.remove(&key) {
            entry.outcome.send_replace(Some(came.result()));
        }
    }

    /// What is known of a message, and whether it is under way in this daemon.
    pub fn look(&self, slot: &str, id: &str) -> Result<(Record, bool), RpcError> {
        check_id(id)?;
        let key = (slot.to_owned(), id.to_owned());
        let under_way = self.active().contains_key(&key);
        let record = self.load(slot, id).ok_or_else(|| {
            RpcError::new(
                Fault::Usage,
                format!("no message to {slot} has the id {id}"),
            )
            .next("it was never sent, was taken back, or is too old")
        })?;
        Ok((record, under_way))
    }

    /// Messages that nobody waits for, and that an earlier daemon has not sent.
    pub fn unsent(&self) -> Vec<Record> {
        let all = self.files().into_iter();
        let all = all.filter_map(|(_, path)| {
            let text = std::fs::read_to_string(path).ok()?;
            serde_json::from_str(&text).ok()
        });
        let mut unsent: Vec<Record> = all
            .filter(|record: &Record| {
                record.unattended && record.entered_at.is_none() && record.outcome.is_none()
            })
            .collect();
        unsent.sort_by_key(|record| record.queued_at);
        unsent
    }

    fn active(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Active>>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names of slots have no dot.
    fn file(&self, slot: &str, id: &str) -> PathBuf {
        self.directory.join(format!("{slot}.{id}.json"))
    }

    fn load(&self, slot: &str, id: &str) -> Option<Record> {
        let text = std::fs::read_to_string(self.file(slot, id)).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn save(&self, record: &Record) -> io::Result<()> {
        let text = serde_json::to_string(record).map_err(io::Error::other)?;
        files::replace(&self.file(&record.slot, &record.id), &text)
    }

    fn files(&self) -> Vec<(SystemTime, PathBuf)> {
        let entries = std::fs::read_dir(&*self.directory).into_iter().flatten();
        let files = entries.flatten().filter_map(|entry| {
            let path = entry.path();
            let is_record = path
                .extension()
                .is_some_and(|extension| extension == "json");
            let changed = entry.metadata().and_then(|metadata| metadata.modified());
            is_record.then_some((changed.ok()?, path))
        });
        files.collect()
    }

    fn forget_oldest(&self) {
        let mut files = self.files();
        if files.len() > MAX_KEPT {
            files.sort();
            let beyond = files.len() - MAX_KEPT;
            for (_, path) in files.drain(..beyond) {
                // It is forgotten the next time, then.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

/// What has come of a message.
pub enum Came {
    /// It was certainly not sent: the same id may be sent again.
    Nothing(RpcError),
    /// It was sent, and its turn goes on.
    Part(Box<Result<SendAnswer, RpcError>>),
    End(Outcome),
}

impl Came {
    fn result(self) -> Result<SendAnswer, RpcError> {
        match self {
            Came::Nothing(error) => Err(error),
            Came::Part(result) => *result,
            Came::End(outcome) => outcome.result(),
        }
    }
}

impl Waiter {
    fn new(active: &Arc<Active>) -> Waiter {
        active.waiting.fetch_add(1, Ordering::Relaxed);
        Waiter(active.clone())
    }

    pub fn active(&self) -> Arc<Active> {
        self.0.clone()
    }

    pub async fn outcome(&self) -> Result<SendAnswer, RpcError> {
        let mut outcome = self.0.outcome.subscribe();
        let ended = outcome.wait_for(Option::is_some).await;
        let ended = ended.ok().and_then(|outcome| outcome.clone());
        ended.unwrap_or_else(|| Err(RpcError::new(Fault::Failed, "the daemon is ending")))
    }

    pub async fn reached(&self, stage: Stage) {
        let mut reached = self.0.stage.subscribe();
        if reached.wait_for(|now| *now >= stage).await.is_err() {
            std::future::pending().await
        }
    }

    /// Waits no longer. Where nobody else does, the message is taken back, and the outcome says what came of that.
    pub async fn give_up(self) -> Option<Result<SendAnswer, RpcError>> {
        if self.0.waiting.load(Ordering::Relaxed) > 1 {
            return None;
        }
        self.0.abandoned.cancel();
        Some(self.outcome().await)
    }

    /// Leaves the message to itself.
    pub fn leave(self) {
        self.0.waiting.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        if self.0.waiting.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.abandoned.cancel();
        }
    }
}

/// An id becomes part of a file's name.
fn check_id(id: &str) -> Result<(), RpcError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let begins = id.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && id.len() <= MAX_ID && id.chars().all(fits) {
        return Ok(());
    }
    let text = format!("`{id}` can't be the id of a message");
    Err(RpcError::new(Fault::Usage, text).next(format!(
        "an id has letters, digits, `.`, `_` and `-`, at most {MAX_ID} of them, and begins with a letter or digit"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &str) -> Record {
        Record {
            slot: "a".into(),
            id: "x".into(),
            text: text.into(),
            plain: true,
            unattended: false,
            queued_at: Utc::now(),
            entered_at: None,
            outcome: None,
        }
    }

    fn failed() -> Outcome {
        Outcome::Failed(RpcError::new(Fault::Failed, "no answer"))
    }

    #[test]
    fn a_message_is_taken_up_once_and_its_end_is_told_again_by_the_next_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let sends = Sends::open(dir.path().join("sends")).unwrap();
        let first = sends.begin(record("hello")).unwrap();
        assert!(matches!(first, Begun::Yours(..)));
        let second = sends.begin(record("hello")).unwrap();
        assert!(matches!(second, Begun::UnderWay(_)));
        assert!(
            sends.begin(record("another")).is_err(),
            "one id, one message"
        );
        sends.entered("a", "x").unwrap();
        let next = Sends::open(dir.path().join("sends")).unwrap();
        match next.begin(record("hello")).unwrap() {
            Begun::Yours(_, known) => assert!(known.entered_at.is_some()),
            _ => panic!("the earlier daemon has not ended it"),
        }
        next.settle("a", "x", Came::End(failed()));
        let last = Sends::open(dir.path().join("sends")).unwrap();
        assert!(
            matches!(last.begin(record("hello")).unwrap(), Begun::Ended(end) if end == failed())
        );
    }

    #[test]
    fn what_was_certainly_not_sent_may_be_sent_again() {
        let dir = tempfile::tempdir().unwrap();
        let sends = Sends::open(dir.path().join("sends")).unwrap();
        let begun = sends.begin(record("hello")).unwrap();
        let refused = RpcError::new(Fault::Refused, "a dialog is open");
        sends.settle("a", "x", Came::Nothing(refused));
        assert!(sends.look("a", "x").is_err());
        assert!(matches!(
            sends.begin(record("other")).unwrap(),
            Begun::Yours(..)
        ));
        drop(begun);
    }

    #[test]
    fn when_the_last_one_goes_a_message_is_abandoned() {
        let dir = tempfile::tempdir().unwrap();
        let sends = Sends::open(dir.path().join("sends")).unwrap();
        let Begun::Yours(first, _) = sends.begin(record("hello")).unwrap() else {
            panic!("it is new");
        };
        let active = first.active();
        let Begun::UnderWay(second) = sends.begin(record("hello")).unwrap() else {
            panic!("it is under way");
        };
        drop(first);
        assert!(!active.abandoned.is_cancelled());
        drop(second);
        assert!(active.abandoned.is_cancelled());
    }

    #[test]
    fn ids_that_are_no_file_names_are_refused() {
        for bad in ["", "../x", ".x", "-x", "a/b", "a b", &"x".repeat(65)] {
            assert!(check_id(bad).is_err(), "{bad}");
        }
        for good in ["x", "2026-11-17_a.b", &"x".repeat(64)] {
            assert!(check_id(good).is_ok(), "{good}");
        }
    }
}
