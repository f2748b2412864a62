//! A message whose Enter an earlier daemon has pressed: its turn goes on here.

use super::up::{Hands, OpenTurn};
use super::*;

/// What an earlier daemon has left of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entered {
    pub message: Message,
    /// When Enter was pressed.
    pub began: Instant,
    /// The events have the message: the program has taken it.
    pub is_told: bool,
}

impl Machine {
    /// The message is kept until the screen is known: the screen shows whether the program has taken it.
    pub(super) fn was_entered(&mut self, entered: Entered) {
        self.entered_before = Some(entered);
    }

    /// Goes on with the message as if this daemon had pressed Enter.
    pub(super) fn resume_turn(&mut self, now: Instant) {
        if self.up().is_none_or(|up| up.sight.is_none()) {
            return;
        }
        let Some(entered) = self.entered_before.take() else {
            return;
        };
        let Entered {
            message,
            began,
            is_told,
        } = entered;
        let Some(up) = self.up_mut() else { return };
        match is_told {
            true => {
                up.turn = Some(OpenTurn {
                    token: message.token,
                    ..OpenTurn::of(&message, began)
                });
            }
            false => {
                up.hands = Hands::Submitting {
                    message,
                    again: Some(now + ENTER_IS_LOST),
                    until: now + ENTER_WORKS,
                };
            }
        }
    }

    /// The message whose Enter is pressed now, or was pressed and not taken so far.
    pub fn entering(&self) -> Option<&Message> {
        match &self.up()?.hands {
            Hands::Submitting { message, .. } => Some(message),
            _ => None,
        }
    }

    /// Whether no message is between its Enter and its answer, as far as that is known.
    pub fn has_no_turn(&self) -> bool {
        let ended = match &self.life {
            Life::Up(up) => up.turn.is_none() && self.entering().is_none(),
            Life::Down { .. } | Life::Waiting { .. } => true,
            // A program of which an earlier daemon knew may be found.
            Life::Launching { .. } | Life::Unreached { .. } | Life::Stopping { .. } => false,
        };
        ended && self.entered_before.is_none()
    }

    /// The sender of a message waits for its answer again. The reply is that of the message.
    pub(super) fn rejoin(&mut self, token: Token, id: &str) {
        match self.sender_of(id) {
            Some(sender @ None) => *sender = Some(token),
            _ => self.reply(token, Ok(Reply::Unknown)),
        }
    }

    fn sender_of(&mut self, id: &str) -> Option<&mut Option<Token>> {
        let is_it = |known: &Option<String>| known.as_deref() == Some(id);
        let before = self
            .entered_before
            .as_mut()
            .map(|before| &mut before.message);
        if let Some(message) = before.filter(|message| is_it(&message.id)) {
            return Some(&mut message.token);
        }
        let Life::Up(up) = &mut self.life else {
            return None;
        };
        match &mut up.hands {
            Hands::Pasting { message, .. } | Hands::Submitting { message, .. }
                if is_it(&message.id) =>
            {
                Some(&mut message.token)
            }
            _ => {
                let turn = up.turn.as_mut().filter(|turn| is_it(&turn.id));
                turn.map(|turn| &mut turn.token)
            }
        }
    }
}
