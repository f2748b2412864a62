//! The one writer of the audit file.

use super::chain::{Chain, KEPT};
use super::witness::{SystemLog, Witness};
use super::{Head, Record};
use crate::{blocking, files, secrets};
use chrono::{DateTime, SecondsFormat, Utc};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Duration, Instant};

type Job = (Record, oneshot::Sender<io::Result<u64>>);

/// Jobs that may wait for the writer: one for each slot that decides at the same moment, with room to spare.
const MAX_JOBS: usize = 256;
/// Between two waits for the disk: an entry is safe from a power cut this long after it was written.
const SYNC_PAUSE: Duration = Duration::from_millis(200);

/// The way to the one writer.
#[derive(Debug, Clone)]
pub struct Audit {
    jobs: mpsc::Sender<Job>,
}

impl Audit {
    /// Opens the file and starts the writer.
    pub fn open(path: &Path) -> io::Result<Audit> {
        Audit::open_with(path, SystemLog::default())
    }

    /// The same, with another system log.
    fn open_with(path: &Path, log: SystemLog) -> io::Result<Audit> {
        let chain = Chain::open(path, KEPT)?;
        let witness = Witness::new(log, path.to_owned(), &chain.head);
        let (written, to_sync) = watch::channel(chain.head.seq);
        tokio::spawn(keep_safe(path.to_owned(), to_sync));
        let (jobs, queue) = mpsc::channel(MAX_JOBS);
        let writer = Writer {
            chain,
            witness,
            written,
        };
        tokio::spawn(writer.run(queue));
        Ok(Audit { jobs })
    }

    /// Returns when the entry is with the kernel. The disk has it a moment later.
    pub async fn write(&self, mut record: Record) -> io::Result<u64> {
        record.why = secrets::mask(&record.why);
        let gone = || io::Error::other("the audit writer is gone");
        let (done, written) = oneshot::channel();
        self.jobs.send((record, done)).await.map_err(|_| gone())?;
        written.await.map_err(|_| gone())?
    }
}

struct Writer {
    chain: Chain,
    witness: Witness,
    written: watch::Sender<u64>,
}

impl Writer {
    async fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        loop {
            tokio::select! {
                job = queue.recv() => match job {
                    Some((record, done)) => drop(done.send(self.append(record))),
                    None => break,
                },
                () = until(self.witness.due) => self.witness.tell(&self.chain.head),
            }
        }
        self.witness.tell(&self.chain.head);
    }

    fn append(&mut self, record: Record) -> io::Result<u64> {
        let seq = self.chain.append(record, now())?;
        let head: &Head = &self.chain.head;
        self.witness.grown(head);
        self.written.send_replace(seq);
        Ok(seq)
    }
}

/// Brings what was written to the disk, apart from the way of an answer: a slow disk must not hold up a slot.
async fn keep_safe(path: PathBuf, mut written: watch::Receiver<u64>) {
    let mut told = false;
    while written.changed().await.is_ok() {
        let path = path.clone();
        let synced = blocking::run(move || sync(&path)).await;
        let fault = synced.flatten().err();
        if let Some(error) = &fault {
            // Tried again, and told once.
            written.mark_changed();
            if !told {
                tracing::warn!("the audit is not yet safe on the disk: {error}");
            }
        }
        told = fault.is_some();
        tokio::time::sleep(SYNC_PAUSE).await;
    }
}

/// Also the file before it: a rotation may have come since the last time.
fn sync(path: &Path) -> io::Result<()> {
    if let Ok(before) = File::open(files::rotated(path, 1)) {
        before.sync_data()?;
    }
    File::open(path)?.sync_data()
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// To the microsecond, so that the text in the file reads back as the same value.
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
}
