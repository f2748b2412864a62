//! The bound on a recording while no daemon rotates it.

use super::Shim;
use crate::core::cast::{BrokenCast, CastKind, Recording};
use crate::core::terminal::Terminal;
use crate::os::files;
use crate::os::log_file::Cap;
use crate::shim::recorder::Recorder;
use std::io::BufReader;

/// How long a recording may become without a daemon.
pub(super) struct RecordingBound {
    cap: Option<Cap>,
    /// The length at which a failed rotation is tried again.
    again_at: u64,
}

impl RecordingBound {
    pub fn new(cap: Option<Cap>) -> RecordingBound {
        let again_at = 0;
        RecordingBound { cap, again_at }
    }
}

impl Shim {
    /// Rotates a recording that has reached its size, as a daemon would: the new file begins with the screen.
    pub(super) fn bound_recording(&mut self) {
        let Some(cap) = self.bound.cap.filter(|_| self.peer.is_none()) else {
            return;
        };
        let length = self.recorder.length();
        if length < self.bound.again_at.max(cap.bytes) || self.text.is_holding() {
            return;
        }
        // If this fails, the oldest file is overwritten, which keeps the total.
        let _ = files::make_room(self.recorder.path(), cap.files);
        let to = files::rotated(self.recorder.path(), 1);
        let size = (self.pty.cols, self.pty.rows);
        let snapshot = snapshot_of(&self.recorder).unwrap_or_default();
        let rotated = self.recorder.rotate(&to, size, &snapshot);
        if rotated.is_ok() {
            self.checkpoints.forget();
        }
        // A failed rotation is tried again after as many bytes again.
        self.bound.again_at = rotated.map_or(length + cap.bytes, |_| 0);
    }
}

/// The bytes that draw the last screen of a recording.
fn snapshot_of(recorder: &Recorder) -> Result<String, BrokenCast> {
    let reader = recorder
        .reader()
        .map_err(|source| BrokenCast::Read { line: 0, source })?;
    let recording = Recording::read(BufReader::new(reader))?;
    let mut terminal = Terminal::new(recording.header().cols, recording.header().rows);
    for event in recording {
        let event = event?;
        match &event.what {
            CastKind::Output(text) => terminal.skim(event.at, text.as_bytes()),
            CastKind::Resize { cols, rows } => drop(terminal.resize(event.at, *cols, *rows)),
            marker if marker.begins_a_run() => {
                let (cols, rows) = terminal.size();
                terminal = Terminal::new(cols, rows);
            }
            _ => {}
        }
    }
    Ok(String::from_utf8_lossy(&terminal.snapshot()).into_owned())
}
