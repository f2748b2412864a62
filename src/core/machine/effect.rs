//! The machine's output: what its owner has to do.

use super::{RulesQuestion, Token};
use crate::core::claude::reading::Dialog;
use crate::core::model::{Cut, EventKind, Person, RpcError};
use crate::core::policy::{Ask, Decision, Verdict};
use crate::core::text::dollars::Dollars;
use serde_json::Value;

/// An action for the owner of the machine.
#[derive(Debug, PartialEq)]
pub enum Effect {
    Spawn,
    /// The start that `Spawn` has begun is no longer wanted.
    CancelSpawn,
    /// The conversation is gone: the next start begins a new one.
    ForgetConversation,
    /// Write these bytes to the program, once.
    Press {
        bytes: Vec<u8>,
        key: String,
        reason: String,
        purpose: Purpose,
        /// The person who wants it pressed, if there is one.
        person: Option<Person>,
    },
    /// Record in the audit that a following key is not pressed, or that a pressed key had no effect.
    NoEffect {
        key: &'static str,
        why: String,
        person: Option<Person>,
    },
    /// End the slot's whole process tree.
    StopTree,
    /// End the orphans of a lost shim, and a shim that does not answer.
    EndOrphans,
    /// Make the program redraw its whole screen, without a key: something else may be drawn over it.
    Repaint,
    /// Find the answer of the turn that has just ended.
    FindAnswer,
    /// Ask the rules.
    Judge(Box<RulesQuestion>),
    /// Find out when the usage limit in this text is reset.
    FindReset(String),
    /// Find out on which day this was spent.
    DateCost(Dollars),
    /// Record that a queued message with an id was dropped, or that its turn was cut off.
    Drop {
        id: String,
        why: RpcError,
    },
    Reply(Token, Result<Reply, RpcError>),
    Tell(EventKind),
    /// Write this to the audit before any later effect leaves.
    Audit(Verdict, Box<Ask>, Decider),
    /// Record a call that is not the one that the gate has judged.
    Alarm(String, Box<Ask>),
}

/// What a key is for, if that matters to whoever presses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A no or an interrupt. It is pressed even if the audit can't be written; every other key is not.
    Declines,
    /// Part of a message, a key that makes room for one, or a person's own key.
    Types,
    /// It ends a message.
    Submits,
    /// A step towards something other than a no.
    Approves,
}

/// Who decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decider {
    /// A rule, at a dialog.
    Policy,
    /// A rule, at the gate.
    Gate {
        /// The hook's answer, if it has one.
        told: Option<Decision>,
        /// The agent of Claude Code that made the call.
        agent: Option<String>,
    },
    Person(Person),
    /// A person or their program, by keys written into the dialog.
    Keys {
        person: Person,
        keys: String,
    },
}

/// The reply to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Done,
    /// It was stopped or restarted, which has cut this off.
    Cut(Cut),
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
    /// No message of an earlier daemon has this id, or its result was reported.
    Unknown,
    Hook(Option<Value>),
}
