//! The answers of tools: short, with a mark for omitted parts; an error has its next step.

use crate::core::model::{Fault, RpcError};
use crate::core::text::excerpt;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;

pub type Told = CallToolResult;

/// The maximum bytes of a result, about 6,000 tokens: the model that reads it has other things to read too.
pub const MAX_RESULT: usize = 24_000;

/// Text, with its middle omitted if it is too long.
pub fn text(text: &str) -> Told {
    let text = excerpt::ends(text, MAX_RESULT);
    CallToolResult::success(vec![ContentBlock::text(text)])
}

/// A value as JSON.
pub fn json(value: &impl Serialize) -> Told {
    match serde_json::to_string(value) {
        Ok(json) => text(&json),
        Err(error) => failed(format!("this answer has no JSON form: {error}")),
    }
}

/// A value as JSON whose parts are already shortened.
pub fn whole(value: &impl Serialize) -> Told {
    match serde_json::to_string(value) {
        Ok(json) => CallToolResult::success(vec![ContentBlock::text(json)]),
        Err(error) => failed(format!("this answer has no JSON form: {error}")),
    }
}

/// An error for the model: what is wrong and what to do next.
pub fn fault(error: &RpcError) -> Told {
    let kind = match error.fault {
        Fault::Failed => "failed",
        Fault::Usage => "wrong usage",
        Fault::Refused => "refused",
        Fault::NeedsPerson => "a person is needed",
        Fault::Full => "turned away",
        Fault::TooSlow => "dropped",
        Fault::TimedOut => "timed out",
    };
    let next = error.next.iter().map(|next| format!("\nnext: {next}"));
    failed(format!(
        "{kind}: {}{}",
        error.message,
        next.collect::<String>()
    ))
}

fn failed(text: String) -> Told {
    CallToolResult::error(vec![ContentBlock::text(excerpt::ends(&text, MAX_RESULT))])
}

pub fn taken_back() -> RpcError {
    RpcError::new(Fault::Failed, "the call was cancelled by the client")
}
