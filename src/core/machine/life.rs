//! Starting, ending and starting again.

use super::cause::{Remains, classify, ended_by_us, in_words};
use super::held::Held;
use super::up::{Hands, Up};
use super::*;
use crate::core::model::{Cut, Trace, dropped_messages};
use crate::core::settings::{OnLimit, Restart};
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// The reason why a slot is down after a person stopped it.
const STOPPED: &str = "stopped";

/// A request about the program as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Start,
    Stop,
    Restart,
}

/// Why a program is being ended.
#[derive(Debug)]
pub(super) enum Ending {
    ByPerson,
    /// It has reached a limit; it stays down, with this reason.
    ByLimit(String),
    /// It counts as a failure, and is restarted like after one.
    Failing(Cause, String),
}

impl Ending {
    pub(super) fn of_shim() -> Ending {
        let words = "its shim was stopped, but not by the daemon";
        Ending::Failing(Cause::ShimLost, words.to_owned())
    }

    fn reason(&self) -> Option<String> {
        match self {
            Ending::ByPerson => None,
            Ending::ByLimit(why) => Some(why.clone()),
            Ending::Failing(cause, words) => Some(failing(*cause, words)),
        }
    }
}

fn failing(cause: Cause, words: &str) -> String {
    format!("{}: {words}", cause.name())
}

/// Whether a slot should run, for the daemon that follows a killed one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DesiredState {
    /// It was running, or about to.
    Wanted,
    /// It was not, for this reason.
    Down { state: State, reason: String },
}

impl Machine {
    /// The desired state; `None` if nobody has ever started the slot.
    pub fn desired_state(&self) -> Option<DesiredState> {
        let down = |state, reason: &str| DesiredState::Down {
            state,
            reason: reason.to_owned(),
        };
        match &self.life {
            Life::Down { state, reason } => reason.as_deref().map(|reason| down(*state, reason)),
            Life::Stopping {
                start_again: false,
                ending: Ending::ByPerson,
                ..
            } => Some(down(State::Exited, STOPPED)),
            Life::Stopping {
                start_again: false,
                ending: Ending::ByLimit(reason),
                ..
            } => Some(down(State::Exited, reason)),
            _ => Some(DesiredState::Wanted),
        }
    }

    /// Restores what an earlier daemon knew about the slot. Only for a new machine.
    pub fn recall(
        &mut self,
        past: Past,
        standing: Option<&DesiredState>,
        held_until: Option<Instant>,
    ) {
        self.past = past;
        self.held_until = held_until;
        if let Some(DesiredState::Down { state, reason }) = standing {
            self.life = Life::Down {
                state: *state,
                reason: Some(reason.clone()),
            };
        }
    }

    /// Its program ended before this machine began, for this reason; a known reason stays.
    pub fn recall_end(&mut self, why: Option<String>) {
        if let Life::Down { reason, .. } = &mut self.life {
            *reason = reason.take().or(why);
        }
    }

    /// What each request means in each state. A person's stop always wins, also against a restart in progress.
    pub(super) fn run(&mut self, wish: Wish, token: Token) {
        match (&mut self.life, wish) {
            (Life::Up(_), Wish::Start) => self.reply(token, Ok(Reply::Already)),
            (Life::Up(_), Wish::Stop | Wish::Restart) => {
                self.cut_short(wish);
                self.life = Life::Stopping {
                    tokens: vec![token],
                    start_again: wish == Wish::Restart,
                    ending: Ending::ByPerson,
                };
                self.effects.push(Effect::StopTree);
            }
            (Life::Launching { starters }, Wish::Start | Wish::Restart) => starters.push(token),
            (Life::Launching { .. }, Wish::Stop) => {
                self.effects.push(Effect::CancelSpawn);
                self.effects.push(Effect::EndOrphans);
                self.refuse_starters("it was stopped before it had started");
                self.stay_stopped(token);
            }
            (
                Life::Down { .. } | Life::Waiting { .. } | Life::Unreached { .. },
                Wish::Start | Wish::Restart,
            ) => self.start_from_rest(token),
            // Parts of it may still run, with a shim that is gone or does not answer. The daemon's own end does not turn a
            // slot that was given up into one that a person has stopped.
            (Life::Down { state, .. }, Wish::Stop) if *state != State::Error || token == NOBODY => {
                self.effects.push(Effect::EndOrphans);
                self.reply(token, Ok(Reply::Done));
            }
            (Life::Down { .. } | Life::Waiting { .. } | Life::Unreached { .. }, Wish::Stop) => {
                self.effects.push(Effect::EndOrphans);
                self.stay_stopped(token);
            }
            (
                Life::Stopping {
                    tokens,
                    start_again,
                    ending,
                },
                wish,
            ) => {
                *start_again = wish != Wish::Stop;
                if wish != Wish::Start {
                    *ending = Ending::ByPerson;
                }
                tokens.push(token);
            }
        }
    }

    /// A person ends the program: its turn and the waiting messages are not carried over to another run.
    fn cut_short(&mut self, wish: Wish) {
        let why = match wish {
            Wish::Restart => "the slot was restarted",
            Wish::Start | Wish::Stop => "the slot was stopped",
        };
        let waited = self.report_what_waited();
        self.let_go(why);
        let dropped = self.refuse_queue(why);
        self.cut = Cut { waited, dropped };
    }

    fn start_from_rest(&mut self, token: Token) {
        if token != NOBODY {
            self.begin_anew();
        } else if let Some(until) = self.held_until.filter(|_| !self.is_over_budget()) {
            return self.wait_for_the_limit(until);
        }
        self.launch(vec![token]);
    }

    /// No program is known to run, and none is started.
    fn stay_stopped(&mut self, token: Token) {
        let dropped = self.stay_down(self.stopper(&[token]), STOPPED.to_owned());
        let reply = self.take_cut(dropped);
        self.reply(token, Ok(reply));
    }

    /// An earlier daemon has seen the limit: another start would only reach it again.
    fn wait_for_the_limit(&mut self, until: Instant) {
        self.cause = Some(Cause::UsageLimit);
        self.life = Life::Waiting {
            until,
            attempt: self.past.restarts,
            reason: Cause::UsageLimit.name().to_owned(),
        };
    }

    pub(super) fn launch(&mut self, starters: Vec<Token>) {
        self.life = Life::Launching { starters };
        self.past.begin_run();
        self.effects.push(Effect::Spawn);
    }

    pub(super) fn started(&mut self, pid: u32, continues: bool) {
        if !continues {
            self.past.begin_conversation();
        }
        let mut up = Up::new(pid, continues, Runs::with(self.config.clone()));
        up.own_text = self.typed_before.take();
        let starters = self.take_starters();
        self.life = Life::Up(Box::new(up));
        let reply = self.take_cut(Vec::new());
        for token in starters {
            self.reply(token, Ok(reply.clone()));
        }
    }

    fn refuse_starters(&mut self, reason: &str) {
        let text = format!("{} did not start: {reason}", self.config.name);
        let error = Refusal::NotStarted.says(text);
        for token in self.take_starters() {
            self.reply(token, Err(error.clone()));
        }
    }

    fn take_starters(&mut self) -> Vec<Token> {
        match &mut self.life {
            Life::Launching { starters } => std::mem::take(starters),
            _ => Vec::new(),
        }
    }

    pub(super) fn not_started(&mut self, reason: String, cause: Cause, now: Instant) {
        self.cause = Some(cause);
        let reason = format!("{}: {reason}", cause.name());
        self.refuse_starters(&reason);
        if cause.is_curable() && self.config.restart != Restart::Never {
            self.tell(EventKind::Warning {
                text: format!("it did not start: {reason}"),
            });
            self.try_again(reason, Duration::ZERO, now);
        } else {
            self.give_up(reason);
        }
    }

    /// A shim is alive but does not answer: its program has not ended, and nothing is started again. Reported once.
    pub(super) fn not_reached(&mut self, reason: String, now: Instant) {
        self.refuse_starters(&reason);
        if !matches!(self.life, Life::Unreached { .. }) {
            let text = reason.clone();
            self.tell(EventKind::Warning { text });
        }
        self.life = Life::Unreached {
            reason,
            look_at: Some(now + SHIM_ANSWERS),
        };
    }

    /// Makes the slot look for its shim. It answers with `Started`, `NotReached` or `ShimGone`.
    pub(super) fn look_for_shim(&mut self) {
        if let Life::Unreached { look_at, .. } = &mut self.life {
            *look_at = None;
            self.effects.push(Effect::Spawn);
        }
    }

    /// The shim has ended, and the program with it: another one is being started. The waiting messages were for the old program.
    pub(super) fn shim_is_gone(&mut self) {
        self.refuse_queue("its program has ended with its shim");
        self.life = Life::Launching {
            starters: Vec::new(),
        };
        self.past.begin_run();
    }

    pub(super) fn ended(&mut self, end: ProgramEnd, now: Instant) {
        let ProgramEnd {
            report,
            said,
            limit_reset,
        } = end;
        self.drop_questions(now);
        let cause = classify(Remains {
            report: &report,
            said: said.as_deref(),
            at_trust: self.up().is_some_and(Up::ended_at_trust),
        });
        let words = match &self.life {
            Life::Stopping { .. } => ended_by_us(&report),
            _ => in_words(cause, &report, said.as_deref()),
        };
        if cause == Cause::UsageLimit {
            self.held_until = limit_reset;
        }
        self.tell(EventKind::Exit {
            code: report.code,
            signal: report.signal,
            cause: words.clone(),
            ended_at: None,
        });
        match std::mem::replace(
            &mut self.life,
            Life::Down {
                state: State::Exited,
                reason: None,
            },
        ) {
            Life::Up(up) => self.died(*up, cause, words, now),
            Life::Stopping {
                tokens,
                start_again,
                ending,
            } => self.stopped(tokens, start_again, ending, now),
            other => self.life = other,
        }
    }

    /// A person's start clears the history.
    fn begin_anew(&mut self) {
        self.backoff.forget();
        self.past.begin_anew();
        self.held_until = None;
    }

    /// Ends a running program without a person's request.
    pub(super) fn end(&mut self, ending: Ending) {
        let why = match &ending {
            Ending::ByPerson => "the slot is being stopped",
            Ending::ByLimit(why) | Ending::Failing(_, why) => why,
        };
        let why = why.to_owned();
        self.report_what_waited();
        self.let_go(&why);
        self.refuse_queue(&why);
        self.life = Life::Stopping {
            tokens: Vec::new(),
            start_again: false,
            ending,
        };
        self.effects.push(Effect::StopTree);
    }

    /// Why missiond ends the program, if no person requested it.
    pub fn ends_because(&self) -> Option<String> {
        match &self.life {
            Life::Stopping { ending, .. } => ending.reason(),
            _ => None,
        }
    }

    fn stopped(&mut self, tokens: Vec<Token>, start_again: bool, ending: Ending, now: Instant) {
        if start_again {
            self.begin_anew();
            return self.launch(tokens);
        }
        match ending {
            Ending::ByPerson => {
                self.cause = None;
                let dropped = self.stay_down(self.stopper(&tokens), STOPPED.to_owned());
                let reply = self.take_cut(dropped);
                for token in tokens {
                    self.reply(token, Ok(reply.clone()));
                }
            }
            Ending::ByLimit(reason) => {
                self.stay_down("limit", reason);
            }
            Ending::Failing(cause, words) => {
                self.cause = Some(cause);
                let words = failing(cause, &words);
                self.start_again_or_not(cause, words, Duration::ZERO, now);
            }
        }
    }

    /// Who has stopped it: for a slot that has left the config it is the daemon.
    fn stopper(&self, tokens: &[Token]) -> &'static str {
        let by_daemon = tokens.iter().all(|token| *token == NOBODY);
        match by_daemon && self.config.removed {
            true => "removal",
            false => "person",
        }
    }

    /// Returns the ids of the dropped messages.
    pub(super) fn stay_down(&mut self, by: &str, reason: String) -> Vec<String> {
        let dropped = self.go_down(State::Exited, Some(reason));
        self.tell(EventKind::Stopped { by: by.to_owned() });
        dropped
    }

    /// The program ended without a request.
    fn died(&mut self, up: Up, cause: Cause, words: String, now: Instant) {
        let healthy_for = up
            .reached_idle
            .map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.life = Life::Up(Box::new(up));
        self.report_what_waited();
        let why = format!("the program ended ({words})");
        self.let_go(&why);
        self.refuse_queue(&why);
        if cause == Cause::UnknownConversation {
            self.effects.push(Effect::ForgetConversation);
        }
        self.cause = Some(cause);
        self.start_again_or_not(cause, words, healthy_for, now);
    }

    fn start_again_or_not(&mut self, cause: Cause, words: String, healthy: Duration, now: Instant) {
        let limited = cause == Cause::UsageLimit;
        if limited {
            let (name, text) = words.split_once(": ").unwrap_or((cause.name(), &words));
            self.trouble(name, text);
        }
        if !cause.is_curable() {
            self.give_up(words);
        } else if limited && self.config.supervision.on_limit == OnLimit::Stop {
            self.stay_down("limit", words);
        } else if cause.wants_restart(self.config.restart) {
            self.try_again(words, healthy, now);
        } else {
            self.go_down(State::Exited, Some(words));
        }
    }

    /// A dialog or a turn is not carried over to the next run: its owner decides again.
    fn report_what_waited(&mut self) -> Vec<String> {
        let dialog = self
            .dialog()
            .map(|dialog| format!("a dialog ({})", about(dialog)));
        let turn = self.up().and_then(|up| up.turn.as_ref());
        let before = self.entered_before.as_ref();
        let id = turn.map(|turn| &turn.id);
        let id = id.or_else(|| before.map(|before| &before.message.id));
        let message = id.map(|id| match id {
            Some(id) => format!("a message that was not yet answered ({id})"),
            None => "a message that was not yet answered".to_owned(),
        });
        let waited: Vec<String> = dialog.into_iter().chain(message).collect();
        if !waited.is_empty() {
            let text = format!("it ended while something waited: {}", waited.join(", "));
            self.tell(EventKind::Warning { text });
        }
        waited
    }

    /// The number of queued messages as a text; `None` if there are none.
    pub(super) fn queued_messages(&self) -> Option<String> {
        match self.queue.len() {
            0 => None,
            1 => Some("1 queued message".to_owned()),
            count => Some(format!("{count} queued messages")),
        }
    }

    pub(super) fn take_settings(&mut self, config: Arc<SlotConfig>) {
        self.backoff.set_pace(Pace::of(&config.supervision));
        self.config = config;
    }

    fn try_again(&mut self, reason: String, healthy_for: Duration, now: Instant) {
        match self.backoff.failed(now, healthy_for) {
            backoff::NextTry::After(delay) => {
                let limited = self.cause == Some(Cause::UsageLimit);
                let limit_reset = self.held_until.filter(|_| limited);
                let until = limit_reset.unwrap_or(now).max(now + delay);
                self.past.restarts += 1;
                let attempt = self.past.restarts;
                self.tell(EventKind::Restart {
                    attempt,
                    delay_ms: until.saturating_duration_since(now).as_millis() as u64,
                });
                self.life = Life::Waiting {
                    until,
                    attempt,
                    reason,
                };
            }
            backoff::NextTry::GiveUp => {
                self.give_up(format!("{reason}; it ended too often in a short time"))
            }
        }
    }

    fn give_up(&mut self, reason: String) {
        self.tell(EventKind::GaveUp {
            reason: reason.clone(),
        });
        self.go_down(State::Error, Some(reason));
    }

    /// Returns the ids of the dropped messages.
    fn go_down(&mut self, state: State, reason: Option<String>) -> Vec<String> {
        let why = match reason.as_deref() {
            None => "the slot is not running",
            Some(STOPPED) => "the slot was stopped",
            Some(reason) => reason,
        };
        let dropped = self.refuse_queue(why);
        self.life = Life::Down { state, reason };
        dropped
    }

    /// Replies to everybody who waits for the program that it is gone.
    fn let_go(&mut self, why: &str) {
        let before = self.entered_before.take().map(|before| before.message);
        let Some(up) = self.up_mut() else { return };
        let hands = std::mem::replace(&mut up.hands, Hands::Free);
        let turn = up.turn.take();
        let before = before.map(|message| (message.token, message.id));
        let open = turn.as_ref().map(|turn| (turn.token, turn.id.clone()));
        let unheard = open.or(before.clone()).filter(|(token, _)| token.is_none());
        let unheard = unheard.and_then(|(_, id)| id);
        let before = before.and_then(|(token, _)| token);
        let mut waiting: Vec<Token> = turn.and_then(|turn| turn.token).into_iter().collect();
        waiting.extend(std::mem::take(&mut up.held).iter().map(Held::token));
        waiting.extend(before);
        match hands {
            Hands::Pasting { message, .. } => {
                self.not_entered(&message, &format!("Enter was not pressed: {why}"));
                match message.token {
                    Some(token) => waiting.push(token),
                    None => self.refuse_message(message, Refusal::CutOff.says(why)),
                }
            }
            Hands::Submitting { message, .. } => waiting.extend(message.token),
            Hands::Choosing(choosing) if choosing.steps.decided => self.chosen(choosing),
            Hands::Choosing(choosing) => {
                self.take_verdict_back(&choosing, why);
                waiting.extend(choosing.asker.tokens());
            }
            Hands::Interrupting { wanted, .. } => {
                waiting.extend(wanted.into_iter().map(|one| one.token));
            }
            Hands::Clearing { .. } | Hands::Free => {}
        }
        let error = Refusal::CutOff.says(why).trace(Trace::CutOff);
        if let Some(id) = unheard {
            let why = error.clone();
            self.effects.push(Effect::Drop { id, why });
        }
        for token in waiting {
            self.reply(token, Err(error.clone()));
        }
    }

    /// The reply to a stop or restart: what it has cut off, with the messages that were dropped after it.
    fn take_cut(&mut self, dropped: Vec<String>) -> Reply {
        let mut cut = std::mem::take(&mut self.cut);
        cut.dropped.extend(dropped);
        match cut == Cut::default() {
            true => Reply::Done,
            false => Reply::Cut(cut),
        }
    }

    /// Waiting messages are not carried over to the next run. Returns the ids of the dropped ones, which are also in the log and
    /// in the events; a task goes back to its queue.
    fn refuse_queue(&mut self, why: &str) -> Vec<String> {
        let queue = std::mem::take(&mut self.queue);
        let lost = |message: &&Message| message.task.is_none() && message.token.is_some();
        let lost: Vec<&Message> = queue.iter().filter(lost).collect();
        let ids: Vec<String> = lost.iter().filter_map(|lost| lost.id.clone()).collect();
        if !lost.is_empty() {
            let text = format!("{}: {why}", dropped_messages(lost.len(), &ids));
            self.tell(EventKind::Warning { text });
        }
        for message in queue {
            let why = Refusal::Dropped.says(format!("not sent: {why}"));
            let why = why.trace(Trace::Untouched);
            if let Some(id) = message.id {
                let why = why.clone();
                self.effects.push(Effect::Drop { id, why });
            }
            if let Some(token) = message.token {
                self.reply(token, Err(why));
            }
        }
        ids
    }
}
