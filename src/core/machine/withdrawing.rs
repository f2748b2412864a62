//! A sender that no longer waits.

use super::up::{Hands, Up};
use super::*;
use crate::core::model::Trace;

impl Machine {
    /// The client no longer waits. A message that is already typed continues; any other is dropped.
    pub(super) fn withdraw(&mut self, token: Token) {
        self.withdraw_held(token);
        let name = self.config.name.clone();
        let late = |refusal: Refusal, text: String| {
            let next = format!("missiond status {name}");
            refusal.says(text).next(next)
        };
        let waiting = self.queue.len();
        self.queue.retain(|message| message.token != Some(token));
        if self.queue.len() < waiting {
            let text = format!("{}; the message was not sent", self.why_messages_wait());
            let error = late(Refusal::NotSentInTime, text);
            return self.reply(token, Err(error.trace(Trace::Untouched)));
        }
        let typed = self.up().is_some_and(|up| up.is_typing_for(token));
        let before = self.entered_before.as_mut();
        let before = before.filter(|before| before.message.token == Some(token));
        let forgotten = before.and_then(|before| before.message.token.take());
        if forgotten.is_some() || self.up_mut().is_some_and(|up| up.forget_sender(token)) {
            let text = match typed {
                true => format!(
                    "the message was typed, and {name} has not shown it yet; Enter follows if it does"
                ),
                false => format!("the message was sent, and the turn of {name} goes on"),
            };
            let error = late(Refusal::NotAnsweredInTime, text);
            self.reply(token, Err(error));
        }
    }

    /// Why waiting messages are not typed, for a person.
    fn why_messages_wait(&self) -> String {
        let name = &self.config.name;
        match &self.life {
            _ if self.person_types() => format!("a person is typing in {name}"),
            Life::Waiting { reason, .. } => format!("{name} does not run: {reason}"),
            Life::Unreached { reason, .. } => format!("{name} is not reached: {reason}"),
            Life::Launching { .. } | Life::Down { .. } | Life::Stopping { .. } => {
                format!("{name} has not started")
            }
            Life::Up(up) => match (up.errors.stalled, up.state()) {
                (Some(quiet_for), _) => {
                    format!("{name} gives {}", limits::no_sign_of_life(quiet_for))
                }
                _ if !up.hands_are_free() => {
                    format!("{name} has not yet taken what was typed before")
                }
                (None, State::Starting) => format!("{name} was starting all the time"),
                (None, State::Idle) if up.turn.is_none() => {
                    format!("{name} was not ready for it all the time")
                }
                _ => format!("{name} was busy all the time"),
            },
        }
    }
}

impl Up {
    /// Whether the message with this token was pasted, and its Enter not pressed.
    fn is_typing_for(&self, token: Token) -> bool {
        matches!(&self.hands, Hands::Pasting { message, .. } if message.token == Some(token))
    }

    /// Nobody waits any more for the message with this token; returns whether there was one.
    fn forget_sender(&mut self, token: Token) -> bool {
        let typing = match &mut self.hands {
            Hands::Pasting { message, .. } | Hands::Submitting { message, .. } => {
                Some(&mut message.token)
            }
            _ => None,
        };
        let turn = self.turn.as_mut().map(|turn| &mut turn.token);
        let mine = typing
            .into_iter()
            .chain(turn)
            .find(|waiting| **waiting == Some(token));
        mine.map(Option::take).is_some()
    }
}
