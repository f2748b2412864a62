//! When a reading is due: at the end of a marked frame, else after a silence, all in recorded time.

use super::{At, FRAME_SILENCE, FRAME_TIMEOUT};
use std::time::Duration;

/// How soon after a reading the next one is taken. Claude Code draws 60 frames a second at most; what comes closer together
/// is a burst, in which nobody could press a key for what one of its frames shows. The first frame of a burst is read at
/// once, the others when this is over, or in the silence behind them.
const BURST: Duration = Duration::from_millis(5);

#[derive(Debug, Default)]
pub(super) struct Frames {
    /// When output last came.
    last: At,
    /// When the open marked frame began.
    open: Option<At>,
    /// Something was drawn that has not been read.
    unread: bool,
    /// What has not been read ends with a marked frame, and is whole.
    is_whole: bool,
    /// When the next marked frame may be read.
    next: At,
}

impl Frames {
    /// The moment at which a reading was due before recorded time `now`, at most once.
    pub(super) fn due_before(&mut self, now: At) -> Option<At> {
        let due = self.due()?;
        if now < due {
            return None;
        }
        self.open = None;
        self.has_read(due);
        Some(due)
    }

    fn has_read(&mut self, at: At) {
        self.unread = false;
        self.is_whole = false;
        self.next = at.saturating_add(BURST);
    }

    pub(super) fn last_change(&self) -> At {
        self.last
    }

    pub(super) fn is_open(&self) -> bool {
        self.due().is_some()
    }

    fn due(&self) -> Option<At> {
        let silence_over = self.last.saturating_add(FRAME_SILENCE);
        match self.open {
            Some(began) => Some(silence_over.max(began.saturating_add(FRAME_TIMEOUT))),
            None if self.is_whole => Some(self.next),
            None => self.unread.then_some(silence_over),
        }
    }

    /// Output comes at `at`; returns the time it counts for, as recorded time never runs back.
    pub(super) fn output(&mut self, at: At) -> At {
        self.last = self.last.max(at);
        self.last
    }

    pub(super) fn drawn(&mut self) {
        self.unread = true;
        self.is_whole = false;
    }

    pub(super) fn begin(&mut self) {
        self.open = Some(self.last);
    }

    /// A marked frame ends: whether it is to be read now.
    pub(super) fn end(&mut self) -> bool {
        self.open = None;
        self.is_whole = self.unread;
        let reads = self.unread && self.last >= self.next;
        if reads {
            self.has_read(self.last);
        }
        reads
    }
}
