//! What comes to the machine.

use super::{Cause, Interruption, KnownRules, Measure, Opinion, OwnText, Runs, Stroke, Token};
use crate::core::claude::reading::{Composer, Dialog, State};
use crate::core::claude::{HookEvent, keys, transcript};
use crate::core::model::{ExitReport, Person, RpcError};
use crate::core::settings::SlotConfig;
use std::sync::Arc;
use std::time::Instant;

/// What the screen shows, as far as the machine needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
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
    /// Who has sent it, if a person did.
    pub person: Option<Person>,
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
    /// The caller's id of it.
    pub id: Option<String>,
    /// The person has looked, and means it though the slot is doubtful.
    pub anyway: bool,
}

/// A person's answer to a dialog at the moment of the key that decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deciding {
    /// The caller's id of the answer.
    pub id: String,
    pub dialog: String,
    pub chosen: String,
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
    pub(super) fn api_error(&self) -> Option<String> {
        let failure = self.failure.as_deref()?;
        let is_error = self.source == "transcript" && failure != transcript::INTERRUPTED;
        is_error.then(|| failure.to_owned())
    }

    /// There is one, and it is of this turn: what stands on the screen may be of another.
    pub(super) fn is_certain(&self) -> bool {
        self.source != "screen" && (self.text.is_some() || self.failure.is_some())
    }
}

/// What comes to the machine.
#[derive(Debug)]
pub enum Input {
    Saw(Observation),
    /// The last key was not pressed, since by then the screen showed this.
    Withheld(Observation),
    /// The last key was not pressed, and is not tried again.
    Unpressed {
        error: Box<RpcError>,
        sight: Option<Observation>,
    },
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
        limit_reset: Option<Instant>,
    },
    Found(Answer),
    /// What the rules say to [`Effect::Judge`].
    Judged {
        id: u64,
        opinion: Opinion,
    },
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
    Interrupt(Interruption),
    /// A person typed this at the slot's own terminal.
    Typed {
        person: Person,
        strokes: Vec<Stroke>,
    },
    /// Its program runs in a shim that lives and does not answer, for this reason.
    NotReached(String),
    /// The shim that did not answer has ended; another program is being started.
    ShimGone,
    /// Whoever typed there has gone.
    KeyboardFree,
    /// A person has written keys into the terminal, past the machine.
    KeysWritten,
    /// The program that was taken up was started with these settings, whatever holds for its next start.
    RunsWith(Runs),
    /// An earlier daemon has heard the gate of the program that was taken up, and has left this note of the open calls.
    WasGated(Option<String>),
    /// An earlier daemon has typed this last in the program that is taken up; it may stand in the input box still.
    WasTyped(OwnText),
    /// This message was taken at that time, and no daemon has told what came of it.
    WasInTurn(String, Instant),
    /// Its shim was told to end, by somebody other than the daemon, and ends the program.
    ShimEnds,
    /// New rules are in force.
    Rules(KnownRules),
    /// New settings, for the next start.
    Settings(Arc<SlotConfig>),
}
