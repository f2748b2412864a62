//! Requests that carry an id of the caller's: each is done once, and its answer can be asked for again, also from the
//! next daemon. What is known of each is a small file: that it waits is on the disk before a slot has it, that it is
//! entered before the key is pressed that does it, and its answer before anybody is told.

mod messages;
mod on_disk;

use crate::core::claude::keys;
use crate::core::model::{
    Always, ConfirmAnswer, ConfirmParams, Fault, Person, RpcError, SendAnswer,
};
use crate::os::{files, paths, remedy};
use crate::slot::DaemonEnd;
use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Requests of one kind that are remembered in all; the oldest are forgotten first.
const MAX_KEPT: usize = 1000;
/// The longest id.
const MAX_ID: usize = 64;

/// What is asked for with an id.
pub trait OnceRequest: Debug + Clone + PartialEq + Serialize + DeserializeOwned {
    type Answer: Debug + Clone + PartialEq + Serialize + DeserializeOwned;
    /// What a person calls it.
    const NOUN: &'static str;

    /// Whether `new` asks for the same.
    fn is_repeated_by(&self, new: &Self) -> bool;

    /// The request as it holds when it is repeated.
    fn repeated(self, new: Self) -> Self;

    /// Whether it is done also if it can't be written down, as on a full disk.
    fn may_be_unwritten(&self) -> bool {
        false
    }
}

/// A message that is sent to a slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sending {
    pub text: String,
    /// It is a message, and no command of Claude Code or of a shell.
    pub plain: bool,
    /// Nobody waits for its answer: the next daemon sends it by itself if this one is killed before.
    #[serde(default)]
    pub unattended: bool,
    /// Who sent it, for the audit of the daemon that types it.
    #[serde(default)]
    pub person: Option<Person>,
}

impl OnceRequest for Sending {
    type Answer = SendAnswer;
    const NOUN: &'static str = "message";

    fn is_repeated_by(&self, new: &Sending) -> bool {
        (&self.text, self.plain) == (&new.text, new.plain)
    }

    fn repeated(self, new: Sending) -> Sending {
        let person = new.person.or(self.person);
        Sending { person, ..new }
    }
}

/// A person's answer to a dialog.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confirming {
    pub asked: ConfirmParams,
    /// The dialog that was up when it was asked for: no other one gets the answer.
    pub dialog: Option<String>,
    /// What `always` was to add then.
    pub always: Option<Always>,
    /// What was chosen, once the key that decides is about to be pressed.
    #[serde(default)]
    pub chosen: Option<String>,
}

impl OnceRequest for Confirming {
    type Answer = ConfirmAnswer;
    const NOUN: &'static str = "answer";

    fn is_repeated_by(&self, new: &Confirming) -> bool {
        self.asked == new.asked
    }

    fn repeated(self, _: Confirming) -> Confirming {
        self
    }

    /// A no must always be possible. Repeated, it goes to the same dialog or to none.
    fn may_be_unwritten(&self) -> bool {
        let is_no = self.asked.answer.as_deref().is_some_and(keys::is_no);
        is_no && self.dialog.is_some()
    }
}

/// What is known of one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct OnceRecord<R: OnceRequest> {
    pub slot: String,
    pub id: String,
    #[serde(flatten)]
    pub request: R,
    pub queued_at: DateTime<Utc>,
    /// When the key was about to be pressed that does it.
    #[serde(default)]
    pub entered_at: Option<DateTime<Utc>>,
    /// How it has ended.
    #[serde(default)]
    pub outcome: Option<OnceOutcome<R>>,
    /// Why it was dropped while it waited for its turn: it was not done, and the same id may be used again.
    #[serde(default)]
    pub dropped: Option<RpcError>,
    /// It was dropped while there was no daemon, and whoever waits for it does not know yet.
    #[serde(default)]
    pub untold: bool,
}

impl<R: OnceRequest> OnceRecord<R> {
    /// A request that is asked for now.
    pub fn new(slot: String, id: String, request: R) -> OnceRecord<R> {
        OnceRecord {
            slot,
            id,
            request,
            queued_at: Utc::now(),
            entered_at: None,
            outcome: None,
            dropped: None,
            untold: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", bound = "")]
pub enum OnceOutcome<R: OnceRequest> {
    Answered(Box<R::Answer>),
    Failed(RpcError),
}

impl<R: OnceRequest> OnceOutcome<R> {
    pub fn result(self) -> Result<R::Answer, RpcError> {
        match self {
            OnceOutcome::Answered(answer) => Ok(*answer),
            OnceOutcome::Failed(error) => Err(error),
        }
    }
}

type Key = (String, String);

/// The requests of one kind that came with an id, so that a repeated one is done once.
#[derive(Debug, Clone)]
pub struct Once<R: OnceRequest> {
    directory: Arc<PathBuf>,
    /// What was asked for before was asked of an earlier daemon.
    opened: DateTime<Utc>,
    /// Requests that are being done, or whose answer a client waits for.
    active: Arc<Mutex<BTreeMap<Key, Arc<Active<R>>>>>,
    /// Held while a request begins or ends. Whoever has it may wait for the disk, so no task asks for it.
    writing: Arc<Mutex<()>>,
    end: DaemonEnd,
}

/// A request that is on its way.
#[derive(Debug)]
pub struct Active<R: OnceRequest> {
    outcome: watch::Sender<Option<Result<R::Answer, RpcError>>>,
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

/// One who waits for a request. When the last one goes, the request is taken back if it still waits.
pub struct OnceWaiter<R: OnceRequest>(Arc<Active<R>>);

/// What is to be done about a request.
pub enum Begun<R: OnceRequest> {
    /// It has ended before.
    Ended(OnceOutcome<R>),
    /// Somebody is at work on it.
    UnderWay(OnceWaiter<R>),
    /// The caller is to see to it, as far as it has come.
    Yours(OnceWaiter<R>, Box<OnceRecord<R>>),
}

/// What a daemon does once, by the ids that its clients gave.
#[derive(Debug, Clone)]
pub struct OnceRequests {
    pub sends: Once<Sending>,
    pub confirms: Once<Confirming>,
    /// The end of the daemon. If it leaves its slots, nothing fails because of that.
    pub end: DaemonEnd,
}

impl OnceRequests {
    /// Those of this daemon and of the ones before, in its state directory. An error comes with its place.
    pub fn open(state: &Path) -> Result<OnceRequests, (PathBuf, io::Error)> {
        fn open<R: OnceRequest>(
            directory: PathBuf,
            end: &DaemonEnd,
        ) -> Result<Once<R>, (PathBuf, io::Error)> {
            let end = end.clone();
            match Once::open(directory.clone()) {
                Ok(once) => Ok(Once { end, ..once }),
                Err(error) => Err((directory, error)),
            }
        }
        let end = DaemonEnd::default();
        Ok(OnceRequests {
            sends: open(state.join("sends"), &end)?,
            confirms: open(state.join("confirms"), &end)?,
            end,
        })
    }
}

impl<R: OnceRequest> Once<R> {
    pub fn open(directory: PathBuf) -> io::Result<Once<R>> {
        paths::ensure_private_dir(&directory).map_err(io::Error::other)?;
        Ok(Once {
            directory: Arc::new(directory),
            opened: Utc::now(),
            active: Arc::default(),
            writing: Arc::default(),
            end: DaemonEnd::default(),
        })
    }

    /// Takes up a request, which is new, known, or left by an earlier daemon.
    pub fn begin(&self, new: OnceRecord<R>) -> Result<Begun<R>, RpcError> {
        check_id(&new.id)?;
        let _writing = self.writing();
        let key = (new.slot.clone(), new.id.clone());
        let known = self.load(&new.slot, &new.id);
        if let Some(why) = known.as_ref().and_then(|known| self.tell_dropped(known)) {
            return Err(why);
        }
        let known = known.filter(|known| known.dropped.is_none());
        let is_other = |known: &OnceRecord<R>| !known.request.is_repeated_by(&new.request);
        if known.as_ref().is_some_and(is_other) {
            let text = format!("the id {} was given to another {}", new.id, R::NOUN);
            return Err(RpcError::new(Fault::Refused, text).next("choose another id"));
        }
        if let Some(outcome) = known.as_ref().and_then(|known| known.outcome.clone()) {
            return Ok(Begun::Ended(outcome));
        }
        if let Some(active) = self.active().get(&key) {
            return Ok(Begun::UnderWay(OnceWaiter::new(active)));
        }
        let record = match known {
            Some(known) => OnceRecord {
                request: known.request.repeated(new.request),
                ..known
            },
            None => new,
        };
        match self.save(&record) {
            Err(error) if !record.request.may_be_unwritten() => {
                let text = format!(
                    "the {} can't be written down, and nothing was done: {error}",
                    R::NOUN
                );
                let remedy = remedy::of(&error, &self.directory);
                let next = format!("{remedy}; then try again");
                return Err(RpcError::new(Fault::Refused, text).next(next));
            }
            _ => self.forget_oldest(),
        }
        let entry = Arc::new(Active {
            outcome: watch::Sender::default(),
            stage: watch::Sender::default(),
            waiting: AtomicUsize::new(0),
            abandoned: CancellationToken::new(),
        });
        self.active().insert(key, entry.clone());
        Ok(Begun::Yours(OnceWaiter::new(&entry), Box::new(record)))
    }

    /// The key is about to be pressed that does it: from now on it counts as done. `note` adds what is known by now.
    pub fn entered(&self, slot: &str, id: &str, note: impl FnOnce(&mut R)) -> io::Result<()> {
        match self.load(slot, id) {
            Some(mut record) if record.entered_at.is_none() => {
                record.entered_at = Some(Utc::now());
                note(&mut record.request);
                self.save(&record)
            }
            _ => Ok(()),
        }
    }

    /// The key that does it was not pressed after all.
    pub fn not_entered(&self, slot: &str, id: &str) -> io::Result<()> {
        match self.load(slot, id) {
            Some(record) if record.outcome.is_none() => self.save(&OnceRecord {
                entered_at: None,
                ..record
            }),
            _ => Ok(()),
        }
    }

    /// It waited for its turn, which does not come, or it is done and its answer does not come.
    pub fn dropped(&self, slot: &str, id: &str, why: RpcError) -> io::Result<()> {
        match self.load(slot, id) {
            Some(record) if record.entered_at.is_none() => self.save(&OnceRecord {
                dropped: Some(why),
                ..record
            }),
            Some(record) if record.outcome.is_none() => self.save(&OnceRecord {
                outcome: Some(OnceOutcome::Failed(why)),
                ..record
            }),
            _ => Ok(()),
        }
    }

    /// Why a request was dropped while there was no daemon, for its sender, who asks for it again without knowing that. They
    /// learn it once; after that the same id may be used again.
    fn tell_dropped(&self, known: &OnceRecord<R>) -> Option<RpcError> {
        let why = known.dropped.clone().filter(|_| known.untold)?;
        let told = OnceRecord {
            untold: false,
            ..known.clone()
        };
        if let Err(error) = self.save(&told) {
            tracing::warn!("{} {}: {error}", R::NOUN, known.id);
        }
        Some(why)
    }

    /// Why it was dropped, if it was.
    pub fn why_dropped(&self, slot: &str, id: &str) -> Option<RpcError> {
        self.load(slot, id)?.dropped
    }

    /// Whether the key that does it was about to be pressed.
    pub fn is_entered(&self, slot: &str, id: &str) -> bool {
        let record = self.load(slot, id);
        record.is_some_and(|record| record.entered_at.is_some())
    }

    pub fn reached(&self, slot: &str, id: &str, stage: Stage) {
        let key = (slot.to_owned(), id.to_owned());
        if let Some(active) = self.active().get(&key) {
            active.stage.send_modify(|now| *now = stage.max(*now));
        }
    }

    /// What has come of a request: written down, if it is the end of it, and told to all who wait. A failure while the daemon
    /// leaves its slots is not written down: the next daemon goes on with the request.
    pub fn settle(&self, slot: &str, id: &str, came: Came<R>) {
        self.write_end(slot, id, &came);
        self.tell_end(slot, id, came);
    }

    fn tell_end(&self, slot: &str, id: &str, came: Came<R>) {
        let entry = self.active().remove(&(slot.to_owned(), id.to_owned()));
        if let Some(entry) = entry {
            entry.outcome.send_replace(Some(came.result()));
        }
    }

    fn write_end(&self, slot: &str, id: &str, came: &Came<R>) {
        if self.end.leaves() && came.is_failure() {
            return;
        }
        let _writing = self.writing();
        let key = (slot.to_owned(), id.to_owned());
        let stage = self.active().get(&key).map(|entry| *entry.stage.borrow());
        let written = match (came, self.load(slot, id)) {
            // Its sender may be gone.
            (Came::Nothing(why), Some(record))
                if stage >= Some(Stage::Accepted) || record.dropped.is_some() =>
            {
                let dropped = Some(record.dropped.unwrap_or_else(|| why.clone()));
                self.save(&OnceRecord {
                    dropped,
                    untold: false,
                    ..record
                })
            }
            (Came::Nothing(_), _) => std::fs::remove_file(self.file(slot, id)),
            (Came::End(outcome), Some(record)) => self.save(&OnceRecord {
                outcome: Some(outcome.clone()),
                ..record
            }),
            (Came::Part(_) | Came::End(_), _) => Ok(()),
        };
        if let Err(error) = written {
            tracing::warn!(
                "what came of the {} {id} can't be written down: {error}",
                R::NOUN
            );
        }
    }

    /// What is known of a request, and whether it is under way in this daemon.
    pub fn look(&self, slot: &str, id: &str) -> Result<(OnceRecord<R>, bool), RpcError> {
        check_id(id)?;
        let key = (slot.to_owned(), id.to_owned());
        let under_way = self.active().contains_key(&key);
        let record = self.load(slot, id).ok_or_else(|| {
            RpcError::new(
                Fault::Usage,
                format!("no {} to {slot} has the id {id}", R::NOUN),
            )
            .next("it was never sent, was taken back, or is too old")
        })?;
        Ok((record, under_way))
    }

    fn active(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Active<R>>>> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writing(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names of slots have no dot.
    fn file(&self, slot: &str, id: &str) -> PathBuf {
        self.directory.join(format!("{slot}.{id}.json"))
    }

    fn load(&self, slot: &str, id: &str) -> Option<OnceRecord<R>> {
        let text = files::read_text(&self.file(slot, id)).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn save(&self, record: &OnceRecord<R>) -> io::Result<()> {
        let text = serde_json::to_string(record).map_err(io::Error::other)?;
        let file = self.file(&record.slot, &record.id);
        match files::save(&file, &text) {
            // The directory was removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                paths::ensure_private_dir(&self.directory).map_err(io::Error::other)?;
                files::save(&file, &text)
            }
            saved => saved,
        }
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

/// What has come of a request.
#[derive(Clone)]
pub enum Came<R: OnceRequest> {
    /// It was certainly not done: the same id may be used again.
    Nothing(RpcError),
    /// It was done, and what comes of it is not known yet.
    Part(Box<Result<R::Answer, RpcError>>),
    End(OnceOutcome<R>),
}

impl<R: OnceRequest> Came<R> {
    fn is_failure(&self) -> bool {
        matches!(self, Came::Nothing(_) | Came::End(OnceOutcome::Failed(_)))
    }

    fn result(self) -> Result<R::Answer, RpcError> {
        match self {
            Came::Nothing(error) => Err(error),
            Came::Part(result) => *result,
            Came::End(outcome) => outcome.result(),
        }
    }
}

impl<R: OnceRequest> OnceWaiter<R> {
    fn new(active: &Arc<Active<R>>) -> OnceWaiter<R> {
        active.waiting.fetch_add(1, Ordering::Relaxed);
        OnceWaiter(active.clone())
    }

    pub fn active(&self) -> Arc<Active<R>> {
        self.0.clone()
    }

    pub async fn outcome(&self) -> Result<R::Answer, RpcError> {
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

    /// Waits no longer. If nobody else does, the request is taken back, and the outcome says what came of that.
    pub async fn give_up(self) -> Option<Result<R::Answer, RpcError>> {
        if self.0.waiting.load(Ordering::Relaxed) > 1 {
            return None;
        }
        self.0.abandoned.cancel();
        Some(self.outcome().await)
    }

    /// Leaves the request to itself.
    pub fn leave(self) {
        self.0.waiting.fetch_add(1, Ordering::Relaxed);
    }
}

impl<R: OnceRequest> Drop for OnceWaiter<R> {
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
    let text = format!("`{id}` can't be an id");
    Err(RpcError::new(Fault::Usage, text).next(format!(
        "an id has letters, digits, `.`, `_` and `-`, at most {MAX_ID} of them, and begins with a letter or digit"
    )))
}

#[cfg(test)]
mod tests;
