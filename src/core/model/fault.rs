//! Errors: the kind of failure, the sentence and the next step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kind of failure, which also decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// It failed: 1.
    Failed,
    /// Wrong usage, config or an unknown name: 2.
    Usage,
    /// Wrong state, another dialog, policy: 4.
    Refused,
    /// Done so far, a person is needed: 5.
    NeedsPerson,
    /// Refused because the daemon is full; nothing was done: 6.
    Full,
    /// Dropped because it did not read the requested data: 1.
    TooSlow,
    /// 124.
    TimedOut,
}

impl Fault {
    pub fn exit_code(self) -> u8 {
        match self {
            Fault::Failed | Fault::TooSlow => 1,
            Fault::Usage => 2,
            Fault::Refused => 4,
            Fault::NeedsPerson => 5,
            Fault::Full => 6,
            Fault::TimedOut => 124,
        }
    }
}

/// An error on the wire, in the envelope's `error.data`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    pub fault: Fault,
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How far a message got, if that is certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// The request itself is wrong in a way that JSON-RPC has a code for. The error kind has the full meaning.
    #[serde(skip)]
    pub misuse: Option<Misuse>,
    /// The name of the refusal, if a slot's machine refused.
    #[serde(skip)]
    pub refusal: Option<&'static str>,
}

/// The errors that JSON-RPC itself distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Misuse {
    Method,
    Params,
}

/// How far a message without an answer got: a client must know before it sends it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trace {
    /// It was never submitted.
    Untouched,
    /// The program ended while it worked on it.
    CutOff,
}

impl RpcError {
    pub fn new(fault: Fault, message: impl Into<String>) -> RpcError {
        RpcError {
            fault,
            message: message.into(),
            next: None,
            trace: None,
            misuse: None,
            refusal: None,
        }
    }

    pub fn no_such_method(method: &str) -> RpcError {
        RpcError {
            misuse: Some(Misuse::Method),
            ..RpcError::new(Fault::Usage, format!("no such method: {method}"))
        }
    }

    pub fn bad_params(method: &str, error: &serde_json::Error) -> RpcError {
        RpcError {
            misuse: Some(Misuse::Params),
            ..RpcError::new(Fault::Usage, format!("{method}: {error}"))
        }
    }

    pub fn next(mut self, next: impl Into<String>) -> RpcError {
        self.next = Some(next.into());
        self
    }

    pub fn trace(mut self, trace: Trace) -> RpcError {
        self.trace = Some(trace);
        self
    }
}
