//! Finds out what a Messages API request asks. Pure.

use serde_json::Value;

/// Beginnings of texts that Claude Code adds to those of the person.
const NOT_THE_PERSON: [&str; 5] = [
    "<system-reminder>",
    // A message that was queued during the turn: the script of the turn continues.
    "The user sent a new message while you were working:",
    "<local-command-",
    "<command-name>",
    "[Request interrupted by user",
];

/// The last message of the person, and the progress of its turn.
#[derive(Debug, PartialEq, Eq)]
pub struct RehearsedAsk {
    pub prompt: String,
    /// The number of Claude Code's messages with tool results after it.
    pub round: usize,
}

/// Reads the conversation from its end.
pub fn asked(body: &Value) -> RehearsedAsk {
    let mut round = 0;
    for message in list(body, "messages").iter().rev() {
        if message.get("role").and_then(Value::as_str) != Some("user") {
            continue;
        }
        if let Some(text) = message.get("content").and_then(Value::as_str) {
            return RehearsedAsk {
                prompt: text.to_owned(),
                round,
            };
        }
        let blocks = list(message, "content");
        if let Some(prompt) = blocks.iter().rev().find_map(persons_text) {
            return RehearsedAsk {
                prompt: prompt.to_owned(),
                round,
            };
        }
        round += usize::from(blocks.iter().any(|block| is(block, "tool_result")));
    }
    RehearsedAsk {
        prompt: String::new(),
        round,
    }
}

/// Tells whether this is a side question of Claude Code, such as one for a title: such requests have no tools.
pub fn is_side_question(body: &Value) -> bool {
    list(body, "tools").is_empty()
}

fn persons_text(block: &Value) -> Option<&str> {
    let text = block.get("text").and_then(Value::as_str)?;
    let own = is(block, "text") && !NOT_THE_PERSON.iter().any(|mark| text.starts_with(mark));
    own.then_some(text)
}

fn is(block: &Value, kind: &str) -> bool {
    block.get("type").and_then(Value::as_str) == Some(kind)
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    fn result() -> Value {
        json!({"type": "tool_result", "tool_use_id": "t", "content": "ok"})
    }

    fn ask(messages: Value) -> (String, usize) {
        let RehearsedAsk { prompt, round } = asked(&json!({ "messages": messages }));
        (prompt, round)
    }

    #[test]
    fn the_last_text_of_the_person_is_the_prompt() {
        let plain = json!([{"role": "user", "content": "hello"}]);
        assert_eq!(ask(plain), ("hello".into(), 0));
        let blocks = json!([
            {"role": "user", "content": [text("first")]},
            {"role": "assistant", "content": [text("answer")]},
            {"role": "user", "content": [text("second"), text("<system-reminder>x</system-reminder>")]},
        ]);
        assert_eq!(ask(blocks), ("second".into(), 0));
    }

    #[test]
    fn tool_results_count_the_rounds() {
        let messages = json!([
            {"role": "user", "content": [text("do it")]},
            {"role": "assistant", "content": []},
            {"role": "user", "content": [result(), result(), text("<system-reminder>x")]},
            {"role": "assistant", "content": []},
            {"role": "user", "content": [result()]},
        ]);
        assert_eq!(ask(messages), ("do it".into(), 2));
    }

    #[test]
    fn a_new_text_after_a_rejected_call_begins_a_turn() {
        let messages = json!([
            {"role": "user", "content": [text("do it")]},
            {"role": "assistant", "content": []},
            {"role": "user", "content": [
                result(), text("[Request interrupted by user for tool use]"), text("then this")]},
        ]);
        assert_eq!(ask(messages), ("then this".into(), 0));
    }

    #[test]
    fn a_request_without_tools_is_a_side_question() {
        assert!(is_side_question(&json!({"messages": []})));
        assert!(is_side_question(&json!({"tools": []})));
        assert!(!is_side_question(&json!({"tools": [{"name": "Bash"}]})));
    }
}
