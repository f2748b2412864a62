//! The screen of a program, from its recording.

use super::session::CLEARED;
use super::task::Slot;
use crate::config::Kind;
use crate::reading::Observer;
use crate::recording::{Broken, Event, Header, Recording, What};
use crate::terminal::{Frame, Terminal};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;
use std::time::Instant;

/// How much of a recording is read frame by frame, at its end: that takes ten times as long as drawing it. The
/// input box is drawn hundreds of times in so much; where it was not, all is read.
const READ_CLOSELY: u64 = 128 << 10;

type Opened = Recording<BufReader<std::io::Take<File>>>;

impl Slot {
    /// The screen and the output of a program that is long gone.
    pub(super) fn replay_ended(&mut self) {
        let recording = self.paths.recording.clone();
        if let Err(error) = self.replay_recording(&recording, u64::MAX) {
            self.warn(&format!("the recording can't be read: {error}"));
        }
    }

    /// Feeds the recording to a fresh terminal, and reads what the program is at; whether there was anything to read.
    pub(super) fn replay_recording(&mut self, path: &Path, length: u64) -> Result<bool, Broken> {
        let size = std::fs::metadata(path).map_or(0, |file| file.len());
        let closely = match self.running.kind {
            Kind::Claude => Some(size.min(length).saturating_sub(READ_CLOSELY)),
            Kind::Shell => None,
        };
        let mut replay = self.replay_once(open(path, length)?, closely)?;
        if !replay.is_known {
            replay = Replay::of(open(path, length)?)?;
        }
        (self.terminal, self.observer) = (replay.terminal, replay.observer);
        Ok(replay.has_read)
    }

    /// The output is kept, and shown to those who are attached.
    fn replay_once(
        &mut self,
        mut recording: Opened,
        closely: Option<u64>,
    ) -> Result<Replay, Broken> {
        let mut replay = Replay::new(recording.header(), closely);
        let first = recording.next().transpose()?;
        let second = recording.next().transpose()?;
        if let (Some(first), Some(second)) = (&first, &second)
            && second.is_continuation()
            && !self.output.is_new()
        {
            // After a rotation the screen is drawn again, which the program did not do.
            self.output.pass_over(first.at);
        }
        let mut early = first.into_iter().chain(second);
        while let Some(event) = early.next().map(Ok).or_else(|| recording.next()) {
            let event = event?;
            self.keep_event(&event);
            replay.take(&event, recording.position());
            if let What::Output(text) = &event.what {
                let now = Instant::now();
                self.audience
                    .pass_on(text.as_bytes(), &replay.terminal, now);
            }
        }
        Ok(replay)
    }

    fn keep_event(&mut self, event: &Event) {
        match &event.what {
            What::Output(_) => {
                self.keep_output(event.at, event.written());
            }
            What::Marker(text) if text == CLEARED => self.output.clear(),
            _ => {}
        }
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

    /// All of it, frame by frame.
    fn of(mut recording: Opened) -> Result<Replay, Broken> {
        let mut replay = Replay::new(recording.header(), Some(0));
        while let Some(event) = recording.next().transpose()? {
            replay.take(&event, recording.position());
        }
        Ok(replay)
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
