//! The recording as the main thread sees it: recorded time, and the queue of the thread that writes the file. An event is
//! mostly on the disk a moment after it was recorded. If the disk does not answer, the events wait in memory, and the main
//! thread goes on.

use super::clock::RecordingClock;
use super::recording_file::RecordingFile;
use super::writer::{CastJob, CastWriter, Moved, ROOM, RecordedEvent};
use crate::core::terminal::At;
use crate::os::headroom;
use crate::os::log_file::Cap;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

/// How long an event may take to reach the disk before it is passed on without. A key waits this long once, when a disk
/// begins to hang.
const SOON: Duration = Duration::from_millis(200);

/// The same for the removed file that is made again, and for a rotation.
const MOVED_SOON: Duration = Duration::from_secs(1);

/// A write that takes longer than this waits for a disk that does not answer.
const HANGS: Duration = Duration::from_secs(1);

/// If more than this waits, the terminal is not read for a while: a program that writes faster than its disk is slowed down, and
/// nothing of its output is lost.
const BEHIND: usize = ROOM / 4;

/// How long a program waits for a disk that finishes nothing. Then it goes on, and what finds no room is a gap that is counted.
const PATIENCE: Duration = Duration::from_secs(5);

/// The same for a rotation, which draws a whole recording.
const LONG_PATIENCE: Duration = Duration::from_secs(60);

/// How long the file may take to open. A start whose disk hangs fails, and says so.
const OPENS_WITHIN: Duration = Duration::from_secs(5);

/// How long to wait for the shim before this one, which may still write, and how often to look.
const FREE_WITHIN: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(super) struct Recorder {
    path: PathBuf,
    clock: RecordingClock,
    writer: Arc<CastWriter>,
    /// Readable when the thread has finished something that was waited for.
    woken: UnixStream,
    /// Events since the queue was full.
    missed: u64,
    /// All of them while the disk hangs.
    missed_in_all: u64,
    /// Whether a person was told that the disk hangs.
    hangs: bool,
    news: Option<String>,
}

impl Recorder {
    /// Opens or creates the file, and starts its thread. Nothing is written before the first event.
    pub fn open(path: &Path, size: (u16, u16), title: &str) -> io::Result<Self> {
        let (woken, wake) = UnixStream::pair()?;
        woken.set_nonblocking(true)?;
        wake.set_nonblocking(true)?;
        let (told, opened) = mpsc::channel();
        let (file, title) = (path.to_owned(), title.to_owned());
        let thread = move || {
            let file = match open_free(&file, size, &title) {
                Ok(file) => file,
                Err(fault) => return drop(told.send(Err(fault))),
            };
            let writer = Arc::new(CastWriter::new(file.length(), wake));
            let is_awaited = told.send(Ok((writer.clone(), file.last()))).is_ok();
            if is_awaited {
                writer.run(file);
            }
        };
        std::thread::Builder::new()
            .name("missiond-cast".to_owned())
            .spawn(thread)
            .map_err(|error| io::Error::other(headroom::why_not_made(&error)))?;
        let opened = opened.recv_timeout(OPENS_WITHIN);
        let (writer, last) = opened.unwrap_or_else(|_| Err(no_answer()))?;
        Ok(Self {
            path: path.to_owned(),
            clock: RecordingClock::after(last, Instant::now()),
            writer,
            woken,
            missed: 0,
            missed_in_all: 0,
            hangs: false,
            news: None,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file that hold complete events.
    pub fn length(&self) -> u64 {
        self.writer.progress().length
    }

    /// The same, if nothing waits to be written: then everything recorded is before this position.
    pub fn position(&self) -> Option<u64> {
        let progress = self.writer.progress();
        progress.is_settled().then_some(progress.length)
    }

    /// Bytes of the file that hold complete events, and the events that are to follow them.
    pub fn recorded(&self) -> (u64, Vec<Arc<CastJob>>) {
        let progress = self.writer.progress();
        (progress.length, progress.waiting.iter().cloned().collect())
    }

    /// Whether the file is about to be replaced: a daemon that reads it now would not know which one it has.
    pub fn moves(&self) -> bool {
        self.writer.progress().moves()
    }

    /// The clock of recorded time for all events of the file.
    pub fn clock(&mut self) -> &mut RecordingClock {
        &mut self.clock
    }

    /// When the terminal has to be read, to know whether there is a silence to report.
    pub fn next_silence(&self) -> Option<Instant> {
        self.clock.next_silence()
    }

    /// Appends one event, and returns its recorded time.
    pub fn record(&mut self, code: char, data: &str) -> At {
        self.record_exactly(code, data, None)
    }

    /// The same, with the exact bytes if they differ from `data`.
    pub fn record_exactly(&mut self, code: char, data: &str, exact: Option<&[u8]>) -> At {
        self.note_missed();
        let at = self.clock.stamp(Instant::now());
        let event = RecordedEvent {
            at,
            code,
            data: data.to_owned(),
            exact: exact.map(<[u8]>::to_vec),
        };
        if self.missed > 0 || !self.give(CastJob::Event(event), SOON) {
            self.missed += 1;
            self.missed_in_all += 1;
        }
        at
    }

    /// Queues a job, and waits for it for a while if nothing is before it: behind a disk that hangs nobody waits.
    fn give(&mut self, job: CastJob, limit: Duration) -> bool {
        let is_first = self.writer.progress().is_settled();
        let given = self.writer.push(job);
        if given && is_first {
            self.writer.settle(limit);
        }
        given
    }

    /// Counts in the file what had no room, as soon as there is some.
    fn note_missed(&mut self) {
        let has_room = self.writer.progress().bytes <= BEHIND;
        if self.missed > 0 && has_room {
            let at = self.clock.stamp(Instant::now());
            let count = std::mem::take(&mut self.missed);
            self.writer.push(CastJob::Missed { at, count });
        }
    }

    /// Restores the file with all its content if somebody removed it.
    pub fn restore(&mut self) {
        let is_asked = |job: &Arc<CastJob>| matches!(**job, CastJob::Restore);
        let is_queued = self.writer.progress().waiting.iter().any(is_asked);
        if !is_queued {
            self.give(CastJob::Restore, MOVED_SOON);
        }
    }

    /// Moves the file to `to` and continues in a new one, which begins with `snapshot` so that it can be replayed alone. Recorded
    /// time continues. [`Recorder::take_moved`] has the outcome.
    pub fn rotate(&mut self, to: &Path, size: (u16, u16), snapshot: &str) {
        let at = self.clock.stamp(Instant::now());
        let (to, snapshot) = (to.to_owned(), snapshot.to_owned());
        let job = CastJob::Rotate {
            at,
            to,
            size,
            snapshot,
        };
        self.give(job, MOVED_SOON);
    }

    /// The same, with a snapshot that is drawn from the recording.
    pub fn bound(&mut self, cap: Cap, size: (u16, u16)) {
        let at = self.clock.stamp(Instant::now());
        self.give(CastJob::Bound { at, cap, size }, MOVED_SOON);
    }

    pub fn take_moved(&mut self) -> Option<Moved> {
        self.writer.progress().moved.pop_front()
    }

    /// Until when the terminal is not read, because the disk is behind.
    pub fn awaited_until(&self, now: Instant) -> Option<Instant> {
        let progress = self.writer.progress();
        let patience = match progress.moves() {
            true => LONG_PATIENCE,
            false => PATIENCE,
        };
        let until = progress.at + patience;
        (progress.bytes > BEHIND && now < until).then_some(until)
    }

    /// When to look whether the disk hangs.
    pub fn look_at(&self) -> Option<Instant> {
        let progress = self.writer.progress();
        let may_hang = !self.hangs && !progress.is_settled() && !progress.moves();
        may_hang.then(|| progress.at + HANGS)
    }

    /// Looks how the disk does; returns whether that has changed.
    pub fn look(&mut self, now: Instant) -> bool {
        let mut bytes = [0; 64];
        while (&self.woken).read(&mut bytes).is_ok_and(|count| count > 0) {}
        self.note_missed();
        let hung = self.hangs;
        if self.look_at().is_some_and(|at| at <= now) {
            self.hangs = true;
            self.news = Some(format!(
                "the disk of the recording {} does not answer: the program goes on, and up to {} KiB of its output wait in memory; \
                 what does not fit is counted, and missing from the recording",
                self.path.display(),
                ROOM >> 10
            ));
        } else if (self.hangs || self.missed_in_all > 0)
            && self.missed == 0
            && self.position().is_some()
        {
            self.hangs = false;
            self.news = Some(match std::mem::take(&mut self.missed_in_all) {
                0 => "the disk of the recording answers again, and nothing is missing".to_owned(),
                count => format!(
                    "the disk of the recording answers again; {count} events are missing from it"
                ),
            });
        }
        hung != self.hangs
    }

    /// Whether the disk hangs, as a person was told.
    pub fn hangs(&self) -> bool {
        self.hangs
    }

    /// A warning for a person, once.
    pub fn take_news(&mut self) -> Option<String> {
        let own = self.news.take();
        own.or_else(|| self.writer.progress().news.pop_front())
    }

    /// Waits until everything is written, but no longer than `limit`; returns whether it is.
    pub fn settle(&mut self, limit: Duration) -> bool {
        self.note_missed();
        self.writer.settle(limit)
    }
}

impl AsFd for Recorder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.writer.close();
    }
}

/// Opens the file as soon as the shim before this one has let it go, which takes it a moment after its end.
fn open_free(path: &Path, size: (u16, u16), title: &str) -> io::Result<RecordingFile> {
    let given_up = Instant::now() + FREE_WITHIN;
    loop {
        match RecordingFile::open(path, size, title) {
            Err(fault) if fault.kind() == ErrorKind::WouldBlock && Instant::now() < given_up => {
                std::thread::sleep(LOOK);
            }
            opened => return opened,
        }
    }
}

fn no_answer() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "its disk does not answer")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn open(path: &Path) -> io::Result<Recorder> {
        Recorder::open(path, (80, 24), "test")
    }

    /// Waits until all is written; returns the times of rotations.
    fn written(recorder: &mut Recorder) -> Vec<io::Result<At>> {
        assert!(recorder.settle(Duration::from_secs(60)));
        let moved = std::iter::from_fn(|| recorder.take_moved());
        moved
            .map(|moved| moved.outcome.map(|()| moved.at))
            .collect()
    }

    #[test]
    fn a_second_start_goes_on_in_the_same_file_with_later_times() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.cast");
        let mut first = open(&path).unwrap();
        let one = first.record('o', "one");
        first.clock().changed(one);
        let later = Instant::now() + Duration::from_secs(50);
        let told: Vec<At> = std::iter::from_fn(|| first.clock().heard_nothing(later)).collect();
        let at = first.record('o', "two");
        assert!(at > At::from_secs(49) && told.iter().all(|told| *told < at));
        assert!(open(&path).unwrap_err().to_string().contains("another"));
        written(&mut first);
        drop(first);

        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{whole}[51.0, \"o\", \"to")).unwrap();
        let mut second = open(&path).unwrap();
        assert_eq!(second.length(), whole.len() as u64);
        assert!(second.record('m', "start 1") > at);
        written(&mut second);
        let content = std::fs::read_to_string(&path).unwrap();
        assert_eq!(content.lines().count(), 4, "{content}");
        assert_eq!(content.len() as u64, second.length());
        let mode = std::fs::metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn after_a_rotation_each_file_stands_alone_and_time_runs_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.cast");
        let old = dir.path().join("a.1.cast");
        let mut recorder = open(&path).unwrap();
        let before = recorder.record('o', "old");
        recorder.rotate(&old, (100, 30), "snapshot");
        let at = written(&mut recorder).pop().unwrap().unwrap();
        let after = recorder.record('o', "new");
        written(&mut recorder);
        assert!(before < at && at < after);
        let (old, new) = (
            std::fs::read_to_string(&old).unwrap(),
            std::fs::read_to_string(&path).unwrap(),
        );
        assert!(old.ends_with("\"old\"]\n"), "{old}");
        assert!(new.starts_with("{\"version\": 2, \"width\": 100"), "{new}");
        assert!(new.contains("\"snapshot\"") && new.ends_with("\"new\"]\n"));
        assert_eq!(new.len() as u64, recorder.length());
        assert!(open(&path).is_err(), "the new file is locked as well");

        let nowhere = dir.path().join("no/such/dir.cast");
        recorder.rotate(&nowhere, (1, 1), "x");
        assert!(written(&mut recorder)[0].is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
        recorder.record('o', "still");
        written(&mut recorder);
        assert_eq!(
            std::fs::read_to_string(&path).unwrap().len() as u64,
            recorder.length()
        );
    }

    #[test]
    fn what_is_no_recording_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.cast");
        std::fs::write(&path, "my diary\n").unwrap();
        assert!(open(&path).unwrap_err().to_string().contains("move it"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "my diary\n");
        let link = dir.path().join("link.cast");
        std::os::unix::fs::symlink(dir.path().join("new"), &link).unwrap();
        assert!(open(&link).is_err());
        assert!(!dir.path().join("new").exists());
    }

    #[test]
    fn a_torn_header_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.cast");
        std::fs::write(&path, "{\"version\": 2, \"wid").unwrap();
        let mut recorder = open(&path).unwrap();
        recorder.record('o', "x");
        written(&mut recorder);
        let content = std::fs::read_to_string(&path).unwrap();
        assert!(content.starts_with("{\"version\": 2, \"width\": 80"));
        assert_eq!(content.lines().count(), 2);
    }
}
