//! What a slot does next: `handle(Input, now) -> Vec<Effect>`. Pure: no IO, and time is an argument.
//!
//! The machine holds one life (`Life`) and, while the program is up, its current key sequence (`up::Hands`): at most one at a
//! time. Everything it wants done is returned as an [`Effect`].

mod advice;
mod answering;
mod backoff;
mod by_keys;
mod by_rule;
mod calls;
mod cause;
mod doubt;
mod drawings;
mod effect;
mod entered;
mod gate;
mod held;
mod holds;
mod identity;
mod input;
mod interrupting;
mod judging;
mod keyboard;
mod late;
mod life;
mod limit_reset;
mod limits;
mod modes;
mod own_text;
mod phase;
mod refusal;
pub mod remedies;
mod runs;
mod sending;
mod several;
mod timers;
mod up;
mod waits;
mod withdrawing;
mod withheld;

#[cfg(test)]
mod tests;

pub use answering::{kind_name, verdict_event};
pub use backoff::Pace;
pub use by_keys::KeysReach;
pub use calls::Known;
pub use cause::{Cause, KERNEL_KILLED};
pub use effect::{Decider, Effect, Purpose, Reply};
pub use entered::Entered;
pub use input::{
    Answer, Confirmation, Deciding, Input, Message, Observation, ProgramEnd, RoleCost,
};
pub use interrupting::{Interrupter, Interruption};
pub use judging::{KnownRules, Opinion, RulesQuestion, Wants};
pub use keyboard::{HANDS_OFF, Stroke, strokes};
pub use life::DesiredState;
pub use limit_reset::limit_reset_in;
pub use limits::{Measure, Past};
pub use own_text::OwnText;
pub use phase::Phase;
pub use refusal::Refusal;
pub use runs::Runs;
pub use several::SUBMIT;
pub use up::{about, call_in_a_line, target_of};
pub use waits::{ENTER_IS_LOST, IDLE_IS_OVER, PASTE_IS_HIDDEN, PASTE_SETTLES, SETTLED};

use crate::core::claude::HookEvent;
use crate::core::claude::reading::{Choice, Composer, Dialog, DialogKind, State};
use crate::core::claude::transcript;
use crate::core::model::Person;
use crate::core::model::{Cut, EventKind, RpcError};
use crate::core::policy::{Ask, Asking, Circumstances, Decision, Verdict};
use crate::core::settings::SlotConfig;
use backoff::Backoff;
use calls::Marks;
use judging::Judging;
use life::Wish;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use timers::Timers;
use up::Up;
use waits::*;

/// Identifies an outside request, which gets exactly one reply.
pub type Token = u64;

/// The token for requests without a reply: those of the daemon itself, at its start and its end.
pub const NOBODY: Token = 0;

/// The most messages that wait for an idle input box: more means a client in a loop.
pub const MAX_QUEUE: usize = 64;

#[derive(Debug)]
enum Life {
    /// Not running, and nothing in progress.
    Down {
        state: State,
        reason: Option<String>,
    },
    /// Starts again by itself at `until`.
    Waiting {
        until: Instant,
        attempt: u32,
        reason: String,
    },
    /// Its program runs in a shim that is alive but does not answer. It is adopted when the shim answers; nothing is started
    /// beside it.
    Unreached {
        reason: String,
        /// When to look at the shim again; `None` while that is in progress.
        look_at: Option<Instant>,
    },
    /// `Effect::Spawn` was sent; the tokens are answered when its result is known.
    Launching {
        starters: Vec<Token>,
    },
    Up(Box<Up>),
    /// Being ended; the tokens are answered when it is gone.
    Stopping {
        tokens: Vec<Token>,
        start_again: bool,
        ending: life::Ending,
    },
}

#[derive(Debug)]
pub struct Machine {
    config: Arc<SlotConfig>,
    rules: KnownRules,
    judging: Judging,
    life: Life,
    backoff: Backoff,
    past: Past,
    /// Why it last ended or did not start.
    cause: Option<Cause>,
    /// The time of the usage limit's reset; nothing is sent before.
    held_until: Option<Instant>,
    queue: VecDeque<Message>,
    /// What a person's stop or restart has cut off, for their reply.
    cut: Cut,
    marks: Marks,
    /// What an earlier daemon has typed in the program that is about to be adopted.
    typed_before: Option<OwnText>,
    /// A message of an earlier daemon, until the screen of the adopted program is known.
    entered_before: Option<Entered>,
    timers: Timers,
    effects: Vec<Effect>,
}

impl Machine {
    pub fn new(config: Arc<SlotConfig>, rules: KnownRules, seed: u64) -> Machine {
        let pace = Pace::of(&config.supervision);
        Machine {
            config,
            rules,
            judging: Judging::default(),
            life: Life::Down {
                state: State::Exited,
                reason: None,
            },
            backoff: Backoff::new(pace, seed),
            past: Past::default(),
            cause: None,
            held_until: None,
            queue: VecDeque::new(),
            cut: Cut::default(),
            marks: Marks::new(seed),
            typed_before: None,
            entered_before: None,
            timers: Timers::default(),
            effects: Vec::new(),
        }
    }

    /// Handles one input and returns the effects, in order.
    pub fn handle(&mut self, input: Input, now: Instant) -> Vec<Effect> {
        let before = self.state();
        let start = cfg!(debug_assertions).then(|| self.before(&input, now));
        self.take(input, now);
        self.advance(now);
        self.set_timers();
        if let Some(start) = start {
            self.check(&start, now);
        }
        let after = self.state();
        if before != after {
            self.tell(EventKind::State {
                from: before,
                to: after,
            });
        }
        // A start takes time, so all other effects go first.
        self.effects
            .sort_by_key(|effect| matches!(effect, Effect::Spawn));
        std::mem::take(&mut self.effects)
    }

    /// What each input means in each state. All states accept outside requests; inputs about a program count only while it runs.
    fn take(&mut self, input: Input, now: Instant) {
        match (&mut self.life, input) {
            (_, Input::Start(token)) => self.run(Wish::Start, token),
            (_, Input::Stop(token)) => self.run(Wish::Stop, token),
            (_, Input::Restart(token)) => self.run(Wish::Restart, token),
            (_, Input::Started { pid, continues }) => self.started(pid, continues),
            (_, Input::NotStarted { reason, cause }) => self.not_started(reason, cause, now),
            (_, Input::NotReached(reason)) => self.not_reached(reason, now),
            (Life::Unreached { .. }, Input::ShimGone) => self.shim_is_gone(),
            (_, Input::TimePassed | Input::ShimGone) => {}
            (_, Input::Ended(end)) => self.ended(end, now),
            (_, Input::Send(message)) => self.send(message),
            (_, Input::Rejoin { token, id }) => self.rejoin(token, &id),
            (_, Input::Withdraw(token)) => self.withdraw(token),
            (_, Input::Confirm(answer)) => self.confirm_when_drawn(answer, now),
            (_, Input::Interrupt(wanted)) => self.interrupt_when_drawn(wanted, now),
            (_, Input::Heard(token, event)) => self.heard(token, event, now),
            (_, Input::Judged { id, opinion }) => self.judged(id, opinion, now),
            (_, Input::Limited { text, until }) => self.limited(text, until),
            (_, Input::CostOn { day, ends, grown }) => self.cost_on(day, ends, grown),
            (_, Input::RoleCost(cost)) => self.role_cost_on(cost),
            (_, Input::Rules(rules)) => self.take_rules(rules, now),
            (_, Input::Settings(config)) => self.take_settings(config),
            (_, Input::WasTyped(own)) => self.was_typed(own),
            (_, Input::WasEntered(entered)) => self.was_entered(*entered),
            (Life::Up(_), Input::Saw(sight)) => self.saw(sight, now),
            (Life::Up(_), Input::Withheld(sight)) => self.withheld(sight, now),
            (Life::Up(_), Input::Unpressed { error, sight }) => self.unpressed(*error, sight, now),
            (Life::Up(_), Input::Found(answer)) => self.turn_found(answer, now),
            (Life::Up(_), Input::Measured(measure)) => self.measured(measure, now),
            (Life::Up(_), Input::Expire(why)) => self.end(life::Ending::ByLimit(why)),
            (Life::Up(_), Input::ShimEnds) => self.end(life::Ending::of_shim()),
            (Life::Up(_), Input::Typed { person, strokes }) => self.typed(&person, &strokes, now),
            (Life::Up(_), Input::KeyboardFree) => self.keyboard_is_free(),
            (Life::Up(up), Input::KeysWritten) => up.gate.calls.all_answered(),
            (Life::Up(up), Input::Witnessed(why)) => up.witnessed(why, now),
            (Life::Up(up), Input::Unrehearsed) => up.origin.unrehearsed = true,
            (Life::Up(up), Input::RunsWith(runs)) => up.origin.runs = runs,
            (Life::Up(_), Input::WasGated(note)) => self.was_gated(note.as_deref(), now),
            // They are about a program, and none is up.
            (
                _,
                Input::Saw(_)
                | Input::Withheld(_)
                | Input::Unpressed { .. }
                | Input::Found(_)
                | Input::Measured(_)
                | Input::Expire(_)
                | Input::ShimEnds
                | Input::Typed { .. }
                | Input::KeyboardFree
                | Input::KeysWritten
                | Input::Witnessed(_)
                | Input::Unrehearsed
                | Input::RunsWith(_)
                | Input::WasGated(_),
            ) => {}
        }
    }

    /// When `Input::TimePassed` is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Does what the current state and time allow.
    fn advance(&mut self, now: Instant) {
        self.give_up_late_questions(now);
        match &self.life {
            Life::Waiting { until, .. } if now >= *until => self.launch(Vec::new()),
            Life::Unreached { look_at, .. } if look_at.is_some_and(|at| now >= at) => {
                self.look_for_shim();
            }
            Life::Up(_) => self.advance_up(now),
            _ => {}
        }
    }

    fn advance_up(&mut self, now: Instant) {
        self.resume_turn(now);
        self.progress_doubt(now);
        self.progress_calls(now);
        self.progress_typing(now);
        self.progress_held(now);
        self.progress_hands(now);
        self.settle_late_answers();
        if !self.person_types() {
            self.answer_by_rule(now);
        }
        self.progress_turn(now);
        self.refuse_at_start();
        if !self.person_types() {
            self.type_next_message(now);
        }
        self.stop_at_rest(now);
    }

    pub fn state(&self) -> State {
        match &self.life {
            Life::Down { state, .. } => *state,
            Life::Waiting { .. } | Life::Stopping { .. } => State::Exited,
            Life::Unreached { .. } => State::Error,
            Life::Launching { .. } => State::Starting,
            Life::Up(up) => up.state(),
        }
    }

    pub fn restarts(&self) -> u32 {
        self.past.restarts
    }

    /// Why it last ended or did not start, by name.
    pub fn cause(&self) -> Option<&'static str> {
        self.cause.map(Cause::name)
    }

    /// The task that is being typed or worked on.
    pub fn task(&self) -> Option<&str> {
        self.up().and_then(Up::task)
    }

    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// How many messages have no answer yet, also those that are being typed or worked on.
    pub fn unanswered(&self) -> usize {
        let before = usize::from(self.entered_before.is_some());
        self.queue.len() + before + self.up().map_or(0, Up::unanswered)
    }

    pub fn is_up(&self) -> bool {
        matches!(self.life, Life::Up(_))
    }

    /// Whether the machine knows of a running program: it works, or is being ended.
    pub fn has_program(&self) -> bool {
        self.is_up() || self.is_stopping()
    }

    /// Whether the program is being ended.
    pub fn is_stopping(&self) -> bool {
        matches!(self.life, Life::Stopping { .. })
    }

    /// Whether no part of the program may still run.
    pub fn is_gone(&self) -> bool {
        matches!(
            self.life,
            Life::Down { .. } | Life::Waiting { .. } | Life::Unreached { .. }
        )
    }

    /// The settings for the next start.
    pub fn config(&self) -> &Arc<SlotConfig> {
        &self.config
    }

    pub fn dialog(&self) -> Option<&Dialog> {
        self.up().and_then(Up::dialog)
    }

    /// Why no rule answered the current dialog.
    pub fn why_a_person(&self) -> Option<String> {
        self.up()
            .and_then(|up| up.asks.for_person.as_ref())
            .map(|for_person| for_person.why.clone())
    }

    pub fn background(&self) -> u32 {
        self.up()
            .and_then(|up| up.sight.as_ref())
            .map_or(0, |sight| sight.background)
    }

    pub fn pid(&self) -> Option<u32> {
        self.up().map(|up| up.origin.pid)
    }

    pub fn is_gated(&self) -> bool {
        self.up().is_some_and(|up| up.gate.heard)
    }

    /// The last API error, or why the slot is down.
    pub fn last_error(&self) -> Option<String> {
        match &self.life {
            Life::Down { reason, .. } => reason.clone(),
            Life::Waiting { reason, .. } | Life::Unreached { reason, .. } => Some(reason.clone()),
            Life::Up(up) => up.last_error(),
            Life::Launching { .. } | Life::Stopping { .. } => None,
        }
    }

    /// The current activity in a few words for a person.
    pub fn doing(&self, now: Instant) -> Option<String> {
        match &self.life {
            Life::Down { reason, .. } => reason.clone(),
            Life::Waiting {
                until,
                attempt,
                reason,
            } => {
                let left = limits::in_whole_seconds(until.saturating_duration_since(now));
                Some(format!("{reason}; restart {attempt} in {left}"))
            }
            Life::Unreached { reason, .. } => Some(reason.clone()),
            Life::Launching { .. } => Some("starting".to_owned()),
            Life::Up(up) => {
                let doubt = self.distrust().map(|why| format!("doubtful: {why}"));
                doubt.or_else(|| up.doing()).or_else(|| self.held_back(now))
            }
            Life::Stopping { .. } => Some("stopping".to_owned()),
        }
    }

    fn up(&self) -> Option<&Up> {
        match &self.life {
            Life::Up(up) => Some(up),
            _ => None,
        }
    }

    fn up_mut(&mut self) -> Option<&mut Up> {
        match &mut self.life {
            Life::Up(up) => Some(up),
            _ => None,
        }
    }

    fn tell(&mut self, what: EventKind) {
        self.effects.push(Effect::Tell(what));
    }

    fn reply(&mut self, token: Token, reply: Result<Reply, RpcError>) {
        self.effects.push(Effect::Reply(token, reply));
    }

    /// Presses a key that no person has requested.
    fn press(&mut self, purpose: Purpose, bytes: &[u8], key: &str, reason: &str) {
        self.press_for(None, purpose, bytes, key, reason);
    }

    fn press_for(
        &mut self,
        person: Option<&Person>,
        purpose: Purpose,
        bytes: &[u8],
        key: &str,
        reason: &str,
    ) {
        let (key, reason) = (key.to_owned(), reason.to_owned());
        self.effects.push(Effect::Press {
            bytes: bytes.to_vec(),
            key,
            reason,
            purpose,
            person: person.cloned(),
        });
    }

    /// The Enter of a typed message is not pressed, or had no effect.
    fn not_entered(&mut self, message: &Message, why: &str) {
        self.effects.push(Effect::NoEffect {
            key: "Enter",
            why: why.to_owned(),
            person: message.person.clone(),
        });
    }
}
