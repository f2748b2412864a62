//! When a reading is due: at the end of a marked frame, else after a silence, all in recorded time.

use super::{At, FRAME_SILENCE, FRAME_TIMEOUT};

/// Marked frames that are read at one and the same recorded instant. A real program draws one or two;
/// more are put off to the next silence, since each costs the making of a screen.
const MAX_FRAMES_AT_ONCE: u32 = 16;

#[derive(Debug, Default)]
pub(super) struct Frames {
    /// When output last came.
    last: At,
    /// When the open marked frame began.
    open: Option<At>,
    /// Something was drawn that has not been read.
    unread: bool,
    marked_at_once: u32,
}

impl Frames {
    /// The moment at which a reading was due before recorded time `now`, at most once.
    pub(super) fn due_before(&mut self, now: At) -> Option<At> {
        let due = self.due()?;
        if now < due {
            return None;
        }
        self.open = None;
        self.unread = false;
        Some(due)
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
            None => self.unread.then_some(silence_over),
        }
    }

    /// Output comes at `at`; returns the time it counts for, as recorded time never runs back.
    pub(super) fn output(&mut self, at: At) -> At {
        if at > self.last {
            self.marked_at_once = 0;
            self.last = at;
        }
        self.last
    }

    pub(super) fn drawn(&mut self) {
        self.unread = true;
    }

    pub(super) fn begin(&mut self) {
        self.open = Some(self.last);
    }

    /// A marked frame ends: whether it is to be read now.
    pub(super) fn end(&mut self) -> bool {
        self.open = None;
        if !self.unread || self.marked_at_once >= MAX_FRAMES_AT_ONCE {
            return false;
        }
        self.marked_at_once += 1;
        self.unread = false;
        true
    }
}
