//! The answer while it comes, told to those who listen: as a hook says it, else as the screen shows it.

use super::Slot;
use super::claude::Claude;
use crate::core::claude::HookWhat;
use crate::core::claude::reading::{self, State, Stream};
use crate::core::model::EventKind;
use crate::core::terminal::Terminal;

/// What of the answer was told.
#[derive(Debug, Default)]
pub(super) struct SoFar {
    /// Claude Code tells the lines itself: nothing is taken from the screen.
    by_hook: bool,
    stream: Stream,
}

impl SoFar {
    /// A hook tells the lines.
    pub fn comes_by_hook(&mut self) {
        self.by_hook = true;
    }

    /// What is new of the answer, by the screen.
    pub fn follow(&mut self, state: State, terminal: &Terminal) -> Option<String> {
        if self.by_hook {
            return None;
        }
        if state != State::Responding {
            self.stream = Stream::default();
            return None;
        }
        let rows = reading::being_written(&terminal.screen()).unwrap_or_default();
        self.stream.grow(rows)
    }
}

impl Slot<Claude> {
    pub(super) fn tell_displayed(&mut self, what: &HookWhat) {
        if let HookWhat::Displayed { text, .. } = what {
            self.own.so_far().comes_by_hook();
            self.tell_text(text.clone(), "hook");
        }
    }

    /// After each frame.
    pub(super) fn follow_text(&mut self) {
        let state = self.own.observed().state;
        let text = self.own.so_far().follow(state, self.screen.terminal());
        if let Some(text) = text {
            self.tell_text(text, "screen");
        }
    }

    fn tell_text(&mut self, text: String, source: &str) {
        if !text.is_empty() {
            let source = source.to_owned();
            self.tell(EventKind::Text { text, source });
        }
    }
}
