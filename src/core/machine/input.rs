//! The machine's input.

use super::{
    Cause, Entered, Interruption, KnownRules, Measure, Opinion, OwnText, Runs, Stroke, Token,
};
use crate::core::claude::reading::{Composer, Dialog, State};
use crate::core::claude::{HookEvent, keys, transcript};
use crate::core::model::{ExitReport, Person, RpcError};
use crate::core::settings::SlotConfig;
use crate::core::text::dollars::Dollars;
use std::sync::Arc;
use std::time::Instant;

/// What the screen shows, as far as the machine needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    pub state: State,
    /// Whether this screen was recognised; otherwise no key is pressed.
    pub certain: bool,
    /// The terminal has a new size, and the program has not redrawn yet: the content will be known soon.
    pub redrawing: bool,
    pub dialog: Option<Dialog>,
    pub composer: Option<Composer>,
    pub mode: Option<String>,
    pub last_error: Option<String>,
    pub background: u32,
}

/// A message for the program; `keys::message` has already cleaned its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub token: Option<Token>,
    pub text: String,
    pub slash: bool,
    /// Whether the reply waits for the answer; otherwise it comes when the message is accepted.
    pub wait: bool,
    /// The task that the text belongs to. The task waits for its end, even if a person is asked in between.
    pub task: Option<String>,
    /// The sender's own id for it.
    pub id: Option<String>,
    /// The person who sent it, if one did.
    pub person: Option<Person>,
}

impl Message {
    /// It is for the model: neither a command nor a line for the shell.
    pub fn is_prompt(&self) -> bool {
        !self.slash && !self.text.starts_with('!')
    }
}

/// A person's answer to a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    pub token: Token,
    pub answer: keys::Answer,
    pub dialog: Option<String>,
    pub reason: Option<String>,
    /// Whose answer it is.
    pub person: Person,
    /// The caller's id for it.
    pub id: Option<String>,
    /// The person has looked, and insists although the slot is in doubt.
    pub anyway: bool,
    /// The person insists although a rule now denies the call.
    pub against_rule: bool,
}

/// A person's answer to a dialog when its deciding key is pressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deciding {
    /// The caller's id for the answer.
    pub id: String,
    pub dialog: String,
    pub chosen: String,
}

/// The result of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub text: Option<String>,
    /// `transcript`, `hook` or `screen`.
    pub source: &'static str,
    /// The turn ended in an API error or an interrupt.
    pub failure: Option<String>,
}

impl Answer {
    /// The API error that ended the turn. Only the transcript distinguishes it from text that a tool has printed.
    pub(super) fn api_error(&self) -> Option<String> {
        let failure = self.failure.as_deref()?;
        let is_error = self.source == "transcript" && failure != transcript::INTERRUPTED;
        is_error.then(|| failure.to_owned())
    }

    /// The answer exists, and belongs to this turn: text on the screen may belong to another one.
    pub(super) fn is_certain(&self) -> bool {
        self.source != "screen" && (self.text.is_some() || self.failure.is_some())
    }
}

/// How the slot's program ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramEnd {
    pub report: ExitReport,
    /// The last text of the program.
    pub said: Option<String>,
    /// When the usage limit is reset, if the program said so last.
    pub limit_reset: Option<Instant>,
}

/// An input of the machine.
#[derive(Debug)]
pub enum Input {
    Saw(Observation),
    /// The last key was not pressed, because by then the screen showed this.
    Withheld(Observation),
    /// The last key was not pressed, and is not tried again.
    Unpressed {
        error: Box<RpcError>,
        sight: Option<Observation>,
    },
    Heard(Token, HookEvent),
    /// The program runs; `continues` if it resumes a conversation.
    Started {
        pid: u32,
        continues: bool,
    },
    /// The version of the program that was just started has no rehearsal: its screens alone allow nothing.
    Unrehearsed,
    /// The program could not be started.
    NotStarted {
        reason: String,
        cause: Cause,
    },
    Ended(ProgramEnd),
    Found(Answer),
    /// The answer of the rules to [`Effect::Judge`].
    Judged {
        id: u64,
        opinion: Opinion,
    },
    /// The result of a health check.
    Measured(Measure),
    /// The account's usage limit was reached; it is reset at `until`, if the screen says when.
    Limited {
        text: String,
        until: Option<Instant>,
    },
    /// So much was spent on this day, which is over at `ends`; days are counted.
    CostOn {
        day: i32,
        ends: Instant,
        grown: Dollars,
    },
    RoleCost(RoleCost),
    /// Why the witnesses differ; `None` if they agree.
    Witnessed(Option<String>),
    TimePassed,
    /// Its time limit is reached, with this reason.
    Expire(String),
    Start(Token),
    Stop(Token),
    Restart(Token),
    Send(Message),
    /// The sender of the message with this id, which an earlier daemon has entered, waits for its answer.
    Rejoin {
        token: Token,
        id: String,
    },
    /// The client no longer waits: a message that was not typed yet is dropped.
    Withdraw(Token),
    Confirm(Confirmation),
    Interrupt(Interruption),
    /// A person typed this at the slot's own terminal.
    Typed {
        person: Person,
        strokes: Vec<Stroke>,
    },
    /// Its program runs in a shim that is alive but does not answer, for this reason.
    NotReached(String),
    /// The shim that did not answer has ended; another program is being started.
    ShimGone,
    /// The person who typed there has left.
    KeyboardFree,
    /// A person has written keys into the terminal, without the machine.
    KeysWritten,
    /// The settings that the adopted program was started with; the next start may have others.
    RunsWith(Runs),
    /// An earlier daemon has served the gate of the adopted program, and has left this note about the open calls.
    WasGated(Option<String>),
    /// The last text that an earlier daemon has typed in the adopted program; it may still be in the input box.
    WasTyped(OwnText),
    /// An earlier daemon has pressed Enter for this message, and no daemon has reported its result.
    WasEntered(Box<Entered>),
    /// Somebody other than the daemon has stopped the shim, which ends the program.
    ShimEnds,
    /// New rules are in force.
    Rules(KnownRules),
    /// New settings, for the next start.
    Settings(Arc<SlotConfig>),
}

/// What all slots of a role have cost on a day, together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoleCost {
    pub day: i32,
    /// When the day is over.
    pub ends: Instant,
    pub cost: Dollars,
    /// A person was told already, if that is too much.
    pub is_told: bool,
}
