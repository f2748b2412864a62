//! The bound on a recording while no daemon rotates it.

use super::Shim;
use crate::os::log_file::Cap;

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

    /// A failed rotation is tried again after as many bytes again.
    pub fn moved(&mut self, is_rotated: bool, length: u64) {
        let again_at = self.cap.map_or(0, |cap| length + cap.bytes);
        self.again_at = if is_rotated { 0 } else { again_at };
    }
}

impl Shim {
    /// Rotates a recording that has reached its size, as a daemon would: the new file begins with the screen.
    pub(super) fn bound_recording(&mut self) {
        let Some(cap) = self.bound.cap.filter(|_| self.peer.is_none()) else {
            return;
        };
        let is_long = self.recorder.length() >= self.bound.again_at.max(cap.bytes);
        if is_long && !self.text.is_holding() && !self.recorder.moves() {
            self.recorder.bound(cap, (self.pty.cols, self.pty.rows));
            self.follow_recording();
        }
    }
}
