//! What the machine wants done.

use super::{Question, Token};
use crate::core::claude::reading::Dialog;
use crate::core::model::{Person, RpcError, What};
use crate::core::policy::{Ask, Decision, Verdict};
use serde_json::Value;

/// Something to be done.
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
        /// Who wants it pressed, if a person does.
        person: Option<Person>,
    },
    /// A key that was to follow one that was pressed is not pressed, or one that was pressed had no effect: written down.
    NoEffect {
        key: &'static str,
        why: String,
        person: Option<Person>,
    },
    /// End the whole tree of the slot.
    StopTree,
    /// End what a shim that is gone has left of it, and one that does not answer.
    EndOrphans,
    /// Have the program draw its whole screen again, with no key: something else may be drawn over it.
    Repaint,
    /// Look for the answer of the turn that has just ended.
    FindAnswer,
    /// Ask the rules.
    Judge(Box<Question>),
    /// Find out when the usage limit that this text tells of is lifted.
    FindReset(String),
    /// A message with an id was dropped while it waited: write that down.
    Drop {
        id: String,
        why: RpcError,
    },
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
    /// It is a no, or an interrupt. It is pressed also if it can't be written to the audit: every other key is not.
    Declines,
    /// It is part of a message, makes room for one, or is a person's own.
    Types,
    /// It ends a message.
    Submits,
    /// It is a step towards something other than a no.
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
    Person(Person),
    /// A person or their program, by keys that were written into the dialog.
    Keys {
        person: Person,
        keys: String,
    },
}

/// What whoever asked is told.
#[derive(Debug, PartialEq)]
pub enum Reply {
    Done,
    /// Stopped, and the messages with these ids, which waited, were dropped.
    Dropped(Vec<String>),
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
