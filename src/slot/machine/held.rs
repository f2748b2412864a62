//! Answers of people that come while the program draws its screen again: they wait for it, and are not refused.

use super::*;
use crate::control::protocol::{Fault, Trace};

/// Answers that may wait at once: more is a client in a loop.
const MAX_HELD: usize = 16;

/// An answer that waits for the screen.
#[derive(Debug)]
pub(super) struct Held {
    wanted: Wanted,
    /// It is dealt with then, whatever the screen shows.
    pub until: Instant,
}

#[derive(Debug)]
enum Wanted {
    Confirm(Confirmation),
    Interrupt(Token),
}

impl Held {
    pub fn token(&self) -> Token {
        match &self.wanted {
            Wanted::Confirm(confirmation) => confirmation.token,
            Wanted::Interrupt(token) => *token,
        }
    }
}

impl Machine {
    /// A person's answer. One that names no dialog is meant for the one that is known now, and for no other that is drawn
    /// meanwhile.
    pub(super) fn confirm_when_drawn(&mut self, confirmation: Confirmation, now: Instant) {
        if !self.may_hold() {
            return self.confirm(confirmation, now);
        }
        let known = self.dialog().map(|dialog| dialog.id.clone());
        let dialog = confirmation.dialog.or(known);
        let confirmation = Confirmation {
            dialog,
            ..confirmation
        };
        self.hold(Wanted::Confirm(confirmation), now);
    }

    pub(super) fn interrupt_when_drawn(&mut self, token: Token, now: Instant) {
        match self.may_hold() {
            true => self.hold(Wanted::Interrupt(token), now),
            false => self.interrupt(token, now),
        }
    }

    /// Whether a dialog is known whose screen is being drawn again.
    fn may_hold(&self) -> bool {
        self.up().is_some_and(|up| {
            up.is_redrawing() && up.dialog().is_some() && up.held.len() < MAX_HELD
        })
    }

    fn hold(&mut self, wanted: Wanted, now: Instant) {
        let until = now + DRAWN_AT_LAST;
        if let Some(up) = self.up_mut() {
            up.held.push(Held { wanted, until });
        }
    }

    /// Deals with the answers that have waited, once the screen is drawn.
    pub(super) fn progress_held(&mut self, now: Instant) {
        let Some(up) = self.up_mut() else { return };
        let drawn = !up.is_redrawing();
        let (due, held) = std::mem::take(&mut up.held)
            .into_iter()
            .partition(|held| drawn || now >= held.until);
        up.held = held;
        let due: Vec<Held> = due;
        for held in due {
            match held.wanted {
                Wanted::Confirm(confirmation) => self.confirm(confirmation, now),
                Wanted::Interrupt(token) => self.interrupt(token, now),
            }
        }
    }

    /// Whoever waited for this answer has gone: it is not given any more.
    pub(super) fn withdraw_held(&mut self, token: Token) {
        let Some(up) = self.up_mut() else { return };
        let before = up.held.len();
        up.held.retain(|held| held.token() != token);
        if up.held.len() < before {
            let text = "the screen was not drawn in time; no key was pressed";
            let error = RpcError::new(Fault::TimedOut, text).trace(Trace::Untouched);
            self.reply(token, Err(error));
        }
    }
}
