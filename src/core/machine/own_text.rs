//! Text that missiond itself has typed and that is still in the input box. missiond may clear it, and never treats it as somebody
//! else's, however slowly the program draws.

use super::up::{Hands, Up};
use super::*;
use crate::core::claude::keys;
use crate::core::model::Trace;
use serde::{Deserialize, Serialize};

/// The last message that this daemon or a dead one has typed. It may be in the input box: Enter was withheld, or an interrupt has
/// put it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnText {
    text: String,
    /// The earlier paste that never appeared: a slow program may show both together.
    before: Option<String>,
    /// Whether it was seen in the input box.
    seen: bool,
    /// Ctrl-C was pressed to clear it. A second one would end the program.
    cleared: bool,
    /// An earlier daemon has typed it, and its message is not typed again.
    #[serde(skip)]
    recalled: bool,
}

impl OwnText {
    /// A message that is pasted now, and the one that was typed before it.
    pub fn pasted(text: &str, last: Option<OwnText>) -> OwnText {
        let unseen = last.filter(|last| !last.seen && !last.cleared);
        let before = unseen.map(|last| last.before.unwrap_or_default() + &last.text);
        OwnText {
            before: before.filter(|before| before.len() <= keys::MAX_MESSAGE),
            ..OwnText::unseen(text.to_owned())
        }
    }

    fn unseen(text: String) -> OwnText {
        OwnText {
            text,
            before: None,
            seen: false,
            cleared: false,
            recalled: false,
        }
    }

    /// Marks it as typed by an earlier daemon.
    pub(super) fn recalled(self) -> OwnText {
        OwnText {
            recalled: true,
            ..self
        }
    }

    /// The paste never reached the program: the input box has the earlier paste, if there was one.
    pub fn never_pasted(self) -> Option<OwnText> {
        self.before.map(OwnText::unseen)
    }

    /// The Ctrl-C never reached the program.
    pub fn never_cleared(self) -> OwnText {
        OwnText {
            cleared: false,
            ..self
        }
    }

    /// Whether an earlier daemon has typed exactly this message. It is in the input box, or the program has not shown it yet.
    fn is_begun(&self, message: &Message, composer: &Composer) -> bool {
        let is_it = self.recalled && !self.cleared && self.before.is_none();
        let shown = shows(composer, &message.text);
        is_it && self.text == message.text && (shown || composer.draft.is_empty() && !self.seen)
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_seen(&mut self) {
        self.seen = true;
    }

    pub fn is_cleared(&self) -> bool {
        self.cleared
    }

    fn stands_in(&self, composer: &Composer) -> bool {
        let with_before = |before: &String| {
            shows(composer, before) || shows(composer, &format!("{before}{}", self.text))
        };
        shows(composer, &self.text) || self.before.as_ref().is_some_and(with_before)
    }
}

pub(super) fn shows(composer: &Composer, text: &str) -> bool {
    !composer.draft.is_empty() && composer.holds(text)
}

impl Up {
    /// missiond's own text in the input box, if there is one.
    pub fn own_draft(&self, composer: &Composer) -> Option<&OwnText> {
        let own = self.own_text.as_ref();
        own.filter(|own| own.stands_in(composer))
    }

    /// Whether an earlier daemon typed this message and did not press its Enter.
    pub fn has_begun(&self, message: &Message, composer: &Composer) -> bool {
        let own = self.own_text.as_ref();
        own.is_some_and(|own| own.is_begun(message, composer))
    }

    /// The Ctrl-C that was to clear it was not pressed.
    pub fn is_not_cleared(&mut self) {
        if let Some(own) = self.own_text.as_mut() {
            own.cleared = false;
        }
    }
}

impl Machine {
    /// The last text that missiond typed and that may be in the input box.
    pub fn own_text(&self) -> Option<&OwnText> {
        match self.up() {
            Some(up) => up.own_text.as_ref(),
            None => self.typed_before.as_ref(),
        }
    }

    /// An earlier daemon has typed this in the program that is adopted, or will be.
    pub(super) fn was_typed(&mut self, own: OwnText) {
        let own = Some(own.recalled());
        match self.up_mut() {
            Some(up) => up.own_text = own,
            None => self.typed_before = own,
        }
    }

    /// Continues a message that an earlier daemon has typed: Enter follows when the message is visible.
    pub(super) fn go_on_typing(&mut self, now: Instant) {
        let Some(message) = self.queue.pop_front() else {
            return;
        };
        let Some(up) = self.up_mut() else { return };
        if let Some(own) = up.own_text.as_mut() {
            own.recalled = false;
        }
        up.hands = Hands::Pasting {
            message,
            seen: None,
            repaint: Some(now + PASTE_IS_HIDDEN),
            until: now + PASTE_SHOWS,
        };
    }

    /// An interrupt right after sending puts the message back into the input box. missiond clears it, with one Ctrl-C and never a
    /// second, which would end the program.
    pub(super) fn clear_own_draft(&mut self, now: Instant) {
        let Some(up) = self.up_mut() else { return };
        if let Some(own) = up.own_text.as_mut() {
            own.cleared = true;
        }
        up.hands = Hands::Clearing {
            until: now + CLEARED,
            late: false,
        };
        self.press(
            Purpose::Types,
            keys::CLEAR,
            "Ctrl-C",
            "our own message is in the input box, and was never entered or was interrupted",
        );
    }

    /// Ctrl-C was pressed: the next message waits until the input box is seen without the draft.
    pub(super) fn progress_clearing(&mut self, until: Instant, late: bool, now: Instant) {
        let Some(up) = self.up_mut() else { return };
        let composer = up.composer();
        let gone = composer.is_some_and(|composer| up.own_draft(composer).is_none());
        match (late, now < until) {
            (false, true) => up.hands = Hands::Clearing { until, late },
            _ if gone => up.own_text = None,
            // Nothing was drawn in that time, or the drawn frame is older than the key.
            (false, false) => {
                up.hands = Hands::Clearing {
                    until: now + CLEARED_LATE,
                    late: true,
                };
            }
            (true, true) => up.hands = Hands::Clearing { until, late },
            (true, false) => {}
        }
    }

    pub(super) fn refuse_for_own_draft(&mut self, message: Message) {
        let name = &self.config.name;
        let text = format!(
            "an earlier message is in the input box of {name}, and Ctrl-C has not cleared it yet"
        );
        let error = Refusal::OwnDraft
            .says(text)
            .next(format!(
                "try again when it draws; or clear it by hand: missiond attach {name}"
            ))
            .trace(Trace::Untouched);
        self.refuse_message(message, error);
    }

    pub(super) fn refuse_for_draft(&mut self, message: Message, draft: &str) {
        let name = &self.config.name;
        let text = format!("{name} has a draft in its input box that is not missiond's: {draft}");
        let error = Refusal::ForeignDraft
            .says(text)
            .next("send or clear it first, by `missiond attach`")
            .trace(Trace::Untouched);
        self.refuse_message(message, error);
    }
}
