//! The answer while it comes, told to those who listen: as a hook says it, else as the screen shows it.

use super::Slot;
use crate::core::claude::HookWhat;
use crate::core::claude::reading::{self, State, Stream};
use crate::core::model::What;

/// What of the answer was told.
#[derive(Debug, Default)]
pub(super) struct SoFar {
    /// Claude Code tells the lines itself: nothing is taken from the screen.
    by_hook: bool,
    stream: Stream,
}

impl Slot {
    pub(super) fn tell_displayed(&mut self, what: &HookWhat) {
        if let HookWhat::Displayed { text, .. } = what {
            self.so_far.by_hook = true;
            self.tell_text(text.clone(), "hook");
        }
    }

    /// After each frame.
    pub(super) fn follow_text(&mut self) {
        if self.so_far.by_hook {
            return;
        }
        if self.observer.observed().state != State::Responding {
            self.so_far.stream = Stream::default();
            return;
        }
        let rows = reading::being_written(&self.screen.terminal().screen()).unwrap_or_default();
        if let Some(text) = self.so_far.stream.grow(rows) {
            self.tell_text(text, "screen");
        }
    }

    fn tell_text(&mut self, text: String, source: &str) {
        if !text.is_empty() {
            let source = source.to_owned();
            self.tell(What::Text { text, source });
        }
    }
}
