//! A question with several choices: each row is ticked, then all are submitted, and the review page is confirmed.

use super::up::{Choosing, Hands, Steps};
use super::*;
use crate::core::claude::keys::{self, Pick};

/// The choice on the review page that sends the answers.
pub const SUBMIT: &str = "Submit answers";

/// The text of the review page if a question was left out: then a person must look again.
const LEFT_OUT: &str = "not answered all";

/// The labels of the picked options. The button at the end of a list is left out.
pub(super) fn labels_of(picks: &[Pick], dialog: &Dialog) -> String {
    let said = if picks.len() > 1 {
        &picks[..picks.len() - 1]
    } else {
        picks
    };
    let labels: Vec<&str> = said.iter().map(|pick| pick.label(dialog)).collect();
    labels.join(", ")
}

impl Choosing {
    /// Continues with the next pick when the screen shows that the current one is done.
    pub(super) fn go_on(&mut self, dialog: &Dialog, now: Instant) {
        while self.pick.is_done(dialog) {
            let Some(next) = self.then.pop_front() else {
                break;
            };
            self.pick = next;
            self.steps = Steps::none(now + KEY_WORKS);
        }
    }

    /// Whether a view is being left of which a part may stay visible after the key: a list of settings behind its search.
    pub(super) fn leaves_view(&self) -> bool {
        self.asked.kind == DialogKind::Other && self.pick == Pick::Esc
    }

    /// Whether nothing is left to do in this dialog.
    pub(super) fn is_done(&self, dialog: &Dialog) -> bool {
        self.then.is_empty() && self.pick.is_done(dialog)
    }
}

impl Machine {
    /// The row is ticked; the question is still up.
    pub(super) fn ticked(&mut self, choosing: Choosing) {
        self.done(choosing.asker, choosing.asked.id, choosing.label);
    }

    /// The review page, if several answers were given together.
    pub(super) fn review_after(&self, choosing: &Choosing) -> Option<Dialog> {
        let dialog = self.dialog().filter(|_| choosing.submits)?;
        let asks = dialog.options.iter().any(|choice| choice.label == SUBMIT);
        let whole = dialog.complete && !dialog.text.contains(LEFT_OUT);
        (dialog.kind == DialogKind::Question && asks && whole).then(|| dialog.clone())
    }

    pub(super) fn submit_review(&mut self, choosing: Choosing, review: &Dialog) {
        let Ok(pick) = keys::pick(review, SUBMIT) else {
            return self.ticked(choosing);
        };
        let Some(up) = self.up_mut() else { return };
        up.asks.answered = Some(review.id.clone());
        up.hands = Hands::Choosing(Choosing {
            asked: Box::new(review.clone()),
            pick,
            submits: false,
            steps: Steps::none(choosing.steps.until + KEY_WORKS),
            ..choosing
        });
    }
}
