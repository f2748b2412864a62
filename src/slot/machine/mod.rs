//! What a slot does next: `handle(Input, now) -> Vec<Effect>`. Pure: no IO, and time comes in.
//!
//! The machine holds one life (`Life`) and, while the program is up, what its hands are doing
//! (`up::Hands`): at most one key sequence at a time. Everything it wants done comes out as an [`Effect`].

mod advice;
mod answering;
mod backoff;
mod by_keys;
mod calls;
mod cause;
mod doubt;
mod gate;
mod held;
mod interrupting;
mod keyboard;
mod life;
mod lifted;
mod limits;
mod modes;
mod rules;
mod sending;
mod several;
mod up;
mod waits;
mod withheld;

#[cfg(test)]
mod tests;

pub use backoff::Pace;
pub use by_keys::KeysReach;
pub use calls::Known;
pub use cause::{Cause, KERNEL_KILLED};
pub use keyboard::{HANDS_OFF, Stroke, strokes};
pub use life::Standing;
pub use lifted::lifted_in;
pub use limits::{Measure, Past};
pub use up::{about, target_of};
pub use waits::{ENTER_IS_LOST, IDLE_IS_OVER, PASTE_IS_HIDDEN, PASTE_SETTLES, SETTLED};

use crate::config::SlotConfig;
use crate::control::protocol::{RpcError, What};
use crate::hook::HookEvent;
use crate::policy::{Ask, Circumstances, Decision, PermissionPolicy, Verdict};
use crate::reading::{Choice, Composer, Dialog, DialogKind, State};
use crate::shim::ExitReport;
use crate::transcript;
use backoff::Backoff;
use calls::Marks;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use up::Up;
use waits::*;

/// Names a question from outside that gets exactly one reply.
pub type Token = u64;

/// Whoever asks under this name hears nothing: the daemon itself, at its start and its end.
pub const NOBODY: Token = 0;

/// Messages that may wait for an idle input box: more is a client in a loop, not a conversation.
pub const MAX_QUEUE: usize = 64;

/// What the screen shows, as far as the machine needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    pub state: State,
    /// Whether this screen could be named; on one that could not, no key is pressed.
    pub certain: bool,
    /// The terminal has another size, and the program has yet to draw for it: what it shows will be known soon.
    pub redrawing: bool,
    pub dialog: Option<Dialog>,
    pub composer: Option<Composer>,
    pub mode: Option<String>,
    pub last_error: Option<String>,
    pub background: u32,
}

/// A message on its way to the program; its text has been through `keys::message`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub token: Option<Token>,
    pub text: String,
    pub slash: bool,
    /// The reply waits for the answer; else it comes when the message was taken.
    pub wait: bool,
    /// The task that it is the text of. It is waited for to its end, whatever a person is asked in between.
    pub task: Option<String>,
    /// The sender's own id of it.
    pub id: Option<String>,
}

/// A person's answer to a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    pub token: Token,
    pub answer: crate::keys::Answer,
    pub dialog: Option<String>,
    pub reason: Option<String>,
    /// Whose answer it is.
    pub uid: u32,
    /// He has looked, and means it though the slot is doubtful.
    pub anyway: bool,
}

/// What was found at the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub text: Option<String>,
    /// `transcript`, `hook` or `screen`.
    pub source: &'static str,
    /// The turn ended in an API error or an interrupt.
    pub failure: Option<String>,
}

impl Answer {
    /// The API error in which the turn ended. Only the transcript tells it from what a tool could claim.
    fn api_error(&self) -> Option<String> {
        let failure = self.failure.as_deref()?;
        let is_error = self.source == "transcript" && failure != transcript::INTERRUPTED;
        is_error.then(|| failure.to_owned())
    }

    /// There is one, and it is of this turn: what stands on the screen may be of another.
    fn is_certain(&self) -> bool {
        self.source != "screen" && (self.text.is_some() || self.failure.is_some())
    }
}

#[derive(Debug)]
pub enum Input {
    Saw(Sight),
    /// The last key was not pressed, since by then the screen showed this.
    Withheld(Sight),
    /// The last key, one that approves, was not pressed, since the audit can't be written.
    Unaudited,
    Heard(Token, HookEvent),
    /// The program runs; `continues` where it goes on with a conversation.
    Started {
        pid: u32,
        continues: bool,
    },
    /// The screens of the program that was just started were never tried: they alone allow nothing.
    Unrehearsed,
    /// The program could not be started.
    NotStarted {
        reason: String,
        cause: Cause,
    },
    Ended {
        report: ExitReport,
        said: Option<String>,
        /// When the usage limit is lifted, where it said so last.
        lifted: Option<Instant>,
    },
    Found(Answer),
    /// The slot was looked at.
    Measured(Measure),
    /// The account's usage limit was reached; it is lifted at `until`, where the screen says when.
    Limited {
        text: String,
        until: Option<Instant>,
    },
    /// Why the witnesses differ, or that they agree.
    Witnessed(Option<String>),
    TimePassed,
    /// Its time is over, for this reason.
    Expire(String),
    Start(Token),
    Stop(Token),
    Restart(Token),
    Send(Message),
    /// The client no longer waits: a message that was not yet typed is dropped.
    Withdraw(Token),
    Confirm(Confirmation),
    Interrupt(Token),
    /// A person typed this at the slot's own terminal.
    Typed {
        uid: u32,
        strokes: Vec<Stroke>,
    },
    /// Whoever typed there has gone.
    KeyboardFree,
    /// An earlier daemon has heard the gate of the program that was taken up.
    WasGated,
    /// An earlier daemon has typed this last; it may stand in the input box still.
    WasTyped(String),
    /// New rules are in force.
    Rules(Arc<dyn Judge>),
    /// New settings, for the next start.
    Settings(Arc<SlotConfig>),
}

#[derive(Debug, PartialEq)]
pub enum Effect {
    Spawn,
    /// The start that `Spawn` has begun is not wanted any more.
    CancelSpawn,
    /// The conversation is gone: the next start begins another one.
    ForgetConversation,
    /// Write these bytes to the program, once.
    Press {
        bytes: Vec<u8>,
        key: String,
        reason: String,
        purpose: Purpose,
    },
    /// End the whole tree of the slot.
    StopTree,
    /// End what a shim that is gone has left of it, and one that does not answer.
    EndRemains,
    /// Have the program draw its whole screen again, with no key: something else may be drawn over it.
    Repaint,
    /// Look for the answer of the turn that has just ended.
    FindAnswer,
    /// Find out when the usage limit that this text tells of is lifted.
    FindReset(String),
    Reply(Token, Result<Reply, RpcError>),
    Tell(What),
    /// Write this down before anything that follows leaves.
    Audit(Verdict, Box<Ask>, Decider),
    /// A call that is not what the gate has judged: written down.
    Alarm(String, Box<Ask>),
}

/// What a key is for, where that matters to who presses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Any,
    /// It ends a message.
    Submits,
    /// It is a step towards something other than a no: not without an entry in the audit.
    Approves,
}

/// Who decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decider {
    /// A rule, at a dialog.
    Policy,
    /// A rule, at the gate.
    Gate {
        /// What the hook answers, if anything.
        told: Option<Decision>,
        /// The agent of Claude Code that made the call.
        agent: Option<String>,
    },
    Person {
        uid: u32,
    },
    /// A person or their program, by keys that were written into the dialog.
    Keys {
        uid: u32,
        pid: Option<i32>,
        keys: String,
    },
}

#[derive(Debug, PartialEq)]
pub enum Reply {
    Done,
    /// There was nothing to do.
    Already,
    Taken,
    Answered {
        text: Option<String>,
        source: &'static str,
    },
    NeedsPerson(Box<Dialog>),
    Confirmed {
        dialog: String,
        chosen: String,
    },
    Interrupted(&'static str),
    Hook(Option<Value>),
}

/// The rules that the machine asks; pure from its side. A policy that decides on tool calls alone leaves every
/// other dialog to a person.
pub trait Judge: PermissionPolicy + std::fmt::Debug {
    /// On a dialog that is no tool call.
    fn dialog(&self, _kind: DialogKind) -> Decision {
        Decision::Ask
    }

    /// Told to Claude with a denial.
    fn deny_reason(&self) -> Option<String> {
        None
    }

    /// Whether a call does no more than read inside the slot's directory.
    fn only_reads_the_project(&self, _ask: &Ask) -> bool {
        false
    }

    /// What the gate answers about a call.
    fn at_the_gate(&self, ask: &Ask, circumstances: Circumstances) -> Verdict {
        let only_reads = || self.only_reads_the_project(ask);
        crate::policy::gate::answer(self.decide(ask), circumstances, only_reads)
    }

    /// The narrow rule that `always` adds for a call; why it adds none, where that would not help.
    fn rule_for_always(&self, _ask: &Ask) -> Result<String, String> {
        Err("this policy is no file to which a rule could be added".to_owned())
    }

    /// The deny rules in Claude Code's own words, for its settings.
    fn deny_rules(&self) -> Vec<String> {
        Vec::new()
    }
}

#[derive(Debug)]
enum Life {
    /// Not running, and nothing is under way.
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
    /// `Effect::Spawn` is out.
    Launching,
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
    judge: Arc<dyn Judge>,
    life: Life,
    backoff: Backoff,
    past: Past,
    /// Why it last ended or did not start.
    cause: Option<Cause>,
    /// The usage limit is lifted then; nothing is sent before.
    held_until: Option<Instant>,
    queue: VecDeque<Message>,
    /// Starters that wait for the outcome of `Effect::Spawn`.
    starters: Vec<Token>,
    marks: Marks,
    effects: Vec<Effect>,
}

impl Machine {
    pub fn new(config: Arc<SlotConfig>, judge: Arc<dyn Judge>, seed: u64) -> Machine {
        let pace = Pace::of(&config.care);
        Machine {
            config,
            judge,
            life: Life::Down {
                state: State::Exited,
                reason: None,
            },
            backoff: Backoff::new(pace, seed),
            past: Past::default(),
            cause: None,
            held_until: None,
            queue: VecDeque::new(),
            starters: Vec::new(),
            marks: Marks::new(seed),
            effects: Vec::new(),
        }
    }

    /// Takes one input and says what is to be done, in order.
    pub fn handle(&mut self, input: Input, now: Instant) -> Vec<Effect> {
        let before = self.state();
        match input {
            Input::Saw(sight) => self.saw(sight, now),
            Input::Withheld(sight) => self.withheld(sight, now),
            Input::Unaudited => self.unaudited(),
            Input::Heard(token, event) => self.heard(token, event, now),
            Input::Started { pid, continues } => self.started(pid, continues),
            Input::Unrehearsed => self.unrehearsed(),
            Input::NotStarted { reason, cause } => self.not_started(reason, cause, now),
            Input::Ended {
                report,
                said,
                lifted,
            } => self.ended(report, said, lifted, now),
            Input::Found(answer) => self.turn_found(answer, now),
            Input::Measured(measure) => self.measured(measure, now),
            Input::Limited { text, until } => self.limited(text, until),
            Input::Witnessed(why) => self.witnessed(why, now),
            Input::TimePassed => {}
            Input::Expire(why) => self.expire(why),
            Input::Start(token) => self.start(token),
            Input::Stop(token) => self.stop(token, false),
            Input::Restart(token) => self.stop(token, true),
            Input::Send(message) => self.send(message),
            Input::Withdraw(token) => self.withdraw(token),
            Input::Confirm(confirmation) => self.confirm_when_drawn(confirmation, now),
            Input::Interrupt(token) => self.interrupt_when_drawn(token, now),
            Input::Typed { uid, strokes } => self.typed(uid, &strokes, now),
            Input::KeyboardFree => self.keyboard_is_free(),
            Input::WasGated => self.was_gated(),
            Input::WasTyped(text) => self.was_typed(text),
            Input::Rules(judge) => self.take_rules(judge),
            Input::Settings(config) => self.take_settings(config),
        }
        self.advance(now);
        let after = self.state();
        if before != after {
            self.tell(What::State {
                from: before,
                to: after,
            });
        }
        // A start takes its time: everything else is said before.
        self.effects
            .sort_by_key(|effect| matches!(effect, Effect::Spawn));
        std::mem::take(&mut self.effects)
    }

    /// When `Input::TimePassed` is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match &self.life {
            Life::Waiting { until, .. } => Some(*until),
            Life::Up(up) => {
                let waits = !self.queue.is_empty() && !self.person_types();
                let held = self.held_until.filter(|_| waits);
                [up.deadline(), self.rest_ends(), held]
                    .into_iter()
                    .flatten()
                    .min()
            }
            Life::Down { .. } | Life::Launching | Life::Stopping { .. } => None,
        }
    }

    /// Does whatever the present state and time allow.
    fn advance(&mut self, now: Instant) {
        match &self.life {
            Life::Waiting { until, .. } if now >= *until => self.launch(),
            Life::Up(_) => self.advance_up(now),
            _ => {}
        }
    }

    fn advance_up(&mut self, now: Instant) {
        self.progress_doubt(now);
        self.progress_typing(now);
        self.progress_held(now);
        self.progress_hands(now);
        if !self.person_types() {
            self.answer_by_rule(now);
        }
        self.progress_turn(now);
        if !self.person_types() {
            self.type_next_message(now);
        }
        self.stop_at_rest(now);
    }

    pub fn state(&self) -> State {
        match &self.life {
            Life::Down { state, .. } => *state,
            Life::Waiting { .. } | Life::Stopping { .. } => State::Exited,
            Life::Launching => State::Starting,
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

    pub fn is_up(&self) -> bool {
        matches!(self.life, Life::Up(_))
    }

    /// Whether anything of the program may still run.
    pub fn is_gone(&self) -> bool {
        matches!(self.life, Life::Down { .. } | Life::Waiting { .. })
    }

    pub fn config(&self) -> &Arc<SlotConfig> {
        &self.config
    }

    pub fn dialog(&self) -> Option<&Dialog> {
        self.up().and_then(Up::dialog)
    }

    /// Why no rule answered the dialog that is up.
    pub fn why_a_person(&self) -> Option<String> {
        self.up()
            .and_then(|up| up.for_person.as_ref())
            .map(|for_person| for_person.why.clone())
    }

    pub fn background(&self) -> u32 {
        self.up()
            .and_then(|up| up.sight.as_ref())
            .map_or(0, |sight| sight.background)
    }

    pub fn pid(&self) -> Option<u32> {
        self.up().map(|up| up.pid)
    }

    pub fn is_gated(&self) -> bool {
        self.up().is_some_and(|up| up.gated)
    }

    /// The last API error, or why the slot is down.
    pub fn last_error(&self) -> Option<String> {
        match &self.life {
            Life::Down { reason, .. } => reason.clone(),
            Life::Waiting { reason, .. } => Some(reason.clone()),
            Life::Up(up) => up.last_error(),
            Life::Launching | Life::Stopping { .. } => None,
        }
    }

    /// What it is doing, in a few words for a person.
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
            Life::Launching => Some("starting".to_owned()),
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

    fn tell(&mut self, what: What) {
        self.effects.push(Effect::Tell(what));
    }

    fn reply(&mut self, token: Token, reply: Result<Reply, RpcError>) {
        self.effects.push(Effect::Reply(token, reply));
    }

    fn press(&mut self, bytes: &[u8], key: &str, reason: &str) {
        self.press_for(Purpose::Any, bytes, key, reason);
    }

    fn press_for(&mut self, purpose: Purpose, bytes: &[u8], key: &str, reason: &str) {
        let (key, reason) = (key.to_owned(), reason.to_owned());
        self.effects.push(Effect::Press {
            bytes: bytes.to_vec(),
            key,
            reason,
            purpose,
        });
    }
}
