//! Stopping a turn: one Esc, or a no to the dialog that is up.

use super::up::{Asker, Choosing, Hands, Over};
use super::*;
use crate::control::protocol::Fault;
use crate::keys::{self, Pick};

impl Machine {
    /// Stops the turn, never the program.
    pub(super) fn interrupt(&mut self, token: Token, now: Instant) {
        let name = self.config.name.clone();
        let Some(up) = self.up_mut() else {
            let error = RpcError::new(Fault::Refused, format!("{name} is not running"));
            return self.reply(token, Err(error.next(format!("missiond start {name}"))));
        };
        match &mut up.hands {
            Hands::Interrupting { tokens, .. }
            | Hands::Choosing(Choosing {
                asker: Asker::Interrupters(tokens),
                ..
            }) => return tokens.push(token),
            _ => {}
        }
        if let Some(dialog) = up.dialog().cloned() {
            return self.decline(token, &dialog, now);
        }
        if matches!(up.state(), State::Idle | State::Starting) {
            return self.reply(token, Ok(Reply::Interrupted("nothing")));
        }
        self.drop_typing("interrupted");
        self.press(keys::ESC, "Esc", "a person interrupts the turn");
        if let Some(up) = self.up_mut() {
            let until = now + ESC_WORKS;
            up.hands = Hands::Interrupting {
                tokens: vec![token],
                effect: "interrupted",
                until,
            };
        }
    }

    /// At a dialog an interrupt is a no. Where nothing is known to say no, no key is pressed.
    fn decline(&mut self, token: Token, dialog: &Dialog, now: Instant) {
        if !self.up().is_some_and(up::Up::is_certain) {
            let error = self.unknown_screen();
            return self.reply(token, Err(error));
        }
        let no = match self.distrust() {
            // Its labels may be painted, and Esc says no whatever stands where.
            Some(_) if dialog.kind == DialogKind::Permission => Ok(Pick::Esc),
            _ => keys::pick(dialog, "no"),
        };
        match no {
            Ok(pick) => {
                self.drop_typing("interrupted");
                let reason = "a person interrupts at a dialog".to_owned();
                let asker = Asker::Interrupters(vec![token]);
                self.choose(asker, dialog, vec![pick], reason, None, now);
                self.progress_hands(now);
            }
            Err(error) => self.reply(token, Err(RpcError::new(Fault::Refused, error.to_string()))),
        }
    }

    /// Whoever had keys under way is told that they were cut off.
    fn drop_typing(&mut self, why: &str) {
        let Some(up) = self.up_mut() else { return };
        let tokens = match std::mem::replace(&mut up.hands, Hands::Free) {
            Hands::Pasting { message, .. } | Hands::Submitting { message, .. } => {
                message.token.into_iter().collect()
            }
            Hands::Choosing(choosing) => {
                if !choosing.decided {
                    self.take_verdict_back(&choosing, why);
                }
                choosing.asker.tokens().to_vec()
            }
            Hands::Interrupting { .. } | Hands::Clearing { .. } | Hands::Free => Vec::new(),
        };
        for token in tokens {
            self.reply(token, Err(RpcError::new(Fault::Failed, why)));
        }
    }

    pub(super) fn progress_interrupting(
        &mut self,
        tokens: Vec<Token>,
        effect: &'static str,
        until: Instant,
        now: Instant,
    ) {
        let Some(up) = self.up_mut() else { return };
        let over = up.state() == State::Idle || up.dialog().is_some();
        if !over && now < until {
            up.hands = Hands::Interrupting {
                tokens,
                effect,
                until,
            };
            return;
        }
        let idle = up.state() == State::Idle && up.dialog().is_none();
        let heard = up.turn.as_ref().is_some_and(|turn| turn.over.is_some());
        if idle && !heard {
            // Claude Code calls no hook for such an end, and where nothing had come yet its transcript is silent too.
            self.turn_is_over(Over::interrupted());
        }
        if over {
            self.tell(What::Interrupted);
        }
        for token in tokens {
            let error = || RpcError::new(Fault::Failed, "Esc was pressed, but the turn goes on");
            self.reply(
                token,
                if over {
                    Ok(Reply::Interrupted(effect))
                } else {
                    Err(error())
                },
            );
        }
    }
}
