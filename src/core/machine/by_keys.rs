//! Keys that a client writes directly into a slot's terminal, and what would receive them.

use super::answering::verdict_event;
use super::keyboard::{decision_of, picked_by};
use super::*;
use crate::core::claude::keys::Pick;

/// What would receive a key that is written now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeysReach {
    /// No dialog is open: the input box or the working program gets the keys.
    NoDialog,
    /// This dialog would get the keys.
    Dialog(Box<Dialog>),
    /// The screen is unknown, so a dialog may be open.
    Unknown,
    /// Claude Code may draw the dialog of this call before it reads the keys.
    DialogComes(String),
    /// A dialog in which missiond itself is pressing keys.
    Busy,
}

/// Keys that are about to be written into a dialog, as the audit records them beforehand.
#[derive(Debug)]
pub struct WrittenKeys {
    pub ask: Ask,
    pub verdict: Verdict,
    pub event: EventKind,
}

impl Machine {
    /// What would receive keys that are written now.
    pub fn keys_reach(&self) -> KeysReach {
        let Some(up) = self.up() else {
            return KeysReach::NoDialog;
        };
        match up.dialog() {
            Some(_) if !up.hands_are_free() => KeysReach::Busy,
            Some(dialog) => KeysReach::Dialog(Box::new(dialog.clone())),
            None if !up.is_certain() => KeysReach::Unknown,
            None => match self.dialog_to_come() {
                Some(call) => KeysReach::DialogComes(call),
                None => KeysReach::NoDialog,
            },
        }
    }

    /// Why keys are refused without the flag, and how to answer.
    pub fn needs_the_flag(&self, reach: &KeysReach) -> RpcError {
        let name = &self.config.name;
        let (text, answer) = match (reach, self.dialog()) {
            (KeysReach::DialogComes(call), _) => (
                format!(
                    "the dialog of a call may come up in {name} at any moment ({call}), and keys would answer it; nothing was written"
                ),
                format!("look again: missiond pending {name}"),
            ),
            (KeysReach::Dialog(_) | KeysReach::Busy, Some(dialog)) => (
                format!(
                    "a dialog is open in {name} ({}), and keys would answer it; nothing was written",
                    up::about(dialog)
                ),
                advice::to_end(name, dialog),
            ),
            _ => (
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

    /// What these keys answer to the current dialog, as far as it is known.
    pub fn verdict_on_keys(&self, strokes: &[Stroke], decider: Decider) -> WrittenKeys {
        let Some(dialog) = self.dialog() else {
            return self.written(
                self.ask_of_unknown(),
                Decision::Ask,
                "a screen without a known dialog",
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

/// A single key that decides has a known choice. After keys that move or write, or with several keys, the choice is unknown.
fn last_pick(strokes: &[Stroke], dialog: &Dialog) -> Option<Pick> {
    match strokes {
        [stroke] => picked_by(*stroke, dialog, false),
        _ => None,
    }
}
