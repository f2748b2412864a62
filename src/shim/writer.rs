//! The thread that writes the recording, and its queue: a disk that does not answer holds up neither keys nor an end. What
//! waits stays in the queue until it is on the disk, so that a daemon that connects meanwhile gets it all the same.

use super::recording_file::RecordingFile;
use super::snapshot::snapshot_of;
use crate::core::terminal::At;
use crate::os::files;
use crate::os::log_file::Cap;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most bytes of events that wait for the disk: minutes of what Claude Code writes, and small compared to its memory.
pub(super) const ROOM: usize = 1 << 20;

/// The overhead of an event in bytes.
const APART: usize = 128;

/// The most warnings that wait for a daemon: of a disk that fails again and again only the last ones matter.
const MAX_NEWS: usize = 8;

/// The most bytes of events in one write, which is also the most that one failure loses.
const BATCH: usize = 64 << 10;

/// One event of the recording.
#[derive(Debug)]
pub(super) struct RecordedEvent {
    pub at: At,
    pub code: char,
    pub data: String,
    /// The exact bytes if they differ from `data`.
    pub exact: Option<Vec<u8>>,
}

impl RecordedEvent {
    fn cost(&self) -> usize {
        APART + self.data.len() + self.exact.as_ref().map_or(0, Vec::len)
    }
}

/// A piece of work for the thread.
#[derive(Debug)]
pub(super) enum CastJob {
    Event(RecordedEvent),
    /// This many events had no room in the queue.
    Missed {
        at: At,
        count: u64,
    },
    /// Creates the file again if it was removed.
    Restore,
    Rotate {
        at: At,
        to: PathBuf,
        size: (u16, u16),
        snapshot: String,
    },
    /// A rotation for which the snapshot is drawn from the recording itself.
    Bound {
        at: At,
        cap: Cap,
        size: (u16, u16),
    },
}

impl CastJob {
    fn cost(&self) -> usize {
        match self {
            CastJob::Event(event) => event.cost(),
            CastJob::Rotate { snapshot, .. } => APART + snapshot.len(),
            CastJob::Missed { .. } | CastJob::Restore | CastJob::Bound { .. } => APART,
        }
    }

    /// Whether it replaces the file, so that positions in it change.
    fn moves(&self) -> bool {
        matches!(self, CastJob::Rotate { .. } | CastJob::Bound { .. })
    }
}

/// What became of a rotation.
#[derive(Debug)]
pub(super) struct Moved {
    pub at: At,
    pub outcome: io::Result<()>,
    /// Whether a daemon has asked for it.
    pub is_asked: bool,
}

/// The queue, and what the thread has come to.
#[derive(Debug)]
pub(super) struct CastProgress {
    /// With the jobs in progress.
    pub waiting: VecDeque<Arc<CastJob>>,
    pub bytes: usize,
    /// Bytes of the file that hold complete events.
    pub length: u64,
    /// When the last job was finished, or the first one came.
    pub at: Instant,
    pub news: VecDeque<String>,
    pub moved: VecDeque<Moved>,
    /// Whether the main thread is to be woken after each write.
    pub is_watched: bool,
    is_closed: bool,
}

impl CastProgress {
    pub fn is_settled(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether the file is about to be replaced.
    pub fn moves(&self) -> bool {
        self.waiting.iter().any(|job| job.moves())
    }
}

/// What both threads share.
#[derive(Debug)]
pub(super) struct CastWriter {
    progress: Mutex<CastProgress>,
    /// Signalled when there is work, or none will come any more.
    given: Condvar,
    /// Signalled after each write.
    done: Condvar,
    wake: UnixStream,
}

impl CastWriter {
    pub fn new(length: u64, wake: UnixStream) -> CastWriter {
        let progress = CastProgress {
            waiting: VecDeque::new(),
            bytes: 0,
            length,
            at: Instant::now(),
            news: VecDeque::new(),
            moved: VecDeque::new(),
            is_watched: false,
            is_closed: false,
        };
        CastWriter {
            progress: Mutex::new(progress),
            given: Condvar::new(),
            done: Condvar::new(),
            wake,
        }
    }

    pub fn progress(&self) -> MutexGuard<'_, CastProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a job. An event that does not fit is refused.
    pub fn push(&self, job: CastJob) -> bool {
        let mut progress = self.progress();
        let cost = job.cost();
        if matches!(job, CastJob::Event(_)) && progress.bytes + cost > ROOM && progress.bytes > 0 {
            return false;
        }
        if progress.waiting.is_empty() {
            progress.at = Instant::now();
        }
        progress.bytes += cost;
        progress.waiting.push_back(Arc::new(job));
        self.given.notify_one();
        true
    }

    /// Waits until everything is written, but no longer than `limit`; returns whether it is.
    pub fn settle(&self, limit: Duration) -> bool {
        let progress = self.progress();
        let waits = |progress: &mut CastProgress| !progress.is_settled();
        let waited = self.done.wait_timeout_while(progress, limit, waits);
        let (mut progress, _) = waited.unwrap_or_else(PoisonError::into_inner);
        progress.is_watched = !progress.is_settled();
        !progress.is_watched
    }

    /// The thread ends once everything is written.
    pub fn close(&self) {
        self.progress().is_closed = true;
        self.given.notify_one();
    }

    pub fn run(&self, mut file: RecordingFile) {
        while let Some(jobs) = self.next(file.retry_at()) {
            // A panic must not leave the queue as it is for ever.
            let worked = catch_unwind(AssertUnwindSafe(|| work(&mut file, &jobs)));
            let moved = worked.unwrap_or_else(|_| panicked(&jobs));
            self.finished(&mut file, &jobs, moved);
        }
    }

    /// The next jobs: events together, others alone. None of them if a gap is to be closed.
    fn next(&self, retry_at: Option<Instant>) -> Option<Vec<Arc<CastJob>>> {
        let idle = |progress: &mut CastProgress| progress.is_settled() && !progress.is_closed;
        let progress = self.progress();
        let progress = match retry_at {
            None => self.given.wait_while(progress, idle),
            Some(at) => {
                let wait = at.saturating_duration_since(Instant::now());
                let waited = self.given.wait_timeout_while(progress, wait, idle);
                Ok(waited.unwrap_or_else(PoisonError::into_inner).0)
            }
        };
        let progress = progress.unwrap_or_else(PoisonError::into_inner);
        if progress.is_settled() && progress.is_closed {
            return None;
        }
        if progress.is_settled() {
            return Some(Vec::new());
        }
        let mut bytes = 0;
        let events = progress.waiting.iter().take_while(|job| {
            bytes += job.cost();
            matches!(***job, CastJob::Event(_)) && bytes <= BATCH
        });
        let count = events.count().max(1);
        Some(progress.waiting.iter().take(count).cloned().collect())
    }

    fn finished(&self, file: &mut RecordingFile, jobs: &[Arc<CastJob>], moved: Option<Moved>) {
        let mut progress = self.progress();
        for job in jobs {
            progress.bytes -= job.cost();
            progress.waiting.pop_front();
        }
        progress.length = file.length();
        progress.at = Instant::now();
        progress.news.extend(file.take_news());
        while progress.news.len() > MAX_NEWS {
            progress.news.pop_front();
        }
        progress.moved.extend(moved);
        let has_news = !progress.news.is_empty() || !progress.moved.is_empty();
        if progress.is_watched || has_news {
            // If its buffer is full, the main thread wakes anyway.
            let _ = (&self.wake).write(&[0]);
        }
        self.done.notify_all();
    }
}

/// Does the jobs; returns what became of rotations.
fn work(file: &mut RecordingFile, jobs: &[Arc<CastJob>]) -> Option<Moved> {
    let events = jobs.iter().filter_map(|job| match &**job {
        CastJob::Event(event) => Some(event),
        _ => None,
    });
    match jobs.first().map(|job| &**job) {
        None => file.retry(),
        Some(CastJob::Event(_)) => file.write(events),
        Some(CastJob::Missed { at, count }) => file.missed(*at, *count),
        Some(CastJob::Restore) => file.restore_and_tell(),
        Some(CastJob::Rotate {
            at,
            to,
            size,
            snapshot,
        }) => {
            let outcome = file.rotate(*at, to, *size, snapshot);
            return Some(Moved::new(*at, outcome, true));
        }
        Some(CastJob::Bound { at, cap, size }) => {
            // If this fails, the oldest file is overwritten, which keeps the total.
            let _ = files::make_room(file.path(), cap.files);
            let to = files::rotated(file.path(), 1);
            let snapshot = snapshot_of(file).unwrap_or_default();
            let outcome = file.rotate(*at, &to, *size, &snapshot);
            return Some(Moved::new(*at, outcome, false));
        }
    }
    None
}

impl Moved {
    fn new(at: At, outcome: io::Result<()>, is_asked: bool) -> Moved {
        Moved {
            at,
            outcome,
            is_asked,
        }
    }
}

/// A rotation that panicked has failed.
fn panicked(jobs: &[Arc<CastJob>]) -> Option<Moved> {
    let failed = || Err(io::Error::other("it panicked"));
    match jobs.first().map(|job| &**job) {
        Some(CastJob::Rotate { at, .. }) => Some(Moved::new(*at, failed(), true)),
        Some(CastJob::Bound { at, .. }) => Some(Moved::new(*at, failed(), false)),
        _ => None,
    }
}
