//! A person at the keyboard of the slot's own terminal: while they type, missiond presses nothing, and the audit records their
//! answers as theirs.

use super::up::{Hands, Up};
use super::*;
use crate::core::claude::keys;

/// For this long after the last key no rule answers and no message is typed: a person who reads a dialog or searches for a word
/// pauses for some seconds, and the screen must not change meanwhile.
pub const HANDS_OFF: Duration = Duration::from_secs(10);

/// A key that a person pressed, as far as a dialog cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    Enter,
    Escape,
    Digit(u32),
    /// An arrow key or similar: it decides nothing.
    Move,
    /// Moves in some dialogs; in others it chooses to allow all edits.
    BackTab,
    Other,
}

/// A person is typing.
#[derive(Debug)]
pub(super) struct Typing {
    pub uid: u32,
    pub until: Instant,
}

/// The keys that a person pressed on the current dialog.
#[derive(Debug, Default)]
pub(super) struct ByHand {
    /// The mark may have moved since the dialog was last read: the marked option is unknown.
    moved: bool,
    answer: Option<HandAnswer>,
}

#[derive(Debug)]
struct HandAnswer {
    dialog: Dialog,
    person: Person,
    /// The picked option, if it is known.
    picked: Option<keys::Pick>,
}

impl Machine {
    /// Whether somebody has typed at the slot's own terminal within [`HANDS_OFF`].
    pub fn person_types(&self) -> bool {
        self.up().is_some_and(|up| up.typing.is_some())
    }

    pub(super) fn typed(&mut self, person: &Person, strokes: &[Stroke], now: Instant) {
        let Some(up) = self.up_mut() else { return };
        let (uid, until) = (person.uid, now + HANDS_OFF);
        let begins = up.typing.replace(Typing { uid, until }).is_none();
        strokes
            .iter()
            .for_each(|stroke| up.note_stroke(person, *stroke));
        if begins {
            self.tell(EventKind::Typing { uid });
            self.hand_over();
        }
    }

    /// The person has detached.
    pub(super) fn keyboard_is_free(&mut self) {
        if self.up_mut().and_then(|up| up.typing.take()).is_some() {
            self.tell(EventKind::TypingOver);
        }
    }

    pub(super) fn progress_typing(&mut self, now: Instant) {
        let typing = self.up().and_then(|up| up.typing.as_ref());
        if typing.is_some_and(|typing| typing.until <= now) {
            self.keyboard_is_free();
        }
    }

    /// The person now decides on the keys that missiond was about to press. A key that has decided is not taken back.
    fn hand_over(&mut self) {
        let Some(up) = self.up_mut() else { return };
        match std::mem::replace(&mut up.hands, Hands::Free) {
            Hands::Pasting { message, .. } => {
                let text =
                    "a person began to type, so Enter was withheld; the text is in the input box";
                self.not_entered(&message, text);
                let error = Refusal::PersonCame.says(text);
                self.refuse_message(message, error);
            }
            Hands::Choosing(choosing) if !choosing.steps.decided => {
                let why = "a person types at the terminal";
                self.not_chosen(&choosing, Refusal::PersonTypes, why);
            }
            hands => up.hands = hands,
        }
    }

    /// A dialog is gone: if the person pressed a key on it, they have answered it.
    pub(super) fn gone_by_hand(&mut self, id: &str) {
        let Some(up) = self.up_mut() else { return };
        let hand = std::mem::take(&mut up.asks.by_hand);
        let by_us = up.asks.answered.as_deref() == Some(id);
        let Some(answer) = hand.answer.filter(|answer| answer.dialog.id == id) else {
            return;
        };
        let HandAnswer {
            dialog,
            person,
            picked,
        } = answer;
        if by_us {
            let decision = decision_of(&dialog, picked.as_ref());
            return self.also_by_hand(&dialog, decision, person);
        }
        let verdict = Verdict {
            decision: decision_of(&dialog, picked.as_ref()),
            rule: None,
            why: match &picked {
                Some(pick) => format!("a person at the keyboard chose {}", pick.label(&dialog)),
                None => "a person answered it at the keyboard".to_owned(),
            },
        };
        let ask = self.ask_of(&dialog);
        if verdict.decision == Decision::Deny {
            self.call_declined(&dialog);
        }
        self.decided(ask, verdict, Decider::Person(person));
    }
}

impl Up {
    fn note_stroke(&mut self, person: &Person, stroke: Stroke) {
        if stroke != Stroke::Move {
            self.gate.calls.all_answered();
        }
        let Some(dialog) = self.dialog().cloned() else {
            return;
        };
        self.asks.by_hand.moved |= matches!(stroke, Stroke::Move | Stroke::BackTab);
        if stroke == Stroke::Move {
            return;
        }
        let picked = picked_by(stroke, &dialog, self.asks.by_hand.moved);
        self.asks.by_hand.answer = Some(HandAnswer {
            dialog,
            person: person.clone(),
            picked,
        });
    }

    /// The dialog was read again: the marked option is known.
    pub(super) fn hand_is_seen(&mut self) {
        self.asks.by_hand.moved = false;
    }
}

/// The option that a key picks in a dialog, if it is known; `moved` if the mark may be elsewhere by now.
pub(super) fn picked_by(stroke: Stroke, dialog: &Dialog, moved: bool) -> Option<keys::Pick> {
    match stroke {
        Stroke::Move | Stroke::BackTab | Stroke::Other => None,
        Stroke::Enter => dialog.selected.filter(|_| !moved).map(keys::Pick::Option),
        Stroke::Digit(number) => {
            let mut options = dialog.options.iter();
            let index = options.position(|option| option.number == Some(number));
            index.map(keys::Pick::Option)
        }
        Stroke::Escape => Some(keys::Pick::Esc),
    }
}

/// If the choice is unknown, or labels may be painted, the decision is only *ask*.
pub(super) fn decision_of(dialog: &Dialog, picked: Option<&keys::Pick>) -> Decision {
    match picked {
        None => Decision::Ask,
        Some(keys::Pick::Esc) => Decision::Deny,
        Some(_) if !keys::in_known_order(dialog) => Decision::Ask,
        Some(pick) if keys::declines(dialog, pick) => Decision::Deny,
        Some(_) => Decision::Allow,
    }
}

/// The keys in the bytes that a terminal sends. Reports of mouse movement and of window focus are not typing.
pub fn strokes(bytes: &[u8]) -> Vec<Stroke> {
    /// More is a paste.
    const MAX_STROKES: usize = 32;
    let mut found = Vec::new();
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        if found.len() == MAX_STROKES {
            return vec![Stroke::Other];
        }
        let (stroke, used) = match (first, after) {
            (0x1b, [b'[', body @ ..]) => csi_stroke(body),
            (0x1b, [b'O', _, ..]) => (Some(Stroke::Move), 3),
            (0x1b, [_, ..]) if after[0] != 0x1b => (Some(Stroke::Other), 2),
            (0x1b | 0x03, _) => (Some(Stroke::Escape), 1),
            (b'\r' | b'\n', _) => (Some(Stroke::Enter), 1),
            (b'\t', _) => (Some(Stroke::Move), 1),
            (digit @ b'0'..=b'9', _) => (Some(Stroke::Digit(u32::from(digit - b'0'))), 1),
            _ => (Some(Stroke::Other), 1),
        };
        found.extend(stroke);
        rest = rest.get(used..).unwrap_or_default();
    }
    found
}

/// The key after `ESC [`, and the number of bytes including those two.
fn csi_stroke(body: &[u8]) -> (Option<Stroke>, usize) {
    let Some(at) = body.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return (Some(Stroke::Other), body.len() + 2);
    };
    let stroke = match (&body[..at], body[at]) {
        (b"", b'I' | b'O') => None,
        // Three bytes of the old mouse report follow.
        (b"", b'M') => return (None, at + 6),
        ([b'<', report @ ..], b'M' | b'm') => is_click(report).then_some(Stroke::Other),
        (b"13", b'u') => Some(Stroke::Enter),
        (b"27", b'u') => Some(Stroke::Escape),
        (b"", b'Z') => Some(Stroke::BackTab),
        (_, b'A'..=b'H') => Some(Stroke::Move),
        _ => Some(Stroke::Other),
    };
    (stroke, at + 3)
}

/// A button, not movement and not the wheel.
fn is_click(report: &[u8]) -> bool {
    const MOVES: u32 = 32;
    const WHEEL: u32 = 64;
    let button = report.split(|byte| *byte == b';').next();
    let button = button.and_then(|text| std::str::from_utf8(text).ok());
    let button: Option<u32> = button.and_then(|text| text.parse().ok());
    button.is_none_or(|button| button & (MOVES | WHEEL) == 0)
}
