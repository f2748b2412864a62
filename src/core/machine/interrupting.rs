//! Stopping a turn: one Esc, or a no to the current dialog.

use super::up::{Asker, Choosing, Hands, Over};
use super::*;
use crate::core::claude::keys;
use crate::core::model::Trace;

const ESC_NOT_TAKEN: &str = "Esc was pressed, but the turn goes on";

/// A request to stop the turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interruption {
    pub token: Token,
    pub by: Interrupter,
}

/// Who interrupts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interrupter {
    Person(Person),
    /// A program inside a slot, if its role permits.
    Slot,
    /// The task was cancelled, or its time was over.
    Task,
}

impl Interrupter {
    fn words(&self) -> &'static str {
        match self {
            Interrupter::Person(_) => "a person interrupts",
            Interrupter::Slot => "a program in a slot interrupts",
            Interrupter::Task => "its task is taken back, which interrupts",
        }
    }

    pub(super) fn person(&self) -> Option<&Person> {
        match self {
            Interrupter::Person(person) => Some(person),
            Interrupter::Slot | Interrupter::Task => None,
        }
    }

    /// At a dialog a person's interrupt is a no.
    pub(super) fn decider(&self) -> Option<Decider> {
        self.person().cloned().map(Decider::Person)
    }
}

impl Machine {
    /// Stops the turn, never the program.
    pub(super) fn interrupt(&mut self, interruption: Interruption, now: Instant) {
        let Interruption { token, ref by } = interruption;
        if let Some(error) = self.hidden_dialog() {
            return self.reply(token, Err(error));
        }
        let name = self.config.name.clone();
        let Some(up) = self.up_mut() else {
            let error = Refusal::NotRunning.says(format!("{name} is not running"));
            return self.reply(token, Err(error.next(format!("missiond start {name}"))));
        };
        match &mut up.hands {
            Hands::Interrupting { wanted, .. }
            | Hands::Choosing(Choosing {
                asker: Asker::Interrupters(wanted),
                ..
            }) => return wanted.push(interruption),
            _ => {}
        }
        if let Some(dialog) = up.dialog().cloned() {
            return self.decline(interruption, &dialog, now);
        }
        if matches!(up.state(), State::Idle | State::Starting) {
            let effect = match self.withdraw_next(*by != Interrupter::Task) {
                true => "withdrawn",
                false => "nothing",
            };
            return self.reply(token, Ok(Reply::Interrupted(effect)));
        }
        self.drop_typing("interrupted");
        let reason = format!("{} the turn", by.words());
        self.press_for(by.person(), Purpose::Declines, keys::ESC, "Esc", &reason);
        if let Some(up) = self.up_mut() {
            let until = now + ESC_WORKS;
            up.hands = Hands::Interrupting {
                wanted: vec![interruption],
                effect: "interrupted",
                until,
            };
        }
    }

    /// No turn is to be stopped: the message that would begin the next one is not sent. Returns whether there was one. Messages
    /// behind it are sent, as after a turn that was stopped. A task that is taken back concerns no message in the `queue`.
    fn withdraw_next(&mut self, queue: bool) -> bool {
        const WHY: &str = "interrupted before it was sent";
        let Some(up) = self.up() else { return false };
        if matches!(up.hands, Hands::Pasting { .. }) {
            self.drop_typing(WHY);
            return true;
        }
        if !queue || up.turn.is_some() || !matches!(up.hands, Hands::Free | Hands::Clearing { .. })
        {
            return false;
        }
        let Some(message) = self.queue.pop_front() else {
            return false;
        };
        let error = Refusal::Interrupted.says(WHY);
        let error = match message.task {
            // A task that was not touched would be given to the slot again.
            Some(_) => error,
            None => error.trace(Trace::Untouched),
        };
        self.refuse_message(message, error);
        true
    }

    /// At a dialog an interrupt is a no. If no way to decline is known, no key is pressed.
    fn decline(&mut self, interruption: Interruption, dialog: &Dialog, now: Instant) {
        let Interruption { token, ref by } = interruption;
        if !self.up().is_some_and(up::Up::is_certain) {
            let error = self.unknown_screen();
            return self.reply(token, Err(error));
        }
        match keys::pick(dialog, "no") {
            Ok(pick) => {
                self.drop_typing("interrupted");
                let reason = format!("{} at a dialog", by.words());
                if let Some(person) = by.decider() {
                    let no = Verdict::without_rule(Decision::Deny, reason.clone());
                    self.decided(self.ask_of(dialog), no, person);
                }
                let asker = Asker::Interrupters(vec![interruption]);
                self.choose(asker, dialog, vec![pick], reason, None, now);
                self.progress_hands(now);
            }
            Err(error) => {
                let error = Refusal::NoSuchOption.says(error.to_string());
                self.reply(token, Err(error));
            }
        }
    }

    /// Replies to the owner of the current keys that they were cut off.
    fn drop_typing(&mut self, why: &str) {
        let Some(up) = self.up_mut() else { return };
        let tokens = match std::mem::replace(&mut up.hands, Hands::Free) {
            Hands::Pasting { message, .. } => {
                self.not_entered(&message, &format!("Enter was not pressed: {why}"));
                message.token.into_iter().collect()
            }
            Hands::Submitting { message, .. } => message.token.into_iter().collect(),
            Hands::Choosing(choosing) => {
                match choosing.steps.decided {
                    true => self.may_be_taken_late(&choosing),
                    false => self.take_verdict_back(&choosing, why),
                }
                choosing.asker.tokens()
            }
            Hands::Interrupting { .. } | Hands::Clearing { .. } | Hands::Free => Vec::new(),
        };
        for token in tokens {
            self.reply(token, Err(Refusal::Interrupted.says(why)));
        }
    }

    pub(super) fn progress_interrupting(
        &mut self,
        wanted: Vec<Interruption>,
        effect: &'static str,
        until: Instant,
        now: Instant,
    ) {
        let Some(up) = self.up_mut() else { return };
        let over = up.state() == State::Idle || up.dialog().is_some();
        if !over && now < until {
            up.hands = Hands::Interrupting {
                wanted,
                effect,
                until,
            };
            return;
        }
        let idle = up.state() == State::Idle && up.dialog().is_none();
        let heard = up.turn.as_ref().is_some_and(|turn| turn.over.is_some());
        if idle {
            up.gate.calls.all_answered();
        }
        if idle && !heard {
            // Claude Code calls no hook for such an end, and if nothing had come yet the transcript is silent too.
            self.turn_is_over(Over::interrupted());
        }
        match over {
            true => self.tell(EventKind::Interrupted),
            false => self.effects.push(Effect::NoEffect {
                key: "Esc",
                why: ESC_NOT_TAKEN.to_owned(),
                person: wanted.first().and_then(|one| one.by.person().cloned()),
            }),
        }
        for Interruption { token, .. } in wanted {
            let error = || Refusal::EscNotTaken.says(ESC_NOT_TAKEN);
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
