//! What the task of a slot has to know of files that may lie on a file system that does not answer: the directory of Claude
//! Code, the recording. Threads look at them, and what they find comes to the task like any other input.

use super::conversation::Claim;
use super::handle::Answer;
use super::witness::FileEvidence;
use crate::core::machine::Input;
use crate::core::model::Evidence;
use crate::os::blocking::Worker;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How long a look may take. A file system that is merely busy answers sooner.
const LIMIT: Duration = Duration::from_secs(2);

/// Hooks of an unknown conversation that may wait to be told apart; Claude Code sends a few at a time.
pub(super) const MAX_HOOKS: usize = 32;

/// What was found, with what it was looked up for. `None` and errors: the file system did not answer.
pub(super) enum LookedUp {
    Claude(ClaudeFiles),
    /// The length of the recording.
    RecordingLength(Option<u64>),
    /// The older recordings were renamed, so that the next one can take the first place.
    RoomMade,
    /// The length of the transcript, for the health check. The outer `None`: unknown.
    TranscriptLength(Option<Option<u64>>),
}

/// What was found in the files of Claude Code.
pub(crate) enum ClaudeFiles {
    /// What the witnesses in files say, as it was asked for at this moment.
    Evidence(Instant, io::Result<FileEvidence>),
    /// The same, for a person who asks why.
    Why(Answer<Vec<Evidence>>, io::Result<FileEvidence>),
    /// Whether Claude Code has entered the conversation that this hook speaks of.
    Hook(Box<Input>, bool),
    /// Whether a conversation can be taken over.
    Claim(Uuid, Answer<bool>, io::Result<Claim>),
}

type UnderWay = Pin<Box<dyn Future<Output = LookedUp> + Send>>;

/// The looks of one slot that are under way.
pub(super) struct Lookups {
    under_way: FuturesUnordered<UnderWay>,
    /// For the directory of Claude Code.
    conversations: Worker,
    /// For the recording.
    recording: Worker,
    hooks: usize,
}

impl Lookups {
    pub fn new() -> Lookups {
        Lookups {
            under_way: FuturesUnordered::new(),
            conversations: Worker::new(LIMIT),
            recording: Worker::new(LIMIT),
            hooks: 0,
        }
    }

    /// For what waits for a file of Claude Code by itself.
    pub fn conversations(&self) -> &Worker {
        &self.conversations
    }

    /// Looks at files of Claude Code; `found` names what that was for.
    pub fn of_claude<T: Send + 'static>(
        &mut self,
        look: impl FnOnce() -> T + Send + 'static,
        found: impl FnOnce(io::Result<T>) -> LookedUp + Send + 'static,
    ) {
        let looking = self.conversations.run(look);
        self.under_way
            .push(Box::pin(async move { found(looking.await) }));
    }

    /// The same for the recording.
    pub fn of_recording<T: Send + 'static>(
        &mut self,
        look: impl FnOnce() -> T + Send + 'static,
        found: impl FnOnce(io::Result<T>) -> LookedUp + Send + 'static,
    ) {
        let looking = self.recording.run(look);
        self.under_way
            .push(Box::pin(async move { found(looking.await) }));
    }

    /// Finds out whether Claude Code has entered the conversation that a hook speaks of. Returns the hook if too many wait.
    pub fn of_hook(
        &mut self,
        hook: Box<Input>,
        look: impl FnOnce() -> bool + Send + 'static,
    ) -> Option<Box<Input>> {
        if self.hooks >= MAX_HOOKS {
            return Some(hook);
        }
        self.hooks += 1;
        self.of_claude(look, move |entered| {
            LookedUp::Claude(ClaudeFiles::Hook(hook, entered.unwrap_or(false)))
        });
        None
    }

    /// The next thing that was found; never, while nothing is looked for.
    pub async fn next(&mut self) -> LookedUp {
        let Some(found) = self.under_way.next().await else {
            return std::future::pending().await;
        };
        if matches!(found, LookedUp::Claude(ClaudeFiles::Hook(..))) {
            self.hooks -= 1;
        }
        found
    }
}
