//! From a message in the queue to its answer.
//!
//! If a dialog is open, a plain Enter approves it. So missiond pastes, waits for the text in the input box, and only then presses
//! Enter.

use super::own_text::shows;
use super::up::{Hands, OpenTurn, Over};
use super::*;
use crate::core::claude::keys;
use crate::core::model::Trace;

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
        if self.queue.len() >= MAX_QUEUE {
            let text = format!("{MAX_QUEUE} messages wait for {name} already");
            return Err(Refusal::QueueFull
                .says(text)
                .next("wait until it has answered some of them"));
        }
        match &self.life {
            Life::Down {
                state: State::Error,
                reason,
            } => {
                let why = reason.as_deref().unwrap_or("it failed");
                Err(Refusal::GivenUp
                    .says(format!("{name} has given up: {why}"))
                    .next(format!("missiond start {name}")))
            }
            Life::Down { .. } => Err(Refusal::NotRunning
                .says(format!("{name} is not running"))
                .next(format!("missiond start {name}"))),
            Life::Stopping {
                start_again: false, ..
            } => Err(Refusal::Stopping.says(format!("{name} is being stopped"))),
            Life::Up(up) => up
                .dialog()
                .map_or(Ok(()), |dialog| Err(at_dialog(name, dialog))),
            Life::Waiting { .. }
            | Life::Unreached { .. }
            | Life::Launching { .. }
            | Life::Stopping { .. } => Ok(()),
        }
    }

    /// A dialog at the start waits for a person, and nothing can be typed before it is answered: the senders of waiting messages
    /// learn which question is open. During a turn a message waits for the end of the turn, including its dialogs.
    pub(super) fn refuse_at_start(&mut self) {
        let Some(up) = self.up().filter(|up| up.reached_idle.is_none()) else {
            return;
        };
        let waits = up.asks.for_person.as_ref().map(|waits| &waits.dialog);
        let of_start = |dialog: &&Dialog| {
            use DialogKind::{ApiKey, Other, Trust};
            matches!(dialog.kind, Trust | ApiKey | Other) && Some(&dialog.id) == waits
        };
        let Some(dialog) = up.dialog().filter(of_start) else {
            return;
        };
        let error = at_dialog(&self.config.name, dialog).trace(Trace::Untouched);
        for message in std::mem::take(&mut self.queue) {
            self.refuse_message(message, error.clone());
        }
    }

    /// The message that was typed last: if it is in the input box, it is missiond's own.
    pub fn typed_last(&self) -> Option<&str> {
        let up = self.up()?;
        match &up.hands {
            Hands::Pasting { message, .. } | Hands::Submitting { message, .. } => {
                Some(&message.text)
            }
            _ => up.own_text.as_ref().map(|own| own.text()),
        }
    }

    /// The sender's id of the message that is being typed, or that the turn is about.
    pub fn message_id(&self) -> Option<&str> {
        let up = self.up()?;
        match &up.hands {
            Hands::Pasting { message, .. } | Hands::Submitting { message, .. } => {
                message.id.as_deref()
            }
            _ => up.turn.as_ref()?.id.as_deref(),
        }
    }

    /// Types the next message if the input box is free.
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
        if self.agent_may_ask() {
            return;
        }
        // If an input box is painted over a dialog, the typed text would go to the dialog.
        match &up.dispute {
            Some(dispute) if dispute.may_pass() => return,
            Some(_) => return self.refuse_in_doubt(),
            None if up.hides_question() => return,
            None => {}
        }
        let next = self.queue.front();
        if next.is_some_and(|message| up.has_begun(message, &composer)) {
            return self.go_on_typing(now);
        }
        let own = up.own_draft(&composer);
        if own.is_some_and(|own| !own.is_cleared()) {
            return self.clear_own_draft(now);
        }
        let stays = own.is_some();
        let Some(message) = self.queue.pop_front() else {
            return;
        };
        if stays {
            return self.refuse_for_own_draft(message);
        }
        if !composer.draft.is_empty() {
            return self.refuse_for_draft(message, &composer.draft);
        }
        self.press_for(
            message.person.as_ref(),
            Purpose::Types,
            &keys::paste(&message.text),
            "paste",
            "a message for an empty input box",
        );
        if let Some(up) = self.up_mut() {
            up.own_text = Some(OwnText::pasted(&message.text, up.own_text.take()));
            up.hands = Hands::Pasting {
                message,
                seen: None,
                repaint: Some(now + PASTE_IS_HIDDEN),
                until: now + PASTE_SHOWS,
            };
        }
    }

    /// The screen is in doubt: the message is refused, and nothing is typed.
    fn refuse_in_doubt(&mut self) {
        let Some(why) = self.distrust() else { return };
        let Some(message) = self.queue.pop_front() else {
            return;
        };
        let error = self.doubtful_input_box(&why).trace(Trace::Untouched);
        self.refuse_message(message, error);
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

    /// A message from missiond itself, before all others.
    pub(super) fn say_next(&mut self, what: &str, text: &str) {
        match keys::message(text, keys::KeyMeaning::default()) {
            Ok(text) => self.queue.push_front(Message {
                token: None,
                text,
                slash: false,
                wait: false,
                task: None,
                id: None,
                person: None,
            }),
            Err(error) => self.tell(EventKind::Warning {
                text: format!("{what} was not sent: {error}"),
            }),
        }
    }

    /// A message is not sent. If nobody waits for it any more, its result is recorded.
    pub(super) fn refuse_message(&mut self, message: Message, error: RpcError) {
        if let (None, Some(id)) = (message.token, message.id) {
            let why = error.clone();
            self.effects.push(Effect::Drop { id, why });
        }
        self.answer_sender(message.token, Err(error));
    }

    /// Refuses a message that was accepted before. Its sender may have gone, so the log says it too.
    pub(super) fn fail_message(&mut self, message: Message, error: RpcError) {
        if let (Some(_), Some(id)) = (message.token, &message.id) {
            let text = format!("message {id}: {}", error.message);
            self.tell(EventKind::Warning { text });
        }
        self.refuse_message(message, error);
    }

    pub(super) fn answer_sender(&mut self, token: Option<Token>, reply: Result<Reply, RpcError>) {
        match (token, reply) {
            (Some(token), reply) => self.reply(token, reply),
            (None, Err(error)) => self.tell(EventKind::Warning {
                text: error.message,
            }),
            (None, Ok(_)) => {}
        }
    }

    /// The text was pasted: Enter follows when it is visible and stable for a moment, unless a dialog came in between.
    pub(super) fn progress_pasting(
        &mut self,
        message: Message,
        seen: Option<Instant>,
        repaint: Option<Instant>,
        until: Instant,
        now: Instant,
    ) {
        let agreed = !self.may_meet_dialog();
        let Some(up) = self.up_mut() else { return };
        if let Some(dialog) = up.dialog() {
            let text = format!(
                "a dialog came up before Enter, which was withheld: {}",
                up::about(dialog)
            );
            self.not_entered(&message, &text);
            let error = Refusal::DialogCame.says(text).trace(Trace::Untouched);
            return self.fail_message(message, error);
        }
        let shown = up
            .composer()
            .is_some_and(|composer| has_arrived(composer, &message));
        let stands = up.state() == State::Idle && up.is_certain() && shown && agreed;
        if let Some(own) = up.own_text.as_mut().filter(|_| stands) {
            own.is_seen();
        }
        let seen = stands.then(|| seen.unwrap_or(now));
        if seen.is_some_and(|seen| now.saturating_duration_since(seen) >= PASTE_SETTLES) {
            let person = message.person.clone();
            up.hands = Hands::Submitting {
                message,
                again: Some(now + ENTER_IS_LOST),
                until: now + ENTER_WORKS,
            };
            let reason = "the message is in the input box";
            return self.press_enter(person.as_ref(), reason);
        }
        if now >= until {
            let text = match agreed {
                true => "the text was not seen in the input box, so Enter was withheld",
                false => "what the screen shows is doubtful, so Enter was withheld",
            };
            self.not_entered(&message, text);
            let error = Refusal::PasteNotSeen
                .says(text)
                .next("look at it: missiond screen")
                .trace(Trace::Untouched);
            return self.fail_message(message, error);
        }
        let hidden = seen.is_none() && repaint.is_some_and(|at| now >= at);
        up.hands = Hands::Pasting {
            message,
            seen,
            // A text that is visible by then needs no redraw.
            repaint: repaint.filter(|at| now < *at),
            until,
        };
        if hidden {
            self.effects.push(Effect::Repaint);
        }
    }

    /// Enter was pressed: the message is accepted when it is gone from the input box.
    pub(super) fn progress_submitting(
        &mut self,
        message: Message,
        again: Option<Instant>,
        until: Instant,
        now: Instant,
    ) {
        let meets_dialog = self.may_meet_dialog();
        let Some(up) = self.up_mut() else { return };
        // If another text is there instead, the Enter has chosen it from a menu: nothing was sent.
        let waits = up.state() == State::Idle
            && up.dialog().is_none()
            && up
                .composer()
                .is_none_or(|composer| !composer.draft.is_empty());
        if !waits {
            return self.taken(message, now);
        }
        if now >= until {
            let text = "Enter was pressed, but a text is still in the input box";
            self.not_entered(&message, text);
            let error = Refusal::EnterNotTaken.says(text);
            return self.refuse_message(message, error);
        }
        let same = up
            .composer()
            .is_some_and(|composer| has_arrived(composer, &message));
        let is_sure = up.is_certain() && !meets_dialog;
        let lost = same && is_sure && again.is_some_and(|again| now >= again);
        // If the screen does not show it, look again later: a time in the past would be due at once, again and again, and block
        // all other inputs.
        let later = |at: Instant| if now >= at { now + ENTER_IS_LOST } else { at };
        let person = message.person.clone();
        up.hands = Hands::Submitting {
            message,
            again: again.filter(|_| !lost).map(later),
            until,
        };
        if lost {
            let why = "the message is still there: the last Enter was lost";
            self.press_enter(person.as_ref(), why);
        }
    }

    fn press_enter(&mut self, person: Option<&Person>, why: &str) {
        self.press_for(person, Purpose::Submits, keys::ENTER, "Enter", why);
    }

    pub(super) fn taken(&mut self, message: Message, now: Instant) {
        let turn = OpenTurn::of(&message, now);
        self.past.works();
        self.tell(EventKind::Message { text: message.text });
        let token = match message.token {
            Some(token) if !message.wait => {
                self.reply(token, Ok(Reply::Taken));
                None
            }
            token => token,
        };
        if let Some(up) = self.up_mut() {
            up.hands = Hands::Free;
            up.turn = Some(OpenTurn { token, ..turn });
        }
    }

    /// Claude Code reports that the turn is over; the screen must confirm it.
    pub(super) fn turn_is_over(&mut self, over: Over) {
        if let Some(turn) = self.up_mut().and_then(|up| up.turn.as_mut()) {
            turn.over = Some(over);
        }
    }

    /// Checks whether the turn is over, or needs a person.
    pub(super) fn progress_turn(&mut self, now: Instant) {
        let Some(up) = self.up_mut() else { return };
        let waits = up
            .asks
            .for_person
            .as_ref()
            .map(|for_person| for_person.dialog.clone());
        let dialog = up
            .dialog()
            .filter(|dialog| Some(&dialog.id) == waits.as_ref())
            .cloned();
        let works = !matches!(up.state(), State::Idle | State::Starting | State::Exited);
        let idle = up.state() == State::Idle && up.dialog().is_none() && up.hands_are_free();
        // An idle screen that another witness contradicts may be painted over a dialog.
        let disputed = up.is_disputed();
        let Some(turn) = up.turn.as_mut() else { return };
        turn.worked |= works;
        turn.unsure_since = turn.unsure_since.filter(|_| idle);
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
        turn.idle_since = if idle && !disputed {
            turn.idle_since.or(Some(now))
        } else {
            None
        };
        let quiet = turn
            .idle_since
            .is_some_and(|since| now.saturating_duration_since(since) >= IDLE_IS_OVER);
        if idle && !turn.looking && (turn.over.is_some() || quiet) {
            turn.looking = true;
            // Claude Code calls no hook after a no or an interrupt.
            up.gate.calls.close_turn();
            self.effects.push(Effect::FindAnswer);
        }
    }

    /// Whether the screen shows that the turn is over, and its answer has not been found yet.
    pub fn awaits_answer(&self) -> bool {
        self.up().is_some_and(|up| {
            up.turn.is_some() && up.state() == State::Idle && up.dialog().is_none()
        })
    }

    /// Whether the turn is known to have failed, so that no answer is expected.
    pub fn turn_failed(&self) -> bool {
        let turn = self.up().and_then(|up| up.turn.as_ref());
        let over = turn.and_then(|turn| turn.over.as_ref());
        over.is_some_and(|over| over.failure.is_some())
    }

    /// Whether the turn may not have begun, or not be over: only the screen says that it is over, and a slow program draws late.
    /// If hooks work, they or the transcript report the end. An idle screen that another witness contradicts does not end a turn.
    fn may_go_on(&mut self, answer: &Answer, now: Instant) -> bool {
        let Some(up) = self.up_mut() else {
            return false;
        };
        let gated = up.gate.heard;
        let disputed = up.is_disputed();
        let Some(turn) = up.turn.as_mut() else {
            return false;
        };
        let known = answer.is_certain() || turn.over.is_some() || !turn.is_prompt;
        if known || turn.worked && !gated {
            return false;
        }
        if disputed {
            turn.looking = false;
            return true;
        }
        let since = *turn.unsure_since.get_or_insert(now);
        let goes_on = now.saturating_duration_since(since) < TURN_SHOWS;
        if goes_on {
            turn.looking = false;
            turn.idle_since = Some(now);
        }
        goes_on
    }

    /// The answer of the turn was found, completely or partly. Returns whether the turn has ended.
    pub(super) fn found(&mut self, answer: Answer, now: Instant) -> bool {
        if self.may_go_on(&answer, now) {
            return false;
        }
        self.end_turn(answer, now);
        true
    }

    fn end_turn(&mut self, answer: Answer, now: Instant) {
        let Some(up) = self.up_mut() else { return };
        let put_back = up
            .composer()
            .is_some_and(|composer| up.own_draft(composer).is_some());
        let Some(turn) = up.turn.take() else { return };
        let answer = match turn.unsure_since {
            // The text on the screen is the answer of an earlier turn.
            Some(_) if !turn.worked && !answer.is_certain() => Answer {
                text: None,
                source: "screen",
                failure: Some(no_turn()),
            },
            _ => answer,
        };
        let over = turn.over.or_else(|| put_back.then(Over::interrupted));
        up.errors.failure = answer.api_error();
        self.check_error();
        let answer = with_hook(answer, over);
        if let Some(text) = answer.failure {
            self.tell(EventKind::Failed { text: text.clone() });
            let Some(token) = turn.token else { return };
            return self.reply(token, Err(Refusal::TurnFailed.says(text)));
        }
        if let Some(text) = &answer.text {
            let duration_ms = now.saturating_duration_since(turn.began).as_millis() as u64;
            self.tell(EventKind::Answer {
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

/// If the transcript has no answer, the text that Claude Code reported at the end of the turn is used. The screen is the last
/// resort: after a failed turn it shows the answer of an earlier one.
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

/// Whether the input box shows this message, or Claude Code's placeholder for a long one.
fn has_arrived(composer: &Composer, message: &Message) -> bool {
    if composer.menu && !message.slash {
        return false;
    }
    shows(composer, &message.text)
}

fn at_dialog(name: &str, dialog: &Dialog) -> RpcError {
    let text = format!("{name} is at a dialog: {}", up::about(dialog));
    let next = advice::to_end(name, dialog);
    Refusal::AtDialog.says(text).next(next)
}

fn no_turn() -> String {
    let seconds = TURN_SHOWS.as_secs();
    format!("the message was taken, but nothing was seen of its turn for {seconds} s")
}
