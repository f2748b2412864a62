//! The one writer of the audit file.

use super::chain::{Chain, KEPT};
use super::witness::{AuditWitness, SystemLog};
use super::{AuditGap, Head, KeptHead, Record};
use crate::core::text::secrets;
use crate::os::{blocking, files, headroom, remedy};
use chrono::{DateTime, SecondsFormat, Utc};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Duration, Instant};

/// What happens to an action whose entry can't be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnFailure {
    /// The action is not done.
    Refuse,
    /// The action is done anyway.
    Proceed,
}

impl OnFailure {
    /// The gap that one entry leaves.
    fn gap(self, asked: DateTime<Utc>) -> AuditGap {
        AuditGap {
            lost: u64::from(self == OnFailure::Proceed),
            refused: u64::from(self == OnFailure::Refuse),
            from: asked,
            to: asked,
        }
    }
}

/// An entry on its way to the writer.
#[derive(Debug)]
struct AuditJob {
    record: Record,
    on_failure: OnFailure,
    /// When the action was to be done.
    asked: DateTime<Utc>,
    done: oneshot::Sender<io::Result<u64>>,
}

/// The maximum of queued jobs: one for each slot that decides at the same moment, with room to spare.
const MAX_JOBS: usize = 256;
/// The timeout of an entry. If it takes longer, the disk does not answer, and the action is not done.
const LIMIT: Duration = Duration::from_secs(3);
/// The reason in the entry for an action whose first entry was written after its caller had given up.
const TOO_LATE: &str = "it was not done: its entry was not written in time";
/// The time between two syncs: an entry is safe from a power cut this long after it was written.
const SYNC_PAUSE: Duration = Duration::from_millis(200);
/// The time between two attempts to record that entries could not be written.
const RETRY: Duration = Duration::from_secs(1);

/// A handle to the writer.
#[derive(Debug, Clone)]
pub struct Audit {
    jobs: mpsc::Sender<AuditJob>,
    failing: watch::Receiver<Option<AuditFault>>,
    fails: watch::Sender<Option<AuditFault>>,
    progress: Arc<WriteProgress>,
    path: Arc<Path>,
}

/// Why no entry can be written now, and what helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditFault {
    pub text: String,
    pub remedy: String,
}

impl AuditFault {
    fn new(error: &io::Error, path: &Path) -> AuditFault {
        AuditFault {
            text: error.to_string(),
            remedy: remedy::of(error, path),
        }
    }
}

/// The state of the writer, for callers that would wait for it.
#[derive(Debug, Default)]
struct WriteProgress {
    /// When the current write began.
    began: Mutex<Option<std::time::Instant>>,
    /// Entries that did not fit into the queue.
    missed: Mutex<Option<AuditGap>>,
}

impl WriteProgress {
    fn hangs(&self) -> bool {
        let began = *locked(&self.began);
        began.is_some_and(|began| began.elapsed() >= LIMIT)
    }

    fn miss(&self, on_failure: OnFailure, asked: DateTime<Utc>) {
        AuditGap::join(&mut locked(&self.missed), on_failure.gap(asked));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn no_answer() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "its disk does not answer")
}

impl Audit {
    /// Opens the file and starts the writer. The head of the chain is also kept in the directory `state`.
    pub fn open(path: &Path, state: &Path) -> io::Result<Audit> {
        Audit::open_with(path, state, SystemLog::default())
    }

    /// Like [`Audit::open`], with another system log.
    fn open_with(path: &Path, state: &Path, log: SystemLog) -> io::Result<Audit> {
        let kept_file = KeptHead::file(state, path);
        let kept = KeptHead::load(&kept_file).unwrap_or_else(|error| {
            tracing::warn!("the head of the audit is not known: {error}");
            None
        });
        let kept = kept.unwrap_or_default();
        let chain = Chain::open(path, KEPT, &kept.head)?;
        let witness = AuditWitness::new(log, path.to_owned(), &chain.head);
        let (written, to_sync) = watch::channel(chain.head.seq);
        let (failing, fails) = watch::channel(None);
        tokio::spawn(keep_safe(path.to_owned(), to_sync));
        let (jobs, queue) = mpsc::channel(MAX_JOBS);
        let mut writer = AuditWriter {
            chain,
            witness,
            written,
            failing: failing.clone(),
            path: path.to_owned(),
            progress: Arc::default(),
            kept_file,
            keeps: true,
            gap: kept.gap,
        };
        writer.keep_head();
        let audit = Audit {
            jobs,
            failing: fails,
            fails: failing,
            progress: writer.progress.clone(),
            path: path.into(),
        };
        // A separate thread, because the disk may not answer.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        std::thread::Builder::new()
            .name("missiond-audit".to_owned())
            .spawn(move || runtime.block_on(writer.run(queue)))
            .map_err(|error| io::Error::other(headroom::why_not_made(&error)))?;
        Ok(audit)
    }

    /// Returns when the kernel has the entry; the disk has it a moment later. After an error, the caller must not do
    /// the action.
    pub async fn write(&self, record: Record) -> io::Result<u64> {
        self.give(record, OnFailure::Refuse).await
    }

    /// Like [`Audit::write`], for an action that is done in any case. If it can't be written, it is counted in the gap
    /// that is recorded later.
    pub async fn note(&self, record: Record) -> io::Result<u64> {
        self.give(record, OnFailure::Proceed).await
    }

    /// Why no entry can be written now.
    pub fn failing(&self) -> watch::Receiver<Option<AuditFault>> {
        self.failing.clone()
    }

    async fn give(&self, mut record: Record, on_failure: OnFailure) -> io::Result<u64> {
        record.why = secrets::mask(&record.why);
        let gone = || io::Error::other("the audit writer is gone");
        let (done, written) = oneshot::channel();
        let asked = now();
        let job = AuditJob {
            record,
            on_failure,
            asked,
            done,
        };
        if self.progress.hangs() {
            // The job is counted, and written later if its action is done anyway.
            if self.jobs.try_send(job).is_err() {
                self.progress.miss(on_failure, asked);
            }
            return Err(no_answer());
        }
        let given = async {
            self.jobs.send(job).await.map_err(|_| gone())?;
            written.await.map_err(|_| gone())?
        };
        match tokio::time::timeout(LIMIT, given).await {
            Ok(written) => written,
            Err(_) => {
                let fault = AuditFault::new(&no_answer(), &self.path);
                self.fails.send_replace(Some(fault));
                Err(no_answer())
            }
        }
    }
}

struct AuditWriter {
    chain: Chain,
    witness: AuditWitness,
    written: watch::Sender<u64>,
    failing: watch::Sender<Option<AuditFault>>,
    path: PathBuf,
    progress: Arc<WriteProgress>,
    kept_file: PathBuf,
    /// Whether the last head could be kept.
    keeps: bool,
    /// The period in which nothing could be written, until it is recorded as an entry.
    gap: Option<AuditGap>,
}

impl AuditWriter {
    async fn run(mut self, mut queue: mpsc::Receiver<AuditJob>) {
        loop {
            let retry = self.gap.as_ref().map(|_| Instant::now() + RETRY);
            tokio::select! {
                job = queue.recv() => match job {
                    Some(job) => self.serve(job),
                    None => break,
                },
                () = until(self.witness.due) => self.witness.tell(&self.chain.head),
                () = until(retry) => self.try_again(),
            }
        }
        self.witness.tell(&self.chain.head);
    }

    fn try_again(&mut self) {
        *locked(&self.progress.began) = Some(std::time::Instant::now());
        let _ = self.close_gap();
        *locked(&self.progress.began) = None;
    }

    fn serve(&mut self, job: AuditJob) {
        let AuditJob {
            record,
            on_failure,
            asked,
            done,
        } = job;
        *locked(&self.progress.began) = Some(std::time::Instant::now());
        self.note_missed();
        if on_failure == OnFailure::Refuse && done.is_closed() {
            // The caller has given up, and the action was not done.
            self.widen_gap(on_failure.gap(asked));
        } else {
            let key = record.key.clone().unwrap_or_else(|| "answer".to_owned());
            let slot = record.slot.clone();
            let written = self.take(record, on_failure.gap(asked));
            let is_written = written.is_ok();
            if done.send(written).is_err() && is_written && on_failure == OnFailure::Refuse {
                let undone = Record::no_effect(&slot, &key, TOO_LATE);
                let _ = self.take(undone, OnFailure::Proceed.gap(now()));
            }
        }
        *locked(&self.progress.began) = None;
    }

    /// Counts the entries that callers could not queue while the writer hung.
    fn note_missed(&mut self) {
        let missed = locked(&self.progress.missed).take();
        if let Some(missed) = missed {
            self.widen_gap(missed);
        }
    }

    /// Writes the entry; if that fails, its gap is added to that which is recorded later.
    fn take(&mut self, record: Record, gap: AuditGap) -> io::Result<u64> {
        let written = self.close_gap().and_then(|()| self.append(record));
        match &written {
            Ok(_) => {
                self.failing
                    .send_if_modified(|failing| failing.take().is_some());
            }
            Err(error) => {
                let fault = AuditFault::new(error, &self.path);
                self.failing.send_replace(Some(fault));
                self.widen_gap(gap);
            }
        }
        written
    }

    /// Records missing entries, if there are any.
    fn close_gap(&mut self) -> io::Result<()> {
        let Some(gap) = &self.gap else {
            return Ok(());
        };
        let hole = Record::hole(gap);
        self.append(hole)?;
        self.gap = None;
        self.keep_head();
        self.failing.send_replace(None);
        Ok(())
    }

    fn widen_gap(&mut self, more: AuditGap) {
        AuditGap::join(&mut self.gap, more);
        self.keep_head();
    }

    fn append(&mut self, record: Record) -> io::Result<u64> {
        let seq = self.chain.append(record, now())?;
        self.keep_head();
        let head: &Head = &self.chain.head;
        self.witness.grown(head);
        self.written.send_replace(seq);
        Ok(seq)
    }

    /// Keeps the head. A failure is reported once, because the chain is complete without it.
    fn keep_head(&mut self) {
        let kept = KeptHead {
            head: self.chain.head.clone(),
            gap: self.gap.clone(),
        };
        let saved = kept.save(&self.kept_file);
        if let Err(error) = &saved
            && self.keeps
        {
            let file = self.kept_file.display();
            tracing::warn!("the head of the audit can't be kept in {file}: {error}");
        }
        self.keeps = saved.is_ok();
    }
}

/// Syncs to disk in the background: a slow disk must not delay a slot.
async fn keep_safe(path: PathBuf, mut written: watch::Receiver<u64>) {
    let mut told = false;
    while written.changed().await.is_ok() {
        let path = path.clone();
        let synced = blocking::run(move || sync(&path)).await;
        let fault = synced.flatten().err();
        if let Some(error) = &fault {
            // Tried again, and reported once.
            written.mark_changed();
            if !told {
                tracing::warn!("the audit is not yet safe on the disk: {error}");
            }
        }
        told = fault.is_some();
        tokio::time::sleep(SYNC_PAUSE).await;
    }
}

/// Syncs the file, and the previous one: there may have been a rotation since the last sync.
fn sync(path: &Path) -> io::Result<()> {
    if let Ok(before) = files::open(&files::rotated(path, 1)) {
        before.sync_data()?;
    }
    files::open(path)?.sync_data()
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// The time to the microsecond, so that the text in the file parses to the same value.
fn now() -> DateTime<Utc> {
    let now = Utc::now();
    now.to_rfc3339_opts(SecondsFormat::Micros, true)
        .parse()
        .unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::verify;
    use tokio::net::UnixDatagram;

    /// The line with the head of this number; others may come before it.
    async fn heard(log: &UnixDatagram, seq: u64) -> String {
        let mut bytes = [0; 1024];
        loop {
            let length = log.recv(&mut bytes).await.expect("the log is told");
            let line = String::from_utf8_lossy(&bytes[..length]).into_owned();
            if line.contains(&format!(" head {seq}:")) {
                return line;
            }
        }
    }

    #[tokio::test]
    async fn the_system_log_hears_the_head_by_number_by_time_and_at_the_end() {
        let dir = tempfile::tempdir().unwrap();
        let (path, socket) = (dir.path().join("audit.jsonl"), dir.path().join("log"));
        let log = UnixDatagram::bind(&socket).unwrap();
        let audit = Audit::open_with(
            &path,
            dir.path(),
            SystemLog {
                socket,
                within: Duration::from_millis(10),
            },
        )
        .unwrap();
        let key = || Record::key("a", "1", "a test");
        for _ in 0..100 {
            audit.write(key()).await.unwrap();
        }
        heard(&log, 100).await;
        audit.write(key()).await.unwrap();
        let line = heard(&log, 101).await;
        let (_, head) = line.rsplit_once(' ').unwrap();
        let head: Head = head.parse().unwrap();
        assert!(
            line.starts_with("<85>") && line.contains(" missiond["),
            "{line}"
        );
        let text = std::fs::read(&path).unwrap();
        assert!(verify(vec![text.as_slice()], &[head]).unwrap().is_ok());
        audit.write(key()).await.unwrap();
        drop(audit);
        heard(&log, 102).await;
    }

    #[tokio::test]
    async fn no_system_log_is_no_fault_and_reasons_are_masked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let audit = Audit::open_with(
            &path,
            dir.path(),
            SystemLog {
                socket: dir.path().join("nobody"),
                ..SystemLog::default()
            },
        )
        .unwrap();
        let record = Record::key(
            "a",
            "1",
            "because of ghp_0123456789abcdefghijABCDEFGHIJ0123",
        );
        assert_eq!(audit.write(record).await.unwrap(), 1);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("because of [masked]"), "{text}");
    }

    /// A directory in place of the file can't be written, like a full disk.
    #[tokio::test]
    async fn what_could_not_be_written_is_counted_also_across_a_kill() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let open = || Audit::open_with(&path, dir.path(), SystemLog::default()).unwrap();
        let key = || Record::key("a", "1", "a test");
        let audit = open();
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let before = now();
        for _ in 0..3 {
            assert!(audit.write(key()).await.is_err());
            assert!(audit.note(key()).await.is_err());
        }
        assert!(audit.note(key()).await.is_err());
        assert!(audit.failing().borrow().is_some());
        drop(audit);

        std::fs::remove_dir(&path).unwrap();
        open().write(key()).await.unwrap();
        let verified = crate::audit::verify_files(&path, &[]).unwrap().unwrap();
        let [hole] = &verified.holes[..] else {
            panic!("{verified:?}");
        };
        assert_eq!((hole.lost, hole.refused, verified.head.seq), (4, 3, 2));
        assert!(before <= hole.from && hole.from < hole.to, "{hole:?}");
    }

    /// The gap is recorded without another entry.
    #[tokio::test]
    async fn a_hole_is_written_as_soon_as_it_can_be() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let audit = Audit::open_with(&path, dir.path(), SystemLog::default()).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        let key = Record::key("a", "1", "a test");
        assert!(audit.write(key).await.is_err());
        let mut failing = audit.failing();
        failing.wait_for(Option::is_some).await.unwrap();
        std::fs::remove_dir(&path).unwrap();
        failing.wait_for(Option::is_none).await.unwrap();
        let verified = crate::audit::verify_files(&path, &[]).unwrap().unwrap();
        assert_eq!((verified.holes.len(), verified.head.seq), (1, 1));
    }
}
