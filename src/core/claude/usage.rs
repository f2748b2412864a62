//! The tokens that a transcript says were used. Pure.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::AddAssign;

/// Tokens by how they are paid for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, more: Tokens) {
        self.input = self.input.saturating_add(more.input);
        self.output = self.output.saturating_add(more.output);
        self.cache_read = self.cache_read.saturating_add(more.cache_read);
        self.cache_write = self.cache_write.saturating_add(more.cache_write);
    }
}

/// The tokens of one answer of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenUsage {
    /// The id of the answer. Claude Code writes a line for each part of an answer; the last one has the whole number.
    pub answer: String,
    pub time: DateTime<Utc>,
    pub tokens: Tokens,
}

/// Of an agent's answer too; `None` for any other line.
pub fn usage_of_line(line: &str) -> Option<TokenUsage> {
    // Most lines are no answers, and long.
    if !line.contains("\"usage\"") {
        return None;
    }
    let entry: Value = serde_json::from_str(line).ok()?;
    let message = entry.get("message")?;
    let usage = message.get("usage")?;
    let count = |name: &str| usage.get(name).and_then(Value::as_u64).unwrap_or(0);
    Some(TokenUsage {
        answer: message.get("id")?.as_str()?.to_owned(),
        time: entry.get("timestamp")?.as_str()?.parse().ok()?,
        tokens: Tokens {
            input: count("input_tokens"),
            output: count("output_tokens"),
            cache_read: count("cache_read_input_tokens"),
            cache_write: count("cache_creation_input_tokens"),
        },
    })
    .filter(|usage| usage.tokens != Tokens::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_tokens_and_nothing_else_has() {
        let line = r#"{"type":"assistant","timestamp":"2026-01-01T10:00:00Z","isSidechain":true,"message":{"id":"m1",
            "usage":{"input_tokens":3,"output_tokens":5,"cache_read_input_tokens":7,"service_tier":"x"}}}"#;
        let usage = usage_of_line(line).unwrap();
        let expected = Tokens {
            input: 3,
            output: 5,
            cache_read: 7,
            cache_write: 0,
        };
        assert_eq!((usage.answer.as_str(), usage.tokens), ("m1", expected));
        for other in [
            line.replace("\"id\":\"m1\",", ""),
            line.replace("usage", "other"),
            line.replace("2026-01-01T10:00:00Z", "once"),
            line.replace(['3', '5', '7'], "0"),
            "\"usage\" {".to_owned(),
        ] {
            assert_eq!(usage_of_line(&other), None, "{other}");
        }
    }
}
