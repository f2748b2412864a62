//! The screen of a program, from its recording.

use super::Slot;
use super::session::CLEARED;
use crate::core::cast::{Broken, Event, Header, Recording, What};
use crate::core::claude::reading::Observer;
use crate::core::settings::Kind;
use crate::core::terminal::{Frame, Terminal};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

/// How much of a recording is read frame by frame, at its end: that takes ten times as long as drawing it. The
/// input box is drawn hundreds of times in so much; where it was not, all is read.
const READ_CLOSELY: u64 = 128 << 10;

type Opened = Recording<BufReader<std::io::Take<File>>>;

/// How much of a recording is read in one turn of the slot's task: some 40 ms in a debug build, for the slowest output.
/// Between two turns the task takes commands, and the runtime runs other tasks.
const AT_A_TIME: u64 = 16 << 10;

/// A recording on its way into a slot, read in bounded pieces.
pub(super) struct Reading {
    path: PathBuf,
    length: u64,
    recording: Opened,
    /// The first two events, which had to be looked at together.
    early: std::vec::IntoIter<Event>,
    replay: Replay,
    /// Whether this is the first time through, in which the output is kept.
    is_first: bool,
}

/// What a recording has come to.
pub(super) struct Replayed {
    pub terminal: Terminal,
    pub observer: Observer,
    /// Whether any frame was read.
    pub has_read: bool,
}

impl Slot {
    /// The screen and the output of a program that is long gone.
    pub(super) async fn replay_ended(&mut self) {
        let recording = self.paths.recording.clone();
        match self.replay_whole(&recording).await {
            Ok(replayed) => {
                self.observer = replayed.observer;
                // What it asked its terminal is asked no more.
                drop(self.screen.replayed(replayed.terminal));
            }
            Err(error) => self.warn(&format!("the recording can't be read: {error}")),
        }
    }

    async fn replay_whole(&mut self, path: &Path) -> Result<Replayed, Broken> {
        let mut reading = self.begin_reading(path, u64::MAX)?;
        loop {
            match self.read_piece(reading)? {
                Piece::More(more) => reading = *more,
                Piece::Done(replayed) => return Ok(*replayed),
            }
            tokio::task::yield_now().await;
        }
    }

    /// Opens a recording that is to be fed to a fresh terminal.
    pub(super) fn begin_reading(&mut self, path: &Path, length: u64) -> Result<Reading, Broken> {
        let size = std::fs::metadata(path).map_or(0, |file| file.len());
        let closely = match self.running.kind {
            Kind::Claude => Some(size.min(length).saturating_sub(READ_CLOSELY)),
            Kind::Shell => None,
        };
        let mut recording = open(path, length)?;
        let replay = Replay::new(recording.header(), closely);
        let first = recording.next().transpose()?;
        let second = recording.next().transpose()?;
        if let (Some(first), Some(second)) = (&first, &second)
            && second.is_continuation()
        {
            // After a rotation the screen is drawn again, which the program did not do.
            self.screen.pass_over(first.at);
        }
        let early: Vec<Event> = first.into_iter().chain(second).collect();
        Ok(Reading {
            path: path.to_owned(),
            length,
            recording,
            early: early.into_iter(),
            replay,
            is_first: true,
        })
    }

    /// Reads on, for one turn of the task. The output is kept, and shown to those who are attached.
    pub(super) fn read_piece(&mut self, mut reading: Reading) -> Result<Piece, Broken> {
        let enough = reading.recording.position() + AT_A_TIME;
        while reading.recording.position() < enough {
            let Some(event) = reading.next_event()? else {
                return reading.finish();
            };
            reading.replay.take(&event, reading.recording.position());
            if !reading.is_first {
                continue;
            }
            self.keep_event(&event, &reading.replay.terminal);
        }
        Ok(Piece::More(Box::new(reading)))
    }

    fn keep_event(&mut self, event: &Event, drawn: &Terminal) {
        match &event.what {
            What::Output(text) => {
                let bytes = event.written();
                let taken = self.screen.replay(event.at, text.as_bytes(), bytes, drawn);
                self.has_kept(bytes, &taken);
            }
            What::Marker(text) if text == CLEARED => self.screen.clear_output(),
            marker if marker.begins_a_run() => self.screen.begin_run(event.at),
            _ => {}
        }
    }
}

/// What a turn has come to.
pub(super) enum Piece {
    More(Box<Reading>),
    Done(Box<Replayed>),
}

impl Reading {
    fn next_event(&mut self) -> Result<Option<Event>, Broken> {
        match self.early.next() {
            Some(event) => Ok(Some(event)),
            None => self.recording.next().transpose(),
        }
    }

    /// What was read so far, for a slot that is being stopped. Nothing is to follow from what it shows.
    pub(super) fn cut_short(self) -> Replayed {
        Replayed {
            terminal: self.replay.terminal,
            observer: self.replay.observer,
            has_read: false,
        }
    }

    /// All was read. Where what the observer says hangs on what was only drawn, all is read again, frame by frame.
    fn finish(mut self) -> Result<Piece, Broken> {
        if self.replay.is_known {
            let Replay {
                terminal,
                observer,
                has_read,
                ..
            } = self.replay;
            return Ok(Piece::Done(Box::new(Replayed {
                terminal,
                observer,
                has_read,
            })));
        }
        self.recording = open(&self.path, self.length)?;
        self.replay = Replay::new(self.recording.header(), Some(0));
        self.is_first = false;
        Ok(Piece::More(Box::new(self)))
    }
}

fn open(path: &Path, length: u64) -> Result<Opened, Broken> {
    let file = File::open(path).map_err(|source| Broken::Read { line: 0, source })?;
    Recording::read(BufReader::new(file.take(length)))
}

/// A recording on its way into a terminal.
struct Replay {
    terminal: Terminal,
    observer: Observer,
    /// The byte from which on frames are read; `None` where nobody wants to know.
    closely: Option<u64>,
    /// Whether what the observer says does not hang on what was not read.
    is_known: bool,
    /// Whether any frame was read.
    has_read: bool,
}

impl Replay {
    fn new(header: &Header, closely: Option<u64>) -> Replay {
        Replay {
            terminal: Terminal::new(header.cols, header.rows),
            observer: Observer::new(),
            closely,
            is_known: closely.is_none_or(|from| from == 0),
            has_read: false,
        }
    }

    fn take(&mut self, event: &Event, position: u64) {
        let reads = self.closely.is_some_and(|from| position >= from);
        match &event.what {
            What::Output(text) if !reads => self.terminal.skim(event.at, text.as_bytes()),
            What::Output(text) => {
                let frames = self.terminal.feed(event.at, text.as_bytes());
                self.see(&frames);
            }
            What::Resize { cols, rows } => {
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
