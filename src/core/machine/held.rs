//! People's answers: those that arrive while the program redraws its screen are held until it is drawn, not refused; the answer
//! whose key is about to be pressed is known by its id.

use super::up::{Asker, Hands};
use super::*;
use crate::core::model::Trace;

/// The most answers that may wait: more means a client in a loop.
pub(super) const MAX_HELD: usize = 16;

/// An answer that waits for the screen.
#[derive(Debug)]
pub(super) struct Held {
    wanted: HeldRequest,
    /// It is handled then, whatever the screen shows.
    pub until: Instant,
}

#[derive(Debug)]
enum HeldRequest {
    Confirm(Confirmation),
    Interrupt(Interruption),
}

impl Held {
    pub fn token(&self) -> Token {
        match &self.wanted {
            HeldRequest::Confirm(confirmation) => confirmation.token,
            HeldRequest::Interrupt(interruption) => interruption.token,
        }
    }
}

impl Machine {
    /// A person's answer. If it names no dialog, it applies only to the dialog that is known now, not to one that is drawn later.
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
        self.hold(HeldRequest::Confirm(confirmation), now);
    }

    pub(super) fn interrupt_when_drawn(&mut self, wanted: Interruption, now: Instant) {
        match self.may_hold() {
            true => self.hold(HeldRequest::Interrupt(wanted), now),
            false => self.interrupt(wanted, now),
        }
    }

    /// Whether a dialog is known whose screen is being redrawn.
    fn may_hold(&self) -> bool {
        self.up().is_some_and(|up| {
            up.is_redrawing() && up.dialog().is_some() && up.held.len() < MAX_HELD
        })
    }

    fn hold(&mut self, wanted: HeldRequest, now: Instant) {
        let until = now + DRAWN_AT_LAST;
        if let Some(up) = self.up_mut() {
            up.held.push(Held { wanted, until });
        }
    }

    /// Handles the held answers once the screen is drawn.
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
                HeldRequest::Confirm(confirmation) => self.confirm(confirmation, now),
                HeldRequest::Interrupt(wanted) => self.interrupt(wanted, now),
            }
        }
    }

    /// The person's answer whose deciding key is about to be pressed, if it has an id.
    pub fn deciding(&self) -> Option<Deciding> {
        let Hands::Choosing(choosing) = &self.up()?.hands else {
            return None;
        };
        let Asker::Person { id, .. } = &choosing.asker else {
            return None;
        };
        let decides = choosing.steps.decided && choosing.then.is_empty();
        Some(Deciding {
            id: id.clone().filter(|_| decides)?,
            dialog: choosing.asked.id.clone(),
            chosen: choosing.label.clone(),
        })
    }

    /// The client no longer waits for this answer: it is dropped.
    pub(super) fn withdraw_held(&mut self, token: Token) {
        let Some(up) = self.up_mut() else { return };
        let before = up.held.len();
        up.held.retain(|held| held.token() != token);
        if up.held.len() < before {
            let text = "the screen was not drawn in time; no key was pressed";
            let error = Refusal::NotDrawnInTime.says(text).trace(Trace::Untouched);
            self.reply(token, Err(error));
        }
    }
}
