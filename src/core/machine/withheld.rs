//! A key that was not pressed. If the screen had changed in between, the step is undone and the new screen decides; if the audit
//! could not be written, or the screen is not stable, a person decides.

use super::up::Hands;
use super::*;
use crate::core::model::Trace;

impl Machine {
    pub(super) fn withheld(&mut self, sight: Observation, now: Instant) {
        let again = self.take_back(now);
        self.saw(sight, now);
        for wanted in again {
            self.interrupt_when_drawn(wanted, now);
        }
    }

    /// Undoes the decision for the key. The clients that interrupt ask again.
    fn take_back(&mut self, now: Instant) -> Vec<Interruption> {
        let Some(up) = self.up_mut() else {
            return Vec::new();
        };
        match std::mem::replace(&mut up.hands, Hands::Free) {
            Hands::Free => {}
            Hands::Clearing { .. } => up.is_not_cleared(),
            Hands::Pasting { message, .. } => self.queue.push_front(message),
            Hands::Submitting { message, .. } => {
                let until = now + PASTE_SHOWS;
                up.hands = Hands::Pasting {
                    message,
                    seen: None,
                    repaint: None,
                    until,
                };
            }
            Hands::Choosing(mut choosing) => {
                choosing.steps.decided = false;
                choosing.steps.moves = choosing.steps.moves.saturating_sub(1);
                choosing.steps.moved_from = None;
                self.note_answered(&choosing, false);
                if let Some(up) = self.up_mut() {
                    up.hands = Hands::Choosing(choosing);
                }
            }
            Hands::Interrupting { wanted, .. } => return wanted,
        }
        Vec::new()
    }

    /// The owner of the key learns why it was not pressed. A dialog waits for a person; a message is not sent.
    pub(super) fn unpressed(&mut self, error: RpcError, sight: Option<Observation>, now: Instant) {
        let Some(up) = self.up_mut() else { return };
        let error = RpcError {
            refusal: Some(Refusal::NotPressed.name()),
            ..error
        };
        match std::mem::replace(&mut up.hands, Hands::Free) {
            Hands::Choosing(mut choosing) => {
                choosing.steps.decided = false;
                self.note_answered(&choosing, false);
                self.not_chosen_for(&choosing, &error);
            }
            Hands::Clearing { .. } => {
                up.is_not_cleared();
                if let Some(message) = self.queue.pop_front() {
                    self.refuse_untyped(message, error);
                }
            }
            Hands::Pasting { message, .. } => self.refuse_untyped(message, error),
            Hands::Submitting { message, again, .. } => {
                let text = "Enter was not pressed, and the message is in the input box";
                let error = RpcError {
                    message: format!("{text}: {}", error.message),
                    // An Enter that was pressed before may still take effect.
                    trace: again.map(|_| Trace::Untouched),
                    ..error
                };
                self.fail_message(message, error);
            }
            hands => up.hands = hands,
        }
        if let Some(sight) = sight {
            self.saw(sight, now);
        }
    }

    fn refuse_untyped(&mut self, message: Message, error: RpcError) {
        let text = format!("the message was not sent: {}", error.message);
        let error = RpcError {
            message: text,
            ..error
        };
        self.fail_message(message, error.trace(Trace::Untouched));
    }
}
