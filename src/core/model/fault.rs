//! What went wrong, whose fault it was and what to do next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose fault it was, which is also the exit code.
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
    /// Turned away, since the daemon is full; nothing was done: 6.
    Full,
    /// Dropped, since it did not read what it had asked for: 1.
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

/// An error as it goes over the wire, in the envelope's `error.data`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    pub fault: Fault,
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// What became of a message, where that is known for certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// The request itself is wrong in a way that JSON-RPC has a code for. What it means is all in the fault.
    #[serde(skip)]
    pub misuse: Option<Misuse>,
    /// The name of the refusal, if it is one of a slot's machine.
    #[serde(skip)]
    pub refusal: Option<&'static str>,
}

/// What JSON-RPC itself tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Misuse {
    Method,
    Params,
}

/// What a message that was not answered has left behind: whoever would send it again must know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trace {
    /// It was never submitted.
    Untouched,
    /// The program ended while it was at work on it.
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
