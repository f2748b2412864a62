//! The screen of a program, from its recording.

use super::Slot;
use super::kind::ProgramKind;
use super::requests::CLEARED;
use crate::core::cast::{BrokenCast, CastEvent, CastKind, Header, Recording};
use crate::core::claude::reading::Observer;
use crate::core::terminal::{Frame, Terminal};
use crate::os::blocking;
use std::fs::File;
use std::future::Future;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::pin::Pin;

/// How much of a recording is read frame by frame, at its end: that takes ten times as long as drawing it. The
/// input box is drawn hundreds of times in so much; where it was not, all is read.
const READ_CLOSELY: u64 = 128 << 10;

type Opened = Recording<BufReader<std::io::Take<File>>>;

/// How much of a recording is read in one turn of the slot's task: some 40 ms in a debug build, for the slowest output.
/// Between two turns the task takes commands, and the runtime runs other tasks.
const AT_A_TIME: u64 = 16 << 10;

/// A recording on its way into a slot, in bounded pieces. Threads read the file, and the slot's task draws what they read.
pub(super) struct RecordingReader {
    path: PathBuf,
    length: u64,
    /// Whether frames are wanted, and not the output alone.
    is_read: bool,
    fetching: Fetching,
    /// Once the file is open.
    replay: Option<RecordingReplay>,
    /// Whether this is the first time through, in which the output is kept.
    is_first: bool,
}

type Fetching = Pin<Box<dyn Future<Output = Result<Fetched, BrokenCast>> + Send>>;

/// A piece that was read.
pub(super) struct Fetched {
    recording: Opened,
    size: u64,
    /// Each event, and the position in the file behind it.
    events: Vec<(CastEvent, u64)>,
    is_last: bool,
}

/// What a recording has come to.
pub(super) struct Replayed {
    pub terminal: Terminal,
    pub observer: Observer,
    /// Whether any frame was read.
    pub has_read: bool,
}

impl<K: ProgramKind> Slot<K> {
    /// The screen and the output of a program that is long gone.
    pub(crate) async fn replay_ended(&mut self) {
        let recording = self.log.paths().recording.clone();
        match self.replay_whole(&recording).await {
            Ok(replayed) => {
                self.own.observe_with(replayed.observer);
                // What it asked its terminal is asked no more.
                drop(self.screen.replayed(replayed.terminal));
            }
            Err(error) => self.warn(&format!("the recording can't be read: {error}")),
        }
    }

    async fn replay_whole(&mut self, path: &Path) -> Result<Replayed, BrokenCast> {
        let mut reading = RecordingReader::new(path, u64::MAX, K::READS_SCREEN);
        loop {
            let fetched = reading.fetched().await?;
            match self.draw_piece(reading, fetched) {
                ReplayPiece::More(more) => reading = *more,
                ReplayPiece::Done(replayed) => return Ok(*replayed),
            }
        }
    }

    /// Draws a piece. The output is kept, and shown to those who are attached.
    pub(super) fn draw_piece(
        &mut self,
        mut reading: RecordingReader,
        fetched: Fetched,
    ) -> ReplayPiece {
        let mut replay = match reading.replay.take() {
            Some(replay) => replay,
            None => {
                if let [(first, _), (second, _), ..] = &fetched.events[..]
                    && second.is_continuation()
                {
                    // After a rotation the screen is drawn again, which the program did not do.
                    self.screen.pass_over(first.at);
                }
                reading.begin(&fetched)
            }
        };
        for (event, position) in &fetched.events {
            replay.take(event, *position);
            if reading.is_first {
                self.keep_event(event, &replay.terminal);
            }
        }
        reading.go_on(replay, fetched)
    }

    fn keep_event(&mut self, event: &CastEvent, drawn: &Terminal) {
        match &event.what {
            CastKind::Output(text) => {
                let bytes = event.written();
                let taken = self.screen.replay(event.at, text.as_bytes(), bytes, drawn);
                self.note_kept(bytes, &taken);
            }
            CastKind::Marker(text) if text == CLEARED => self.screen.clear_output(),
            marker if marker.begins_a_run() => self.screen.begin_run(event.at),
            _ => {}
        }
    }
}

/// What a turn has come to.
pub(super) enum ReplayPiece {
    More(Box<RecordingReader>),
    Done(Box<Replayed>),
}

impl RecordingReader {
    /// A recording that is to be fed to a fresh terminal.
    pub(super) fn new(path: &Path, length: u64, is_read: bool) -> RecordingReader {
        RecordingReader {
            path: path.to_owned(),
            length,
            is_read,
            fetching: fetch_first(path.to_owned(), length),
            replay: None,
            is_first: true,
        }
    }

    /// The next piece. Whoever stops waiting for it can go on later.
    pub(super) async fn fetched(&mut self) -> Result<Fetched, BrokenCast> {
        (&mut self.fetching).await
    }

    fn begin(&self, fetched: &Fetched) -> RecordingReplay {
        let end = fetched.size.min(self.length);
        let closely = match (self.is_read, self.is_first) {
            (false, _) => None,
            (true, true) => Some(end.saturating_sub(READ_CLOSELY)),
            (true, false) => Some(0),
        };
        RecordingReplay::new(fetched.recording.header(), closely)
    }

    /// What was read so far, for a slot that is being stopped. Nothing is to follow from what it shows.
    pub(super) fn cut_short(self) -> Option<Replayed> {
        let replay = self.replay?;
        Some(Replayed {
            terminal: replay.terminal,
            observer: replay.observer,
            has_read: false,
        })
    }

    /// Reads on. Where all was read, and what the observer says hangs on what was only drawn, all is read again, frame by
    /// frame.
    fn go_on(mut self, replay: RecordingReplay, fetched: Fetched) -> ReplayPiece {
        match fetched.is_last {
            false => {
                self.fetching = fetch_more(fetched.recording, fetched.size);
                self.replay = Some(replay);
            }
            true if replay.is_known => {
                let RecordingReplay {
                    terminal,
                    observer,
                    has_read,
                    ..
                } = replay;
                return ReplayPiece::Done(Box::new(Replayed {
                    terminal,
                    observer,
                    has_read,
                }));
            }
            true => {
                self.fetching = fetch_first(self.path.clone(), self.length);
                self.is_first = false;
            }
        }
        ReplayPiece::More(Box::new(self))
    }
}

/// Opens a recording and reads its first piece.
fn fetch_first(path: PathBuf, length: u64) -> Fetching {
    on_thread(move || {
        let broken = |source| BrokenCast::Read { line: 0, source };
        let file = File::open(&path).map_err(broken)?;
        let size = file.metadata().map_or(0, |file| file.len());
        let recording = Recording::read(BufReader::new(file.take(length)))?;
        // The first two events have to be looked at together.
        fetch(recording, size, 2)
    })
}

fn fetch_more(recording: Opened, size: u64) -> Fetching {
    on_thread(move || fetch(recording, size, 0))
}

/// Reads a piece, with so many events at least.
fn fetch(mut recording: Opened, size: u64, at_least: usize) -> Result<Fetched, BrokenCast> {
    let enough = recording.position() + AT_A_TIME;
    let (mut events, mut is_last) = (Vec::new(), false);
    while events.len() < at_least || recording.position() < enough {
        match recording.next().transpose()? {
            Some(event) => events.push((event, recording.position())),
            None => {
                is_last = true;
                break;
            }
        }
    }
    Ok(Fetched {
        recording,
        size,
        events,
        is_last,
    })
}

fn on_thread(work: impl FnOnce() -> Result<Fetched, BrokenCast> + Send + 'static) -> Fetching {
    Box::pin(async move {
        let done = blocking::run(work).await;
        done.unwrap_or_else(|source| Err(BrokenCast::Read { line: 0, source }))
    })
}

/// A recording on its way into a terminal.
struct RecordingReplay {
    terminal: Terminal,
    observer: Observer,
    /// The byte from which on frames are read; `None` where nobody wants to know.
    closely: Option<u64>,
    /// Whether what the observer says does not hang on what was not read.
    is_known: bool,
    /// Whether any frame was read.
    has_read: bool,
}

impl RecordingReplay {
    fn new(header: &Header, closely: Option<u64>) -> RecordingReplay {
        RecordingReplay {
            terminal: Terminal::new(header.cols, header.rows),
            observer: Observer::new(),
            closely,
            is_known: closely.is_none_or(|from| from == 0),
            has_read: false,
        }
    }

    fn take(&mut self, event: &CastEvent, position: u64) {
        let reads = self.closely.is_some_and(|from| position >= from);
        match &event.what {
            CastKind::Output(text) if !reads => self.terminal.skim(event.at, text.as_bytes()),
            CastKind::Output(text) => {
                let frames = self.terminal.feed(event.at, text.as_bytes());
                self.see(&frames);
            }
            CastKind::Resize { cols, rows } => {
                let frames = self.terminal.resize(event.at, *cols, *rows);
                self.see(if reads { &frames } else { &[] });
            }
            marker if marker.begins_a_run() => {
                let (cols, rows) = self.terminal.size();
                self.terminal = Terminal::new(cols, rows);
                self.observer = Observer::new();
                self.is_known |= reads;
            }
            _ => {}
        }
    }

    fn see(&mut self, frames: &[Frame]) {
        for frame in frames {
            self.has_read = true;
            self.observer.wait(frame.at);
            self.is_known |= self.observer.see(frame).stands_alone();
        }
    }
}
