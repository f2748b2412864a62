//! What a shim does about its recording besides writing it: how the disk does, what waits for it, and the end.

use super::Shim;
use crate::shim::FromShim;
use crate::shim::writer::RecordedEvent;
use std::time::{Duration, Instant};

/// How long a shim that ends waits for its disk. What is not written by then is lost.
const LAST_WRITES: Duration = Duration::from_secs(10);

/// The name in the process table of a shim that has ended, and still writes the end of its recording.
const LEAVING: &str = "missiond-cast";

impl Shim {
    /// Lets everybody know at once that it ends, and then waits a while for the disk. Its name goes first, so that nobody
    /// takes what still writes for the shim of a program.
    pub fn leave(self) {
        let Shim {
            listener,
            peer,
            mut recorder,
            ..
        } = self;
        if !recorder.settle(Duration::ZERO) {
            let _ = std::fs::write("/proc/self/comm", LEAVING);
        }
        drop((listener, peer));
        recorder.settle(LAST_WRITES);
    }

    /// Tells what has become of the recording.
    pub(super) fn follow_recording(&mut self) {
        if self.recorder.look(Instant::now()) {
            self.tell_hanging();
        }
        while let Some(moved) = self.recorder.take_moved() {
            let is_rotated = moved.outcome.is_ok();
            if is_rotated {
                self.checkpoints.forget();
            }
            let at = moved.at;
            match (moved.is_asked, moved.outcome) {
                (true, Ok(())) => self.report(FromShim::Rotated { at }),
                (true, Err(fault)) => self.report(FromShim::NotRotated {
                    reason: fault.to_string(),
                }),
                (false, _) => self.bound.moved(is_rotated, self.recorder.length()),
            }
        }
        self.tell_news();
    }

    pub(super) fn tell_hanging(&mut self) {
        let hangs = self.recorder.hangs();
        self.report(FromShim::RecordingHangs { hangs });
    }

    /// Recorder warnings are queued until a daemon connects.
    pub(super) fn tell_news(&mut self) {
        while self.peer.is_some()
            && let Some(text) = self.recorder.take_news()
        {
            self.report(FromShim::Trouble { text });
        }
    }

    /// What is not on the disk yet reaches a new daemon like news.
    pub(super) fn hand_over(&mut self, event: &RecordedEvent) {
        let at = event.at;
        let size = event.data.split_once('x');
        let size = size.and_then(|(cols, rows)| Some((cols.parse().ok()?, rows.parse().ok()?)));
        match (event.code, size) {
            ('o', _) => {
                let bytes = event.exact.as_deref().unwrap_or(event.data.as_bytes());
                self.tell(|peer| peer.hand_over(at, bytes));
            }
            ('r', Some((cols, rows))) => self.report(FromShim::Resized { at, cols, rows }),
            _ => {}
        }
    }
}
