//! Raw input of a person or of their program: to a plain program as it is; to Claude Code only where no dialog can
//! take it, or where the person has said that the dialog is meant.

use super::Slot;
use super::claude::Claude;
use super::kind::ProgramKind;
use super::press::DecidedKey;
use crate::core::machine::{Decider, Input, KeysReach, Purpose, strokes, verdict_event};
use crate::core::model::Person;
use crate::core::model::{Fault, RpcError};
use crate::core::policy::{Decision, Verdict};
use crate::core::text::excerpt;
use crate::core::text::secrets;
use crate::os::peer::Peer;
use std::time::Instant;

/// Characters of the keys that are shown in the audit: enough for every key sequence, and not for a pasted text.
const SHOWN: usize = 80;

/// Bytes for a terminal, and whose they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writing {
    pub bytes: Vec<u8>,
    /// Also into a dialog that is open.
    pub into_dialog: bool,
    /// The client that has to have the keyboard.
    pub keyboard: Option<String>,
    pub person: Person,
}

impl Writing {
    /// Bytes that are meant for no dialog.
    pub fn raw(bytes: Vec<u8>, peer: &Peer) -> Writing {
        Writing {
            bytes,
            into_dialog: false,
            keyboard: None,
            person: peer.person(),
        }
    }
}

impl<K: ProgramKind> Slot<K> {
    pub(super) async fn write(&mut self, writing: Writing) -> Result<(), RpcError> {
        if !self.link.is_open() {
            return Err(K::not_running(self));
        }
        if let Some(id) = &writing.keyboard {
            let name = &self.program.settings().name;
            let keyboard = self.screen.keyboard_mut();
            let kept = keyboard.keep(id, name, Instant::now());
            kept.map_err(|mut refusal| {
                refusal.message += "; nothing was written";
                refusal
            })?;
        }
        K::write(self, writing).await
    }
}

impl Slot<Claude> {
    /// The entry in the audit comes first, and the screen is read once more before the key.
    pub(super) async fn write_into_dialog(
        &mut self,
        writing: Writing,
        reach: KeysReach,
    ) -> Result<(), RpcError> {
        let name = self.program.settings().name.clone();
        let refused = |text: String| RpcError::new(Fault::Refused, text);
        if !writing.into_dialog {
            return Err(self.machine.needs_the_flag(&reach));
        }
        if reach == KeysReach::Busy {
            let text = format!("missiond presses keys in {name} just now; nothing was written");
            return Err(refused(text).next(format!("look again: missiond pending {name}")));
        }
        let keys = shown(&writing.bytes);
        let decider = Decider::Keys {
            person: writing.person.clone(),
            keys: keys.clone(),
        };
        let written = self
            .machine
            .verdict_on_keys(&strokes(&writing.bytes), decider.clone());
        let why = written.verdict.why.clone();
        let record = self.verdict_record(written.verdict, &written.ask, decider.clone());
        self.log.audited(record).await?;
        self.tell(written.event);
        let key = DecidedKey {
            bytes: writing.bytes,
            name: keys,
            reason: why,
            purpose: Purpose::Types,
            person: Some(writing.person),
            is_raw: true,
        };
        let news = self.press_if_unchanged(key).await;
        let outcome = match &news {
            Some(Input::Withheld(_)) => {
                let text = format!("the screen of {name} has changed; nothing was written");
                Err(refused(text).next(format!("look again: missiond screen {name}")))
            }
            Some(Input::Unpressed { error, .. }) => Err(RpcError::clone(error)),
            _ => Ok(()),
        };
        if matches!(news, Some(Input::Withheld(_))) {
            let why = "not answered: the keys were withheld, since the screen has changed";
            let verdict = Verdict::without_rule(Decision::Ask, why);
            let event = verdict_event(&written.ask, &verdict, &decider);
            // The refusal says what became of the keys, whether or not this can be written.
            let _ = self.audit_verdict(verdict, &written.ask, decider).await;
            self.tell(event);
        }
        if let Some(news) = news {
            self.input(news).await;
        }
        if outcome.is_ok() {
            self.input(Input::KeysWritten).await;
        }
        outcome
    }
}

/// The keys as they are written in the audit: no control character, no secret, no long text.
pub(super) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let masked = secrets::mask(&text);
    excerpt::ends(&masked.escape_debug().to_string(), SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_shown_without_control_characters_or_secrets() {
        assert_eq!(shown(b"1"), "1");
        assert_eq!(shown(b"\x1b[A\r"), "\\u{1b}[A\\r");
        let secret = shown(b"sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789\r");
        assert!(!secret.contains("abcdefghijklmnop"), "{secret}");
        assert!(shown(&[b'x'; 5000]).len() < 200);
    }
}
