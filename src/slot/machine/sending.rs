//! From a message in the queue to its answer.
//!
//! With a dialog open a plain Enter approves it. So: paste, see the text in the input box, only then Enter.

use super::up::{Hands, Over, Turn};
use super::*;
use crate::control::protocol::{Fault, Trace};
use crate::keys;

impl Machine {
    pub(super) fn send(&mut self, message: Message) {
        match self.may_queue() {
            Ok(()) => self.queue.push_back(message),
            Err(error) => {
                if let Some(token) = message.token {
                    self.reply(token, Err(error.trace(Trace::Untouched)));
                }
            }
        }
    }

    fn may_queue(&self) -> Result<(), RpcError> {
        let name = &self.config.name;
        let refused = |text: String| RpcError::new(Fault::Refused, text);
        if self.queue.len() >= MAX_QUEUE {
            let text = format!("{MAX_QUEUE} messages wait for {name} already");
            return Err(refused(text).next("wait until it has answered some of them"));
        }
        match &self.life {
            Life::Down {
                state: State::Error,
                reason,
            } => {
                let why = reason.as_deref().unwrap_or("it failed");
                Err(refused(format!("{name} has given up: {why}"))
                    .next(format!("missiond start {name}")))
            }
            Life::Down { .. } => {
                Err(refused(format!("{name} is not running"))
                    .next(format!("missiond start {name}")))
            }
            Life::Stopping {
                start_again: false, ..
            } => Err(refused(format!("{name} is being stopped"))),
            Life::Up(up) => up.dialog().map_or(Ok(()), |dialog| {
                let text = format!("{name} is at a dialog: {}", up::about(dialog));
                Err(refused(text).next(advice::to_end(name, dialog)))
            }),
            Life::Waiting { .. } | Life::Launching | Life::Stopping { .. } => Ok(()),
        }
    }

    /// The client no longer waits. What was typed already goes on; what was not is dropped.
    pub(super) fn withdraw(&mut self, token: Token) {
        self.withdraw_held(token);
        let name = self.config.name.clone();
        let late = |text: String| {
            RpcError::new(Fault::TimedOut, text).next(format!("missiond status {name}"))
        };
        let waiting = self.queue.len();
        self.queue.retain(|message| message.token != Some(token));
        if self.queue.len() < waiting {
            let why = match self.person_types() {
                true => format!("a person is typing in {name}"),
                false => format!("{name} was busy all the time"),
            };
            let error = late(format!("{why}; the message was not sent"));
            return self.reply(token, Err(error.trace(Trace::Untouched)));
        }
        if self.up_mut().is_some_and(|up| up.forget_sender(token)) {
            let error = late(format!(
                "the message was sent, and the turn of {name} goes on"
            ));
            self.reply(token, Err(error));
        }
    }

    /// The message that was typed last: where it stands in the input box, it is ours.
    pub fn typed_last(&self) -> Option<&str> {
        let up = self.up()?;
        match &up.hands {
            Hands::Pasting { message, .. } | Hands::Submitting { message, .. } => {
                Some(&message.text)
            }
            _ => up.last_message.as_deref(),
        }
    }

    /// The sender's id of the message that is typed, or that the turn is about.
    pub fn message_id(&self) -> Option<&str> {
        let up = self.up()?;
        match &up.hands {
            Hands::Pasting { message, .. } | Hands::Submitting { message, .. } => {
                message.id.as_deref()
            }
            _ => up.turn.as_ref()?.id.as_deref(),
        }
    }

    pub(super) fn was_typed(&mut self, text: String) {
        if let Some(up) = self.up_mut() {
            up.last_message = Some(text);
        }
    }

    /// Types the next message if the input box is free for it.
    pub(super) fn type_next_message(&mut self, now: Instant) {
        self.queue_first_prompt();
        let Some(up) = self.up() else { return };
        let ready = up.hands_are_free() && up.turn.is_none() && up.is_certain();
        if !ready || up.state() != State::Idle || up.dialog().is_some() {
            return;
        }
        let Some(composer) = up.composer().cloned() else {
            return;
        };
        if self.queue.is_empty() || self.is_held(now) {
            return;
        }
        let Some(up) = self.up() else { return };
        if up.is_own_draft(&composer) {
            return self.clear_own_draft(now);
        }
        let Some(message) = self.queue.pop_front() else {
            return;
        };
        if !composer.draft.is_empty() {
            return self.refuse_for_draft(message, &composer.draft);
        }
        self.press(
            &keys::paste(&message.text),
            "paste",
            "a message for an empty input box",
        );
        if let Some(up) = self.up_mut() {
            up.last_message = Some(message.text.clone());
            up.hands = Hands::Pasting {
                message,
                seen: None,
                repaint: Some(now + PASTE_IS_HIDDEN),
                until: now + PASTE_SHOWS,
            };
        }
    }

    /// An interrupt right after sending puts the message back into the input box. It is ours to clear, with one
    /// Ctrl-C and never a second: that would end the program.
    fn clear_own_draft(&mut self, now: Instant) {
        self.press(
            keys::CLEAR,
            "Ctrl-C",
            "our own message stands in the input box, and was never entered or was interrupted",
        );
        if let Some(up) = self.up_mut() {
            up.hands = Hands::Clearing {
                until: now + CLEARED,
            };
        }
    }

    /// A draft that Ctrl-C has not cleared is treated as somebody else's.
    pub(super) fn progress_clearing(&mut self, until: Instant, now: Instant) {
        let Some(up) = self.up_mut() else { return };
        if now < until {
            up.hands = Hands::Clearing { until };
        } else {
            up.last_message = None;
        }
    }

    /// The configured first message of a new conversation.
    fn queue_first_prompt(&mut self) {
        let prompt = self.config.prompt.clone();
        let Some(up) = self.up_mut() else { return };
        if up.prompted || up.state() != State::Idle {
            return;
        }
        up.prompted = true;
        let Some(text) = prompt else { return };
        self.say_next("the first prompt", &text);
    }

    /// A message of missiond's own, before all others.
    pub(super) fn say_next(&mut self, what: &str, text: &str) {
        match keys::message(text, keys::Meaning::default()) {
            Ok(text) => self.queue.push_front(Message {
                token: None,
                text,
                slash: false,
                wait: false,
                task: None,
                id: None,
            }),
            Err(error) => self.tell(What::Warning {
                text: format!("{what} was not sent: {error}"),
            }),
        }
    }

    fn refuse_for_draft(&mut self, message: Message, draft: &str) {
        let name = &self.config.name;
        let text = format!("{name} has a draft in its input box that is not missiond's: {draft}");
        let error = RpcError::new(Fault::Refused, text)
            .next("send or clear it first, by `missiond attach`")
            .trace(Trace::Untouched);
        self.answer_sender(message.token, Err(error));
    }

    pub(super) fn answer_sender(&mut self, token: Option<Token>, reply: Result<Reply, RpcError>) {
        match (token, reply) {
            (Some(token), reply) => self.reply(token, reply),
            (None, Err(error)) => self.tell(What::Warning {
                text: error.message,
            }),
            (None, Ok(_)) => {}
        }
    }

    /// The text was pasted: Enter follows when it is seen and has stood for a moment, and not if a dialog came in
    /// between.
    pub(super) fn progress_pasting(
        &mut self,
        message: Message,
        seen: Option<Instant>,
        repaint: Option<Instant>,
        until: Instant,
        now: Instant,
    ) {
        let Some(up) = self.up_mut() else { return };
        if let Some(dialog) = up.dialog() {
            let text = format!(
                "a dialog came up before Enter, which was withheld: {}",
                up::about(dialog)
            );
            let error = RpcError::new(Fault::Refused, text).trace(Trace::Untouched);
            return self.answer_sender(message.token, Err(error));
        }
        let shown = up
            .composer()
            .is_some_and(|composer| has_arrived(composer, &message));
        let stands = up.state() == State::Idle && up.is_certain() && shown;
        let seen = stands.then(|| seen.unwrap_or(now));
        if seen.is_some_and(|seen| now.saturating_duration_since(seen) >= PASTE_SETTLES) {
            up.hands = Hands::Submitting {
                message,
                again: Some(now + ENTER_IS_LOST),
                until: now + ENTER_WORKS,
            };
            let reason = "the message stands in the input box";
            return self.press_for(Purpose::Submits, keys::ENTER, "Enter", reason);
        }
        if now >= until {
            let text = "the text was not seen in the input box, so Enter was withheld";
            let error = RpcError::new(Fault::Failed, text)
                .next("look at it: missiond screen")
                .trace(Trace::Untouched);
            return self.answer_sender(message.token, Err(error));
        }
        let hidden = seen.is_none() && repaint.is_some_and(|at| now >= at);
        up.hands = Hands::Pasting {
            message,
            seen,
            repaint: repaint.filter(|_| !hidden),
            until,
        };
        if hidden {
            self.effects.push(Effect::Repaint);
        }
    }

    /// Enter was pressed: the message is taken when it is gone from the input box.
    pub(super) fn progress_submitting(
        &mut self,
        message: Message,
        again: Option<Instant>,
        until: Instant,
        now: Instant,
    ) {
        let Some(up) = self.up_mut() else { return };
        // Another text in its place was put there by the Enter, from a menu: nothing was sent.
        let waits = up.state() == State::Idle
            && up.dialog().is_none()
            && up
                .composer()
                .is_none_or(|composer| !composer.draft.is_empty());
        if !waits {
            return self.taken(message, now);
        }
        if now >= until {
            let text = "Enter was pressed, but a text still stands in the input box";
            return self.answer_sender(message.token, Err(RpcError::new(Fault::Failed, text)));
        }
        let same = up
            .composer()
            .is_some_and(|composer| has_arrived(composer, &message));
        let lost = same && up.is_certain() && again.is_some_and(|again| now >= again);
        // On a screen that does not tell it is looked at again later: a time that has passed would be due at once, and
        // again, and nothing else would be heard.
        let later = |at: Instant| if now >= at { now + ENTER_IS_LOST } else { at };
        up.hands = Hands::Submitting {
            message,
            again: again.filter(|_| !lost).map(later),
            until,
        };
        if lost {
            let why = "the message stands there still: the Enter before was lost";
            self.press_for(Purpose::Submits, keys::ENTER, "Enter", why);
        }
    }

    pub(super) fn taken(&mut self, message: Message, now: Instant) {
        self.tell(What::Message { text: message.text });
        let (task, id) = (message.task, message.id);
        let token = match message.token {
            Some(token) if !message.wait => {
                self.reply(token, Ok(Reply::Taken));
                None
            }
            token => token,
        };
        if let Some(up) = self.up_mut() {
            up.hands = Hands::Free;
            up.turn = Some(Turn {
                token,
                task,
                id,
                slash: message.slash,
                began: now,
                over: None,
                idle_since: None,
                looking: false,
            });
        }
    }

    /// Claude Code says that the turn is over; the screen has the last word.
    pub(super) fn turn_is_over(&mut self, over: Over) {
        if let Some(turn) = self.up_mut().and_then(|up| up.turn.as_mut()) {
            turn.over = Some(over);
        }
    }

    /// Looks whether the turn is over, or needs a person.
    pub(super) fn progress_turn(&mut self, now: Instant) {
        let Some(up) = self.up_mut() else { return };
        let waits = up
            .for_person
            .as_ref()
            .map(|for_person| for_person.dialog.clone());
        let dialog = up
            .dialog()
            .filter(|dialog| Some(&dialog.id) == waits.as_ref())
            .cloned();
        let idle = up.state() == State::Idle && up.dialog().is_none() && up.hands_are_free();
        let Some(turn) = up.turn.as_mut() else { return };
        if let Some(dialog) = dialog {
            let token = match turn.task {
                Some(_) => None,
                None => turn.token.take(),
            };
            if let Some(token) = token {
                self.reply(token, Ok(Reply::NeedsPerson(Box::new(dialog))));
            }
            return;
        }
        turn.idle_since = if idle {
            turn.idle_since.or(Some(now))
        } else {
            None
        };
        let quiet = turn
            .idle_since
            .is_some_and(|since| now.saturating_duration_since(since) >= IDLE_IS_OVER);
        if idle && !turn.looking && (turn.over.is_some() || quiet) {
            turn.looking = true;
            // A no or an interrupt calls no hook.
            up.calls.close_turn();
            self.effects.push(Effect::FindAnswer);
        }
    }

    /// Whether the screen shows that the turn is over, and its answer has not been found yet.
    pub fn awaits_answer(&self) -> bool {
        self.up().is_some_and(|up| {
            up.turn.is_some() && up.state() == State::Idle && up.dialog().is_none()
        })
    }

    /// Whether the turn is known to have come to nothing, so that no answer is to be expected.
    pub fn turn_failed(&self) -> bool {
        let turn = self.up().and_then(|up| up.turn.as_ref());
        let over = turn.and_then(|turn| turn.over.as_ref());
        over.is_some_and(|over| over.failure.is_some())
    }

    /// The answer of the turn was found, or what there is of it.
    pub(super) fn found(&mut self, answer: Answer, now: Instant) {
        let Some(up) = self.up_mut() else { return };
        let put_back = up
            .composer()
            .is_some_and(|composer| up.is_own_draft(composer));
        let Some(turn) = up.turn.take() else { return };
        let over = turn.over.or_else(|| put_back.then(Over::interrupted));
        up.failure = answer.api_error();
        self.check_error();
        let answer = with_hook(answer, over);
        if let Some(text) = answer.failure {
            self.tell(What::Failed { text: text.clone() });
            let Some(token) = turn.token else { return };
            return self.reply(token, Err(RpcError::new(Fault::Failed, text)));
        }
        if let Some(text) = &answer.text {
            let duration_ms = now.saturating_duration_since(turn.began).as_millis() as u64;
            self.tell(What::Answer {
                text: text.clone(),
                duration_ms,
            });
        }
        if let Some(token) = turn.token {
            let Answer { text, source, .. } = answer;
            self.reply(token, Ok(Reply::Answered { text, source }));
        }
    }
}

/// Where the transcript had nothing, Claude Code's own word at the end of the turn serves. What stands on the screen
/// is the last resort: after a turn that came to nothing it is the answer of an earlier one.
fn with_hook(answer: Answer, over: Option<Over>) -> Answer {
    match over {
        Some(Over {
            failure: Some(failure),
            ..
        }) if !answer.is_certain() => Answer {
            text: None,
            source: "hook",
            failure: Some(failure),
        },
        Some(Over {
            text: Some(text), ..
        }) if !answer.is_certain() => Answer {
            text: Some(text),
            source: "hook",
            failure: None,
        },
        _ => answer,
    }
}

impl up::Up {
    /// Nobody waits any more for the message with this token; whether there was one.
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

    fn is_own_draft(&self, composer: &Composer) -> bool {
        self.last_message
            .as_ref()
            .is_some_and(|text| shows(composer, text))
    }
}

/// Whether the input box shows this message, or what Claude Code shows in place of a long one.
fn has_arrived(composer: &Composer, message: &Message) -> bool {
    if composer.menu && !message.slash {
        return false;
    }
    shows(composer, &message.text)
}

fn shows(composer: &Composer, text: &str) -> bool {
    !composer.draft.is_empty() && composer.holds(text)
}
