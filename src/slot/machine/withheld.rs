//! A key that was not pressed. Where the screen had changed in between, the step is taken back, and what is there
//! now decides; where it could not be written down, a person decides.

use super::up::Hands;
use super::*;

const UNAUDITED: &str = "the audit can't be written, so nothing is approved; make room on its disk";

impl Machine {
    pub(super) fn withheld(&mut self, sight: Sight, now: Instant) {
        let again = self.take_back(now);
        self.saw(sight, now);
        for token in again {
            self.interrupt_when_drawn(token, now);
        }
    }

    /// As if the key had not been decided on. Those who wanted an interrupt ask for it again.
    fn take_back(&mut self, now: Instant) -> Vec<Token> {
        let Some(up) = self.up_mut() else {
            return Vec::new();
        };
        match std::mem::replace(&mut up.hands, Hands::Free) {
            Hands::Free | Hands::Clearing { .. } => {}
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
                choosing.decided = false;
                choosing.moves = choosing.moves.saturating_sub(1);
                choosing.moved_from = None;
                up.hands = Hands::Choosing(choosing);
            }
            Hands::Interrupting { tokens, .. } => return tokens,
        }
        Vec::new()
    }

    /// Nothing is approved without a trace: who wanted it is told, and the dialog waits for a person.
    pub(super) fn unaudited(&mut self) {
        let Some(up) = self.up_mut() else { return };
        match std::mem::replace(&mut up.hands, Hands::Free) {
            Hands::Choosing(mut choosing) => {
                choosing.decided = false;
                self.not_chosen(&choosing, UNAUDITED);
            }
            hands => up.hands = hands,
        }
    }
}
