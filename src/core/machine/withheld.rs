//! A key that was not pressed. Where the screen had changed in between, the step is taken back, and what is there
//! now decides; where it could not be written down, or the screen does not stand still, a person decides.

use super::up::Hands;
use super::*;

const UNAUDITED: &str = "the audit can't be written, so nothing is approved; make room on its disk";

impl Input {
    /// Nothing is approved without a trace.
    pub fn unaudited() -> Input {
        Input::Unpressed {
            why: UNAUDITED,
            sight: None,
        }
    }
}

impl Machine {
    pub(super) fn withheld(&mut self, sight: Sight, now: Instant) {
        let again = self.take_back(now);
        self.saw(sight, now);
        for wanted in again {
            self.interrupt_when_drawn(wanted, now);
        }
    }

    /// As if the key had not been decided on. Those who wanted an interrupt ask for it again.
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
                choosing.decided = false;
                choosing.moves = choosing.moves.saturating_sub(1);
                choosing.moved_from = None;
                up.hands = Hands::Choosing(choosing);
            }
            Hands::Interrupting { wanted, .. } => return wanted,
        }
        Vec::new()
    }

    /// Who wanted the key is told why it was not pressed, and the dialog waits for a person.
    pub(super) fn unpressed(&mut self, why: &str, sight: Option<Sight>, now: Instant) {
        let Some(up) = self.up_mut() else { return };
        match std::mem::replace(&mut up.hands, Hands::Free) {
            Hands::Choosing(mut choosing) => {
                choosing.decided = false;
                self.not_chosen(&choosing, Refusal::NotPressed, why);
            }
            hands => up.hands = hands,
        }
        if let Some(sight) = sight {
            self.saw(sight, now);
        }
    }
}
