//! Keys that are written into a slot's terminal from outside, and what they can reach there.

use super::answering::verdict_event;
use super::keyboard::{decision_of, picked_by};
use super::*;
use crate::core::claude::keys::Pick;

/// What takes a key that is written now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeysReach {
    /// No dialog is open: the input box or the working program takes the keys.
    NoDialog,
    /// This dialog would take the keys.
    Dialog(Box<Dialog>),
    /// The screen is not a known one, so a dialog may be open.
    Unknown,
    /// A dialog in which missiond presses keys itself.
    Busy,
}

/// Keys that are about to be written into a dialog, as they are written down before.
#[derive(Debug)]
pub struct WrittenKeys {
    pub ask: Ask,
    pub verdict: Verdict,
    pub event: What,
}

impl Machine {
    /// What keys would reach that are written now.
    pub fn keys_reach(&self) -> KeysReach {
        let Some(up) = self.up() else {
            return KeysReach::NoDialog;
        };
        match up.dialog() {
            Some(_) if !up.hands_are_free() => KeysReach::Busy,
            Some(dialog) => KeysReach::Dialog(Box::new(dialog.clone())),
            None if up.is_certain() && !up.hides_question() => KeysReach::NoDialog,
            None => KeysReach::Unknown,
        }
    }

    /// Why keys are refused without the flag, with the way to answer.
    pub fn needs_the_flag(&self, reach: &KeysReach) -> RpcError {
        let name = &self.config.name;
        let (text, answer) = match self.dialog().filter(|_| *reach != KeysReach::Unknown) {
            Some(dialog) => (
                format!(
                    "a dialog is open in {name} ({}), and keys would answer it; nothing was written",
                    up::about(dialog)
                ),
                advice::to_end(name, dialog),
            ),
            None => (
                format!(
                    "the screen of {name} is not a known one and may be a dialog; nothing was written"
                ),
                format!("look at it: missiond screen {name}"),
            ),
        };
        Refusal::WouldAnswer.says(text).next(format!(
            "{answer}\nor press the keys as your own verdict, which the audit keeps: add --into-dialog"
        ))
    }

    /// What these keys say to the dialog that is up, as far as that can be told.
    pub fn verdict_on_keys(&self, strokes: &[Stroke], decider: Decider) -> WrittenKeys {
        let Some(dialog) = self.dialog() else {
            return self.written(
                self.ask_of_unknown(),
                Decision::Ask,
                "an unknown screen",
                decider,
            );
        };
        let picked = last_pick(strokes, dialog);
        let place = match &picked {
            Some(pick) => format!("the dialog {}: {}", dialog.id, pick.label(dialog)),
            None => format!("the dialog {}", dialog.id),
        };
        let decision = decision_of(dialog, picked.as_ref());
        self.written(self.ask_of(dialog), decision, &place, decider)
    }

    fn written(&self, ask: Ask, decision: Decision, place: &str, decider: Decider) -> WrittenKeys {
        let verdict = Verdict {
            decision,
            rule: None,
            why: format!("a person wrote keys into {place}"),
        };
        let event = verdict_event(&ask, &verdict, &decider);
        WrittenKeys {
            ask,
            verdict,
            event,
        }
    }

    fn ask_of_unknown(&self) -> Ask {
        Ask {
            tool: "unknown screen".to_owned(),
            input: Value::Null,
            cwd: self.running().cwd.clone(),
            at: None,
            complete: false,
        }
    }
}

/// One key that decides is told apart. After keys that move or write, or with several, what is chosen is not known.
fn last_pick(strokes: &[Stroke], dialog: &Dialog) -> Option<Pick> {
    match strokes {
        [stroke] => picked_by(*stroke, dialog, false),
        _ => None,
    }
}
