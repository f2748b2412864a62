//! A recording, read as the live slot would read it.

use super::{Dialog, Observer, State};
use crate::core::cast::{BrokenCast, CastEvent, CastKind, Recording};
use crate::core::terminal::{At, FRAME_TIMEOUT, Frame, Terminal};
use serde::Serialize;
use std::collections::VecDeque;
use std::io::BufRead;
use std::time::Duration;

/// A line of `replay`: from recorded second `t` on, this is the state. That is when the last byte of it was drawn;
/// the live slot has waited a little longer to know that it was the last.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateChange {
    pub t: f64,
    pub state: State,
    pub dialog: Option<Dialog>,
}

/// How long the last screen of a recording is taken to have stood.
pub const LAST_STANDS: Duration = Duration::from_secs(1);

/// Goes through a recording and gives a line at each change.
pub fn replay<R: BufRead>(
    recording: Recording<R>,
) -> impl Iterator<Item = Result<StateChange, BrokenCast>> {
    let header = recording.header();
    Replay {
        terminal: Terminal::new(header.cols, header.rows),
        recording,
        observer: Observer::new(),
        told: None,
        waiting: VecDeque::new(),
        last: At::ZERO,
        over: false,
        broken: None,
    }
}

struct Replay<R> {
    recording: Recording<R>,
    terminal: Terminal,
    observer: Observer,
    /// The line that was given last.
    told: Option<StateChange>,
    /// Lines of one event, which are given one by one.
    waiting: VecDeque<StateChange>,
    last: At,
    over: bool,
    /// Why it ends early.
    broken: Option<BrokenCast>,
}

impl<R: BufRead> Iterator for Replay<R> {
    type Item = Result<StateChange, BrokenCast>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(change) = self.waiting.pop_front() {
                return Some(Ok(change));
            }
            if self.over {
                return self.broken.take().map(Err);
            }
            match self.recording.next() {
                Some(Ok(event)) => self.take(event),
                Some(Err(broken)) => {
                    // What came before it is told first.
                    self.broken = Some(broken);
                    self.finish();
                }
                None => self.finish(),
            }
        }
    }
}

impl<R> Replay<R> {
    fn take(&mut self, event: CastEvent) {
        self.last = self.last.max(event.at);
        let frames = match event.what {
            CastKind::Output(text) => self.terminal.feed(event.at, text.as_bytes()),
            CastKind::Resize { cols, rows } => self.terminal.resize(event.at, cols, rows),
            ref marker if marker.begins_a_run() => self.begin(event.at),
            CastKind::Marker(_) => self.terminal.quiet(event.at),
            CastKind::Exit => self.exit(event.at),
        };
        self.see(frames);
        self.wait(event.at);
    }

    /// The last screen stands: enough time passes for it to be read, and no more.
    fn finish(&mut self) {
        self.over = true;
        let frames = self.terminal.quiet(self.last.saturating_add(FRAME_TIMEOUT));
        self.see(frames);
        self.wait(self.last.saturating_add(LAST_STANDS));
    }

    /// Another program has the terminal: what the one before it left there is not its own.
    fn begin(&mut self, at: At) -> Vec<Frame> {
        let frames = self.terminal.quiet(at);
        self.see(frames);
        let (cols, rows) = self.terminal.size();
        self.terminal = Terminal::new(cols, rows);
        self.observer = Observer::new();
        if self.told.is_some() {
            self.tell(at);
        }
        Vec::new()
    }

    fn exit(&mut self, at: At) -> Vec<Frame> {
        let frames = self.terminal.quiet(at);
        self.see(frames);
        self.observer.exited();
        self.tell(at);
        Vec::new()
    }

    fn see(&mut self, frames: Vec<Frame>) {
        for frame in frames {
            self.wait(frame.at);
            self.observer.see(&frame);
            self.tell(frame.drawn);
        }
    }

    fn wait(&mut self, at: At) {
        if let Some(since) = self.observer.wait(at) {
            self.tell(since);
        }
    }

    fn tell(&mut self, at: At) {
        let observed = self.observer.observed();
        let same =
            |told: &StateChange| told.state == observed.state && told.dialog == observed.dialog;
        if !self.told.as_ref().is_some_and(same) {
            // What was drawn just before an unknown screen was given up comes after it.
            let before = self.told.as_ref().map_or(0.0, |told| told.t);
            let change = StateChange {
                t: at.as_secs_f64().max(before),
                state: observed.state,
                dialog: observed.dialog.clone(),
            };
            self.told = Some(change.clone());
            self.waiting.push_back(change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The screen of the run before stands in the recording, and the new title alone would make it look idle.
    #[test]
    fn each_run_begins_with_nothing_on_its_screen() {
        let recording = [
            r#"{"version": 2, "width": 80, "height": 24}"#,
            r#"[0.0, "m", "start 7"]"#,
            r#"[0.1, "o", "words of the first run"]"#,
            r#"[1.0, "m", "exit 0"]"#,
            r#"[2.0, "m", "start 8"]"#,
            r#"[2.5, "o", "\u001b]0;\u2733 Claude Code\u0007"]"#,
        ]
        .join("\n");
        let recording = Recording::read(recording.as_bytes()).unwrap();
        let told: Vec<(f64, State)> = replay(recording)
            .map(Result::unwrap)
            .map(|change| (change.t, change.state))
            .collect();
        let last = &told[told.len() - 2..];
        assert_eq!(last, [(1.0, State::Exited), (2.0, State::Starting)]);
    }
}
