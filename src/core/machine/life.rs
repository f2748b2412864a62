//! Starting, ending and starting again.

use super::cause::{Remains, classify, ended_by_us, in_words};
use super::held::Held;
use super::up::{Hands, Up};
use super::*;
use crate::core::model::{Trace, dropped_messages};
use crate::core::settings::{OnLimit, Restart};
use serde::{Deserialize, Serialize};

#[cfg(test)]
mod tests;

/// Why a slot is down that a person has stopped.
const STOPPED: &str = "stopped";

/// Why a program is being ended.
#[derive(Debug)]
pub(super) enum Ending {
    ByPerson,
    /// It has used up what it may; it stays down, with this reason.
    ByLimit(String),
    /// It counts as a failure, and is started again as after one.
    Failing(Cause, String),
}

impl Ending {
    pub(super) fn of_shim() -> Ending {
        let words = "it was told to end, by somebody other than the daemon";
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

/// Whether a slot is to run, for a daemon that comes after one that was killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DesiredState {
    /// It was running, or about to.
    Wanted,
    /// It was not, for this reason.
    Down { state: State, reason: String },
}

impl Machine {
    /// How the slot stands; `None` while nobody has ever started it.
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

    /// What an earlier daemon knew of the slot. For a machine that has done nothing yet.
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

    /// Its program has ended before this machine began, for this reason; what is known already stands.
    pub fn recall_end(&mut self, why: Option<String>) {
        if let Life::Down { reason, .. } = &mut self.life {
            *reason = reason.take().or(why);
        }
    }

    pub(super) fn start(&mut self, token: Token) {
        match &mut self.life {
            Life::Up(_) => self.reply(token, Ok(Reply::Already)),
            Life::Down { .. } | Life::Waiting { .. } | Life::Unreached { .. } => {
                if token != NOBODY {
                    self.begin_anew();
                } else if let Some(until) = self.held_until {
                    return self.wait_for_the_limit(until);
                }
                self.starters.push(token);
                self.launch();
            }
            Life::Launching => self.starters.push(token),
            Life::Stopping {
                tokens,
                start_again,
                ..
            } => {
                *start_again = true;
                tokens.push(token);
            }
        }
    }

    /// An earlier daemon has seen it: another start would only see it again.
    fn wait_for_the_limit(&mut self, until: Instant) {
        self.cause = Some(Cause::UsageLimit);
        self.life = Life::Waiting {
            until,
            attempt: self.past.restarts,
            reason: Cause::UsageLimit.name().to_owned(),
        };
    }

    /// A person's stop always wins, also against a restart that is under way.
    pub(super) fn stop(&mut self, token: Token, start_again: bool) {
        match &mut self.life {
            Life::Down { .. } | Life::Waiting { .. } | Life::Unreached { .. } if start_again => {
                self.start(token);
            }
            // Something of it may run on all the same, with a shim that is gone or does not answer.
            Life::Down { .. } => {
                self.effects.push(Effect::EndOrphans);
                self.reply(token, Ok(Reply::Done));
            }
            Life::Waiting { .. } | Life::Unreached { .. } => {
                self.effects.push(Effect::EndOrphans);
                let dropped = self.stay_down(self.stopper(&[token]), STOPPED.to_owned());
                self.reply(token, Ok(stopped(dropped)));
            }
            Life::Up(_) => {
                self.let_go("the slot is being stopped");
                self.life = Life::Stopping {
                    tokens: vec![token],
                    start_again,
                    ending: Ending::ByPerson,
                };
                self.effects.push(Effect::StopTree);
            }
            Life::Launching if start_again => self.start(token),
            Life::Launching => {
                self.effects.push(Effect::CancelSpawn);
                self.effects.push(Effect::EndOrphans);
                self.refuse_starters("it was stopped before it had started");
                let dropped = self.stay_down(self.stopper(&[token]), STOPPED.to_owned());
                self.reply(token, Ok(stopped(dropped)));
            }
            Life::Stopping {
                tokens,
                start_again: again,
                ending,
            } => {
                *again = start_again;
                *ending = Ending::ByPerson;
                tokens.push(token);
            }
        }
    }

    pub(super) fn launch(&mut self) {
        self.life = Life::Launching;
        self.past.begin_run();
        self.effects.push(Effect::Spawn);
    }

    pub(super) fn started(&mut self, pid: u32, continues: bool) {
        let mut up = Up::new(pid, continues, Runs::with(self.config.clone()));
        up.own_text = self.typed_before.take();
        self.life = Life::Up(Box::new(up));
        for token in std::mem::take(&mut self.starters) {
            self.reply(token, Ok(Reply::Done));
        }
    }

    fn refuse_starters(&mut self, reason: &str) {
        let text = format!("{} did not start: {reason}", self.config.name);
        let error = Refusal::NotStarted.says(text);
        for token in std::mem::take(&mut self.starters) {
            self.reply(token, Err(error.clone()));
        }
    }

    pub(super) fn not_started(&mut self, reason: String, cause: Cause, now: Instant) {
        self.cause = Some(cause);
        let reason = format!("{}: {reason}", cause.name());
        self.refuse_starters(&reason);
        if cause.is_curable() && self.config.restart != Restart::Never {
            self.tell(What::Warning {
                text: format!("it did not start: {reason}"),
            });
            self.try_again(reason, Duration::ZERO, now);
        } else {
            self.give_up(reason);
        }
    }

    /// A shim lives and does not answer: that is no end of its program, and nothing is started again. Told once.
    pub(super) fn not_reached(&mut self, reason: String, now: Instant) {
        self.refuse_starters(&reason);
        if !matches!(self.life, Life::Unreached { .. }) {
            let text = reason.clone();
            self.tell(What::Warning { text });
        }
        self.life = Life::Unreached {
            reason,
            look_at: Some(now + SHIM_ANSWERS),
        };
    }

    /// Has the slot look for its shim. It answers by `Started`, `NotReached` or `ShimGone`.
    pub(super) fn look_for_shim(&mut self) {
        if let Life::Unreached { look_at, .. } = &mut self.life {
            *look_at = None;
            self.effects.push(Effect::Spawn);
        }
    }

    /// The shim has ended, and the program with it: another one is being started. What waited was for the program before.
    pub(super) fn shim_is_gone(&mut self) {
        self.refuse_queue("its program has ended with its shim");
        self.life = Life::Launching;
        self.past.begin_run();
    }

    pub(super) fn ended(
        &mut self,
        report: ExitReport,
        said: Option<String>,
        limit_reset: Option<Instant>,
        now: Instant,
    ) {
        self.drop_questions();
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
        self.tell(What::Exit {
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

    /// A person's start forgets what was before.
    fn begin_anew(&mut self) {
        self.backoff.forget();
        self.past.begin_anew();
        self.held_until = None;
    }

    /// Ends a program that runs, without a person's wish.
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

    /// Why missiond ends the program that is being ended, if no person wants it.
    pub fn ends_because(&self) -> Option<String> {
        match &self.life {
            Life::Stopping { ending, .. } => ending.reason(),
            _ => None,
        }
    }

    fn stopped(&mut self, tokens: Vec<Token>, start_again: bool, ending: Ending, now: Instant) {
        if start_again {
            self.begin_anew();
            self.starters.extend(tokens);
            return self.launch();
        }
        match ending {
            Ending::ByPerson => {
                self.cause = None;
                let dropped = self.stay_down(self.stopper(&tokens), STOPPED.to_owned());
                for token in tokens {
                    self.reply(token, Ok(stopped(dropped.clone())));
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

    /// Who has stopped it: nobody but the daemon does it for a slot that has left the config.
    fn stopper(&self, tokens: &[Token]) -> &'static str {
        let by_daemon = tokens.iter().all(|token| *token == NOBODY);
        match by_daemon && self.config.removed {
            true => "removal",
            false => "person",
        }
    }

    /// The ids of the messages that are dropped.
    pub(super) fn stay_down(&mut self, by: &str, reason: String) -> Vec<String> {
        let dropped = self.go_down(State::Exited, Some(reason));
        self.tell(What::Stopped { by: by.to_owned() });
        dropped
    }

    /// The program ended and nobody had asked it to.
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

    /// A dialog or a turn is not taken into the next run: whoever wanted it decides again.
    fn report_what_waited(&mut self) {
        let dialog = self
            .dialog()
            .map(|dialog| format!("a dialog ({})", about(dialog)));
        let in_turn = self.up().is_some_and(|up| up.turn.is_some());
        let message = in_turn.then(|| "a message that was not yet answered".to_owned());
        let waited: Vec<String> = dialog.into_iter().chain(message).collect();
        if !waited.is_empty() {
            let text = format!("it ended while something waited: {}", waited.join(", "));
            self.tell(What::Warning { text });
        }
    }

    /// In words; `None` where there are none.
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
                self.tell(What::Restart {
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
        self.tell(What::GaveUp {
            reason: reason.clone(),
        });
        self.go_down(State::Error, Some(reason));
    }

    /// The ids of the messages that are dropped.
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

    /// Everybody who waits for the program is told that it is gone.
    fn let_go(&mut self, why: &str) {
        let Some(up) = self.up_mut() else { return };
        let hands = std::mem::replace(&mut up.hands, Hands::Free);
        let turn = up.turn.take();
        let mut waiting: Vec<Token> = turn.and_then(|turn| turn.token).into_iter().collect();
        waiting.extend(std::mem::take(&mut up.held).iter().map(Held::token));
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
        for token in waiting {
            let error = Refusal::CutOff.says(why).trace(Trace::CutOff);
            self.reply(token, Err(error));
        }
    }

    /// Messages that wait are not taken into the next run. The ids of those that are dropped, which the log and the
    /// events have too; a task goes back to where it waited before.
    fn refuse_queue(&mut self, why: &str) -> Vec<String> {
        let queue = std::mem::take(&mut self.queue);
        let lost = |message: &&Message| message.task.is_none() && message.token.is_some();
        let lost: Vec<&Message> = queue.iter().filter(lost).collect();
        let ids: Vec<String> = lost.iter().filter_map(|lost| lost.id.clone()).collect();
        if !lost.is_empty() {
            let text = format!("{}: {why}", dropped_messages(lost.len(), &ids));
            self.tell(What::Warning { text });
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

fn stopped(dropped: Vec<String>) -> Reply {
    match dropped.is_empty() {
        true => Reply::Done,
        false => Reply::Dropped(dropped),
    }
}
