//! The ids under which one permission dialog or question was read. Painting over a dialog changes its reading and so its id. A no
//! applies to the waiting call, not to what is painted over it.

use super::*;
use std::path::Path;

/// The most ids that are kept; the oldest are dropped.
const MAX_IDS: usize = 64;

/// What was seen of the current permission dialog or question.
#[derive(Debug, Default)]
pub(super) struct Drawings {
    ids: VecDeque<String>,
    /// When the first of them appeared.
    since: Option<Instant>,
    /// The call that they ask about, if Claude Code has named it.
    request: Option<String>,
    /// The last one is not about a call that the gate has seen.
    unknown: bool,
    /// One of them can't be from Claude Code.
    painted: bool,
}

/// The current dialog, and what the gate knows about it.
#[derive(Debug, Clone, Copy)]
struct DrawnDialog<'a> {
    before: Option<&'a Dialog>,
    dialog: Option<&'a Dialog>,
    unknown: bool,
}

impl Drawings {
    fn add(&mut self, drawn: DrawnDialog<'_>, now: Instant) {
        let of_a_call =
            |dialog: &&Dialog| matches!(dialog.kind, DialogKind::Permission | DialogKind::Question);
        let Some(dialog) = drawn.dialog.filter(of_a_call) else {
            *self = Drawings::default();
            return;
        };
        let request = dialog.request.clone().filter(|id| !id.is_empty());
        if !self.goes_on(&drawn, request.as_ref()) {
            *self = Drawings::default();
        }
        if !self.ids.contains(&dialog.id) {
            self.ids.push_back(dialog.id.clone());
        }
        if self.ids.len() > MAX_IDS {
            self.ids.pop_front();
        }
        self.since.get_or_insert(now);
        self.request = request.or(self.request.take());
        self.unknown = drawn.unknown;
        self.painted |= drawn.unknown || !crate::core::claude::keys::in_known_order(dialog);
    }

    /// Whether a dialog is the same as before, whatever it shows. Another call id means another call.
    fn goes_on(&self, drawn: &DrawnDialog<'_>, request: Option<&String>) -> bool {
        let (Some(before), Some(dialog)) = (drawn.before, drawn.dialog) else {
            return false;
        };
        let named = self.request.as_ref().zip(request);
        named.is_none_or(|(one, other)| one == other)
            && (before.id == dialog.id
                || drawn.unknown
                || self.unknown
                || dialog.asks_the_same(before))
    }

    /// Whether the current dialog was read under this id.
    pub fn include(&self, id: &str) -> bool {
        self.ids.iter().any(|seen| seen == id)
    }

    pub fn since(&self) -> Option<Instant> {
        self.since
    }

    pub fn is_painted(&self) -> bool {
        self.painted
    }
}

impl Up {
    pub fn note_drawing(&mut self, dialog: Option<&Dialog>, cwd: &Path, now: Instant) {
        let shown = self.asks.shown.as_ref().filter(|_| self.gate.heard);
        let known = shown.and_then(|shown| self.gate.calls.knows(shown, cwd));
        let drawn = DrawnDialog {
            before: self.sight.as_ref().and_then(|sight| sight.dialog.as_ref()),
            dialog,
            unknown: known == Some(Known::Not),
        };
        self.asks.drawings.add(drawn, now);
    }
}
