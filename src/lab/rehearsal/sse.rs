//! A response of the Messages API as a sequence of events. Pure.

use super::script::{Step, TextStep, ToolCall};
use serde_json::{Value, json};
use std::time::Duration;

/// The pause between the lines of a slow answer: short enough for a test, long enough to be seen as streaming.
const SLOW_LINE: Duration = Duration::from_millis(100);

/// One item of the stream.
#[derive(Debug, Clone, PartialEq)]
pub enum Beat {
    Event(Value),
    /// Pings until the gate is open.
    Gate(String),
    /// Pings for this long.
    Pause(Duration),
}

/// A whole response: the stream, and the same as one message.
#[derive(Debug, PartialEq)]
pub struct Response {
    pub beats: Vec<Beat>,
    pub message: Value,
}

/// Builds the response of `steps`; `id` makes the ids of its message and its tool calls unique.
pub fn response(steps: &[Step], model: &str, id: u64) -> Response {
    let mut builder = Builder::new(model, id);
    for step in steps {
        builder.step(step);
    }
    builder.finish()
}

struct Builder {
    beats: Vec<Beat>,
    message: Value,
    content: Vec<Value>,
    id: u64,
    tokens: u32,
}

/// The tokens of a response without a `Tokens` step.
const USUAL_TOKENS: u32 = 20;

impl Builder {
    fn new(model: &str, id: u64) -> Builder {
        let message = json!({
            "id": format!("msg_{id:024}"), "type": "message", "role": "assistant", "model": model,
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 10, "output_tokens": 1,
                "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0},
        });
        let start = json!({"type": "message_start", "message": message.clone()});
        Builder {
            beats: vec![Beat::Event(start)],
            message,
            content: Vec::new(),
            id,
            tokens: USUAL_TOKENS,
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Text(text) => self.text(text),
            Step::Tool(call) => self.tool(call),
            Step::Tools { tools } => tools.iter().for_each(|call| self.tool(call)),
            Step::Thinking { thinking } => self.thinking(thinking),
            Step::Gate { gate } => self.beats.push(Beat::Gate(gate.clone())),
            Step::Hang { hang } => self.beats.push(Beat::Pause(seconds(*hang))),
            Step::Slow { slow } => self.slow(*slow),
            Step::Tokens { tokens } => self.tokens = *tokens,
            // An error is a status line; the endpoint sends it before anything is streamed.
            Step::Error(_) => {}
        }
    }

    fn text(&mut self, step: &TextStep) {
        self.start(json!({"type": "text", "text": ""}));
        let deltas = split(&step.text, step.chunks);
        let last = deltas.len().saturating_sub(1);
        for (number, delta) in deltas.iter().enumerate() {
            if let Some(gate) = step.gate.as_ref().filter(|_| number == last) {
                self.beats.push(Beat::Gate(gate.clone()));
            }
            self.delta(json!({"type": "text_delta", "text": delta}));
        }
        self.stop(json!({"type": "text", "text": step.text}));
    }

    fn slow(&mut self, lines: u32) {
        self.start(json!({"type": "text", "text": ""}));
        let lines: Vec<String> = (1..=lines).map(|n| format!("Line {n}.\n\n")).collect();
        for line in &lines {
            self.delta(json!({"type": "text_delta", "text": line}));
            self.beats.push(Beat::Pause(SLOW_LINE));
        }
        self.stop(json!({"type": "text", "text": lines.concat()}));
    }

    fn thinking(&mut self, thinking: &str) {
        self.start(json!({"type": "thinking", "thinking": "", "signature": ""}));
        self.delta(json!({"type": "thinking_delta", "thinking": thinking}));
        self.delta(json!({"type": "signature_delta", "signature": "scripted"}));
        self.stop(json!({"type": "thinking", "thinking": thinking, "signature": "scripted"}));
    }

    fn tool(&mut self, call: &ToolCall) {
        let id = format!("toolu_{:020}{:02}", self.id, self.content.len());
        self.start(json!({"type": "tool_use", "id": id, "name": call.tool, "input": {}}));
        let input = call.input.to_string();
        self.delta(json!({"type": "input_json_delta", "partial_json": input}));
        self.stop(json!({"type": "tool_use", "id": id, "name": call.tool, "input": call.input}));
    }

    fn start(&mut self, block: Value) {
        let index = self.content.len();
        self.event(json!({"type": "content_block_start", "index": index, "content_block": block}));
    }

    fn delta(&mut self, delta: Value) {
        let index = self.content.len();
        self.event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
    }

    fn stop(&mut self, block: Value) {
        let index = self.content.len();
        self.event(json!({"type": "content_block_stop", "index": index}));
        self.content.push(block);
    }

    fn event(&mut self, event: Value) {
        self.beats.push(Beat::Event(event));
    }

    fn finish(mut self) -> Response {
        let calls = self.content.iter().any(|block| block["type"] == "tool_use");
        let reason = if calls { "tool_use" } else { "end_turn" };
        let usage = json!({"output_tokens": self.tokens});
        self.event(json!({"type": "message_delta", "usage": usage,
            "delta": {"stop_reason": reason, "stop_sequence": null}}));
        self.event(json!({"type": "message_stop"}));
        self.message["content"] = Value::Array(self.content);
        self.message["stop_reason"] = json!(reason);
        Response {
            beats: self.beats,
            message: self.message,
        }
    }
}

/// The duration for a number in a script; zero if the number is not a duration.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// Cuts a text into at most `chunks` parts of nearly equal length, never inside a character.
fn split(text: &str, chunks: usize) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let size = chars.len().div_ceil(chunks.max(1)).max(1);
    chars.chunks(size).map(String::from_iter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(beats: &[Beat]) -> Vec<String> {
        beats
            .iter()
            .map(|beat| match beat {
                Beat::Event(event) => event["type"].as_str().unwrap_or("?").to_owned(),
                Beat::Gate(name) => format!("gate {name}"),
                Beat::Pause(time) => format!("pause {time:?}"),
            })
            .collect()
    }

    #[test]
    fn text_is_streamed_in_order_and_its_last_delta_waits_for_the_gate() {
        let made = response(&[Step::gated_text("héllo", 2, "g")], "m", 1);
        let expected = [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "gate g",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ];
        assert_eq!(kinds(&made.beats), expected);
        assert_eq!(
            made.message["content"],
            json!([{"type": "text", "text": "héllo"}])
        );
        assert_eq!(made.message["stop_reason"], "end_turn");
    }

    #[test]
    fn tool_calls_have_ids_of_their_own() {
        let steps = [
            Step::text("two"),
            Step::tool("Bash", json!({})),
            Step::tool("Read", json!({})),
        ];
        let made = response(&steps, "m", 7);
        let content = &made.message["content"];
        assert_ne!(content[1]["id"], content[2]["id"]);
        assert_eq!(made.message["stop_reason"], "tool_use");
    }

    #[test]
    fn a_pause_of_any_number_is_taken() {
        for number in [-1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(seconds(number), Duration::ZERO);
        }
        assert_eq!(seconds(0.25), Duration::from_millis(250));
    }

    #[test]
    fn split_keeps_every_character() {
        for chunks in 0..8 {
            let parts = split("añ漢🙂z", chunks);
            assert_eq!(parts.concat(), "añ漢🙂z");
            assert!(parts.len() <= chunks.max(1));
        }
    }
}
