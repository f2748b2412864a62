//! The screen of a program, from its recording.

use super::Slot;
use super::kind::ProgramKind;
use super::requests::CLEARED;
use crate::core::cast::{BrokenCast, CastEvent, CastKind, Header, Recording};
use crate::core::claude::reading::Observer;
use crate::core::terminal::{At, Frame, Terminal};
use crate::os::blocking;
use crate::os::files;
use crate::shim::{Checkpoint, KeptScreen};
use std::collections::VecDeque;
use std::fs::File;
use std::future::Future;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::pin::Pin;

/// How much of a recording is read frame by frame, at its end: that takes ten times as long as drawing it. The
/// input box is drawn hundreds of times in so much; where it was not, all is read.
const READ_CLOSELY: u64 = 128 << 10;

type Opened = Recording<BufReader<std::io::Take<File>>>;

/// How much of a recording is read in one turn of the slot's task: some 40 ms in a debug build, for the slowest output.
/// Between two turns the task takes commands, and the runtime runs other tasks.
const AT_A_TIME: u64 = 16 << 10;

/// The same of an older recording, of which nothing is drawn.
const UNDRAWN_AT_A_TIME: u64 = 256 << 10;

/// Bytes of a recording for a byte of output, at most: control characters have six, and an event has its time.
const MOST_PER_BYTE: u64 = 8;

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
    /// The screen behind which the reading begins, the first time.
    checkpoint: Option<Checkpoint>,
    /// The older recordings that are read before this one for their output alone, oldest first; the first is being read.
    earlier: VecDeque<PathBuf>,
}

type Fetching = Pin<Box<dyn Future<Output = Result<Fetched, BrokenCast>> + Send>>;

/// A piece that was read.
pub(super) struct Fetched {
    recording: Opened,
    size: u64,
    /// Each event, and the position in the file behind it.
    events: Vec<(CastEvent, u64)>,
    is_last: bool,
    /// With the first piece: the older recordings, of which this is the first.
    earlier: VecDeque<PathBuf>,
}

impl Fetched {
    /// When the screen was drawn with which a recording begins after a rotation; the program did not write that.
    fn drawn_again(&self) -> Option<At> {
        match &self.events[..] {
            [(first, _), (second, _), ..] if second.is_continuation() => Some(first.at),
            _ => None,
        }
    }
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
        let reading = RecordingReader::new(path, u64::MAX, K::READS_SCREEN);
        let mut reading = self.with_earlier_output(reading);
        loop {
            let fetched = reading.fetched().await?;
            match self.draw_piece(reading, fetched) {
                ReplayPiece::More(more) => reading = *more,
                ReplayPiece::Done(replayed) => return Ok(*replayed),
            }
        }
    }

    /// A program whose output is all kept has some of it in older recordings too, if nothing is known of it yet.
    pub(super) fn with_earlier_output(&self, reading: RecordingReader) -> RecordingReader {
        let output = self.screen.output();
        match output.is_new() && !K::READS_SCREEN {
            true => reading.with_earlier(output.room()),
            false => reading,
        }
    }

    /// Draws a piece. The output is kept, and shown to those who are attached.
    pub(super) fn draw_piece(
        &mut self,
        mut reading: RecordingReader,
        mut fetched: Fetched,
    ) -> ReplayPiece {
        reading.earlier.append(&mut fetched.earlier);
        if !reading.earlier.is_empty() {
            self.keep_earlier(&fetched);
            return reading.read_next(fetched);
        }
        let mut replay = match reading.replay.take() {
            Some(replay) => replay,
            None => {
                if reading.checkpoint.is_none()
                    && let Some(at) = fetched.drawn_again()
                {
                    self.screen.pass_over(at);
                }
                reading.begin(&fetched)
            }
        };
        let drawn = replay.drawn;
        let news = fetched
            .events
            .iter()
            .filter(|(event, _)| drawn.is_none_or(|drawn| event.at > drawn));
        for (event, position) in news {
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
            _ => self.keep_marker(event),
        }
    }

    /// A piece of an older recording: its output is kept, and nothing is drawn.
    fn keep_earlier(&mut self, fetched: &Fetched) {
        if let Some(at) = fetched.drawn_again() {
            self.screen.pass_over(at);
        }
        for (event, _) in &fetched.events {
            match &event.what {
                CastKind::Output(_) => {
                    let bytes = event.written();
                    let taken = self.screen.keep_earlier(event.at, bytes);
                    self.note_kept(bytes, &taken);
                }
                _ => self.keep_marker(event),
            }
        }
    }

    fn keep_marker(&mut self, event: &CastEvent) {
        match &event.what {
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
            fetching: fetch_first(path.to_owned(), length, 0),
            replay: None,
            is_first: true,
            checkpoint: None,
            earlier: VecDeque::new(),
        }
    }

    /// The same, with the output of the recordings before it, if so many bytes may be kept.
    fn with_earlier(self, room: u64) -> RecordingReader {
        let (path, length) = (self.path.clone(), self.length);
        let fetching = on_thread(move || {
            let earlier = earlier_recordings(&path, room);
            let Some(oldest) = earlier.front() else {
                return open_at(&path, length, 0);
            };
            let fetched = open_earlier(oldest)?;
            Ok(Fetched { earlier, ..fetched })
        });
        RecordingReader { fetching, ..self }
    }

    /// Reads on in an older recording, or in the one that follows.
    fn read_next(mut self, fetched: Fetched) -> ReplayPiece {
        if !fetched.is_last {
            let Fetched {
                recording, size, ..
            } = fetched;
            self.fetching = on_thread(move || Ok(fetch_readable(recording, size, 0)));
            return ReplayPiece::More(Box::new(self));
        }
        self.earlier.pop_front();
        self.fetching = match self.earlier.front().cloned() {
            Some(next) => on_thread(move || open_earlier(&next)),
            None => fetch_first(self.path.clone(), self.length, 0),
        };
        ReplayPiece::More(Box::new(self))
    }

    /// The same, of which only what came behind this screen is read.
    pub(super) fn behind(self, checkpoint: Option<Checkpoint>) -> RecordingReader {
        match &checkpoint {
            Some(kept) => RecordingReader {
                fetching: fetch_first(self.path.clone(), self.length, kept.from),
                checkpoint,
                ..self
            },
            None => self,
        }
    }

    /// The next piece. Whoever stops waiting for it can go on later.
    pub(super) async fn fetched(&mut self) -> Result<Fetched, BrokenCast> {
        (&mut self.fetching).await
    }

    fn begin(&mut self, fetched: &Fetched) -> RecordingReplay {
        let end = fetched.size.min(self.length);
        let closely = match (self.is_read, self.is_first) {
            (false, _) => None,
            (true, true) => Some(end.saturating_sub(READ_CLOSELY)),
            (true, false) => Some(0),
        };
        match self.checkpoint.take() {
            Some(kept) => RecordingReplay::behind(&kept.screen, closely),
            None => RecordingReplay::new(fetched.recording.header(), closely),
        }
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
                self.fetching = fetch_first(self.path.clone(), self.length, 0);
                self.is_first = false;
            }
        }
        ReplayPiece::More(Box::new(self))
    }
}

/// Opens a recording and reads the first piece at or behind byte `from`, where a line begins; 0 is the beginning.
fn fetch_first(path: PathBuf, length: u64, from: u64) -> Fetching {
    on_thread(move || open_at(&path, length, from))
}

fn open_at(path: &Path, length: u64, from: u64) -> Result<Fetched, BrokenCast> {
    let broken = |source| BrokenCast::Read { line: 0, source };
    let file = files::open(path).map_err(broken)?;
    let size = file.metadata().map_or(0, |file| file.len());
    let mut behind = file.try_clone().map_err(broken)?;
    let mut recording = Recording::read(BufReader::new(file.take(length)))?;
    if from > 0 {
        behind.seek(SeekFrom::Start(from)).map_err(broken)?;
        let rest = behind.take(length.saturating_sub(from));
        recording = recording.go_on_at(BufReader::new(rest), from);
    }
    // The first two events have to be looked at together.
    fetch(recording, size, 2)
}

/// An older recording, as far as it can be read: the newest one must not be lost with it.
fn open_earlier(path: &Path) -> Result<Fetched, BrokenCast> {
    let file = files::open(path).map_err(|source| BrokenCast::Read { line: 0, source })?;
    let recording = Recording::read(BufReader::new(file.take(u64::MAX)))?;
    Ok(fetch_readable(recording, 0, 2))
}

/// The recordings that were rotated away before the one at `path`, oldest first: those of its own chain, and no more of them
/// than may hold `room` bytes of output.
fn earlier_recordings(path: &Path, room: u64) -> VecDeque<PathBuf> {
    let (mut found, mut bytes) = (VecDeque::new(), 0);
    let mut newer = path.to_owned();
    while bytes < room.saturating_mul(MOST_PER_BYTE) {
        let is_continued = open_at(&newer, u64::MAX, 0).is_ok_and(|it| it.drawn_again().is_some());
        let older = files::rotated(path, found.len() + 1);
        match open_earlier(&older) {
            Ok(_) if is_continued => {}
            _ => break,
        }
        bytes += std::fs::metadata(&older).map_or(0, |file| file.len());
        found.push_front(older.clone());
        newer = older;
    }
    found
}

fn fetch_more(recording: Opened, size: u64) -> Fetching {
    on_thread(move || fetch(recording, size, 0))
}

/// Reads a piece, with so many events at least.
fn fetch(recording: Opened, size: u64, at_least: usize) -> Result<Fetched, BrokenCast> {
    let (fetched, broken) = read_piece(recording, size, at_least, AT_A_TIME);
    broken.map_or(Ok(fetched), Err)
}

/// The same of an older recording, as far as it can be read.
fn fetch_readable(recording: Opened, size: u64, at_least: usize) -> Fetched {
    read_piece(recording, size, at_least, UNDRAWN_AT_A_TIME).0
}

fn read_piece(
    mut recording: Opened,
    size: u64,
    at_least: usize,
    most: u64,
) -> (Fetched, Option<BrokenCast>) {
    let enough = recording.position() + most;
    let (mut events, mut is_last, mut broken) = (Vec::new(), false, None);
    while !is_last && (events.len() < at_least || recording.position() < enough) {
        match recording.next().transpose() {
            Ok(Some(event)) => events.push((event, recording.position())),
            Ok(None) => is_last = true,
            Err(error) => (is_last, broken) = (true, Some(error)),
        }
    }
    let fetched = Fetched {
        recording,
        size,
        events,
        is_last,
        earlier: VecDeque::new(),
    };
    (fetched, broken)
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
    /// Everything up to then is drawn already.
    drawn: Option<At>,
}

impl RecordingReplay {
    /// Goes on from a screen that an earlier daemon has drawn.
    fn behind(kept: &KeptScreen, closely: Option<u64>) -> RecordingReplay {
        let mut terminal = Terminal::new(kept.cols.into(), kept.rows.into());
        terminal.skim(kept.seen, kept.screen.as_bytes());
        RecordingReplay {
            terminal,
            observer: Observer::new(),
            closely,
            is_known: closely.is_none(),
            has_read: false,
            drawn: Some(kept.seen),
        }
    }

    fn new(header: &Header, closely: Option<u64>) -> RecordingReplay {
        RecordingReplay {
            terminal: Terminal::new(header.cols, header.rows),
            observer: Observer::new(),
            closely,
            is_known: closely.is_none_or(|from| from == 0),
            has_read: false,
            drawn: None,
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
