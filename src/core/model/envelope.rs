//! The JSON-RPC 2.0 envelopes around the types of [`super::protocol`]. Pure.

use super::{Fault, Misuse, RpcError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::OnceLock;

pub const VERSION: &str = "2.0";

/// An event; its params are a [`crate::core::model::Event`].
pub const EVENT: &str = "event";
/// The snapshot, or the missed events, are complete: later events are live. Its params are [`Live`].
pub const LIVE: &str = "live";
/// The listener was too slow and is dropped; its params are [`Lagged`].
pub const LAGGED: &str = "lagged";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    pub jsonrpc: String,
    pub id: Value,
    pub method: String,
    #[serde(default)]
    pub params: Value,
    /// The kind of client, for the audit: `cli confirm`, `mcp`, `library`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
}

/// The name of a client that does not name itself.
pub const UNNAMED: &str = "socket";

/// The longest client name that is kept, in characters.
const LONGEST_NAME: usize = 32;

impl Request {
    /// The name that the client gives itself in this request.
    pub fn client_name(&self) -> String {
        let name = self.via.as_deref().unwrap_or(UNNAMED);
        let plain = name.chars().filter(|c| c.is_ascii_graphic() || *c == ' ');
        plain.take(LONGEST_NAME).collect()
    }

    pub fn new(id: u64, method: &str, params: Value) -> Request {
        Request {
            jsonrpc: VERSION.to_string(),
            id: id.into(),
            method: method.to_string(),
            params,
            via: Some(surface().to_owned()),
        }
    }
}

static SURFACE: OnceLock<String> = OnceLock::new();

/// Sets the name of this program, for the audit of each daemon that it talks to. Only the first call counts.
pub fn speak_as(name: &str) {
    let _ = SURFACE.set(name.to_owned());
}

/// A program that has not set its name uses missiond as a library.
fn surface() -> &'static str {
    SURFACE.get().map_or("library", String::as_str)
}

/// Any line from the daemon: an answer has an `id`, a notification has a `method`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    #[serde(default)]
    pub jsonrpc: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorObject>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Value>,
}

impl Line {
    pub fn answer(id: Value, outcome: Result<Value, ErrorObject>) -> Line {
        let (result, error) = match outcome {
            Ok(value) => (Some(value), None),
            Err(error) => (None, Some(error)),
        };
        Line {
            jsonrpc: VERSION.to_string(),
            id: Some(id),
            result,
            error,
            ..Line::default()
        }
    }

    /// The bytes for the socket, with the line end.
    pub fn bytes(&self) -> Vec<u8> {
        // Values, strings and numbers always have a JSON form.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        // It may wait for a long time until its client reads it.
        line.shrink_to_fit();
        line
    }

    pub fn notification(method: &str, params: Value) -> Line {
        Line {
            jsonrpc: VERSION.to_string(),
            method: Some(method.to_string()),
            params: Some(params),
            ..Line::default()
        }
    }
}

/// JSON-RPC's own error; missiond's error is in `data`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorObject {
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// The code of errors that carry an [`RpcError`]; its kind says the rest.
const APPLICATION_ERROR: i64 = -32000;
/// The codes of [`Fault::Full`] and [`Fault::TooSlow`]: a client can recognise them without the data.
const FULL: i64 = -32001;
const TOO_SLOW: i64 = -32002;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

impl From<RpcError> for ErrorObject {
    fn from(error: RpcError) -> ErrorObject {
        ErrorObject {
            code: match (error.misuse, error.fault) {
                (None, Fault::Full) => FULL,
                (None, Fault::TooSlow) => TOO_SLOW,
                (None, _) => APPLICATION_ERROR,
                (Some(Misuse::Method), _) => METHOD_NOT_FOUND,
                (Some(Misuse::Params), _) => INVALID_PARAMS,
            },
            message: error.message.clone(),
            // A struct of an enum and two strings always has a JSON form.
            data: serde_json::to_value(error).ok(),
        }
    }
}

impl From<ErrorObject> for RpcError {
    /// A daemon of another version may send an error without missiond's data: it counts as failed, with its text.
    fn from(error: ErrorObject) -> RpcError {
        error
            .data
            .and_then(|data| serde_json::from_value(data).ok())
            .unwrap_or_else(|| RpcError::new(Fault::Failed, error.message))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Live {
    /// The position after which live events follow.
    pub position: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lagged {
    /// The number of events that it did not get.
    pub missed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_keeps_its_fault_and_next_step_over_the_wire() {
        let error = RpcError::new(Fault::Refused, "another dialog is up").next("missiond pending");
        let line = Line::answer(1.into(), Err(error.clone().into()));
        let text = serde_json::to_string(&line).unwrap();
        let back: Line = serde_json::from_str(&text).unwrap();
        assert_eq!(RpcError::from(back.error.unwrap()), error);
    }

    #[test]
    fn a_plain_json_rpc_error_is_a_failure_with_its_message() {
        let text =
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method: fly"}}"#;
        let line: Line = serde_json::from_str(text).unwrap();
        let error = RpcError::from(line.error.unwrap());
        assert_eq!(error, RpcError::new(Fault::Failed, "no such method: fly"));
    }
}
