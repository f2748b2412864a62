//! The answers of the scripted model. Pure.
//!
//! A script is a list of steps. They come from a test (`Endpoint::on`) or from the message itself, if it begins with
//! `JSON:` followed by the list. A step that gives the turn to Claude Code (a tool call, an error) ends one response;
//! the steps after it are for the request that follows.

use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

/// One step of the scripted model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Step {
    Text(TextStep),
    /// A single tool call: `{"tool": "Bash", "input": {…}}`.
    Tool(ToolCall),
    /// Several calls in one response: `{"tools": [{"tool": …}, …]}`.
    Tools {
        tools: Vec<ToolCall>,
    },
    /// An HTTP error: `{"status": 529, "error": "overloaded_error", "message": "…"}`.
    Error(ErrorStep),
    /// A block of the model's own reasoning.
    Thinking {
        thinking: String,
    },
    /// Only pings, until [`Endpoint::open`](super::Endpoint::open) is called with this name.
    Gate {
        gate: String,
    },
    /// Only pings, for this many seconds.
    Hang {
        #[serde(alias = "think")]
        hang: f64,
    },
    /// The number of tokens that the response reports, from which Claude Code computes its cost.
    Tokens {
        tokens: u32,
    },
    /// This many numbered lines, a few each second, so that a person can watch them come.
    Slow {
        slow: u32,
    },
}

/// Text of the answer: `{"text": "…"}`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct TextStep {
    pub text: String,
    /// The number of deltas in which it is streamed.
    #[serde(default = "one")]
    pub chunks: usize,
    /// Holds back the last delta until this gate is open.
    #[serde(default)]
    pub gate: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ToolCall {
    pub tool: String,
    #[serde(default)]
    pub input: Value,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ErrorStep {
    pub status: u16,
    #[serde(default = "api_error")]
    pub error: String,
    #[serde(default)]
    pub message: String,
}

fn one() -> usize {
    1
}

fn api_error() -> String {
    "api_error".to_owned()
}

impl Step {
    pub fn text(text: impl Into<String>) -> Step {
        Step::Text(TextStep {
            text: text.into(),
            chunks: 1,
            gate: None,
        })
    }

    /// Text in `chunks` deltas, of which the last one waits for `gate`.
    pub fn gated_text(text: impl Into<String>, chunks: usize, gate: impl Into<String>) -> Step {
        Step::Text(TextStep {
            text: text.into(),
            chunks,
            gate: Some(gate.into()),
        })
    }

    pub fn tool(tool: impl Into<String>, input: Value) -> Step {
        Step::Tool(ToolCall {
            tool: tool.into(),
            input,
        })
    }

    pub fn gate(name: impl Into<String>) -> Step {
        Step::Gate { gate: name.into() }
    }

    pub fn error(status: u16, error: impl Into<String>, message: impl Into<String>) -> Step {
        Step::Error(ErrorStep {
            status,
            error: error.into(),
            message: message.into(),
        })
    }

    /// Tells whether the step ends the response, until Claude Code's next request.
    pub fn ends_response(&self) -> bool {
        matches!(self, Step::Tool(_) | Step::Tools { .. } | Step::Error(_))
    }
}

/// The beginning of a message that contains its own script.
const IN_BAND: &str = "JSON:";

/// The maximum characters of a prompt that is quoted in full; of a longer one only the beginning is quoted, since an
/// answer of a megabyte would test the terminal, not the message.
const QUOTED_WHOLE: usize = 2000;
const QUOTED_HEAD: usize = 100;

/// The steps that were set for given messages.
#[derive(Debug, Default)]
pub struct ModelScript {
    by_prompt: HashMap<String, Vec<Step>>,
}

impl ModelScript {
    pub fn set(&mut self, prompt: &str, steps: Vec<Step>) {
        self.by_prompt.insert(prompt.trim().to_owned(), steps);
    }

    /// The steps of the response number `round` (from 0) to `prompt`; `Err` has the error in the script that the prompt
    /// contains.
    pub fn response(&self, prompt: &str, round: usize) -> Result<Vec<Step>, String> {
        let prompt = prompt.trim();
        if let Some(steps) = self.by_prompt.get(prompt) {
            return Ok(response_of(steps, round));
        }
        match prompt.strip_prefix(IN_BAND) {
            Some(script) => serde_json::from_str::<Vec<Step>>(script)
                .map(|steps| response_of(&steps, round))
                .map_err(|error| format!("the script in the message can't be read: {error}")),
            None => Ok(vec![Step::text(quote(prompt))]),
        }
    }
}

/// The answer to a message without a script.
fn quote(prompt: &str) -> String {
    let length = prompt.chars().count();
    if length <= QUOTED_WHOLE {
        return format!("You said: {prompt}");
    }
    let head: String = prompt.chars().take(QUOTED_HEAD).collect();
    format!("You said {length} characters, beginning with: {head}")
}

/// The steps of one response; after the end of its script a turn ends with one word.
fn response_of(steps: &[Step], round: usize) -> Vec<Step> {
    steps
        .split_inclusive(Step::ends_response)
        .nth(round)
        .map_or_else(|| vec![Step::text("Done.")], <[Step]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn response(prompt: &str, round: usize) -> Vec<Step> {
        ModelScript::default()
            .response(prompt, round)
            .expect("a readable script")
    }

    #[test]
    fn a_message_without_a_script_is_quoted() {
        assert_eq!(response("hello", 0), [Step::text("You said: hello")]);
        let long = "x".repeat(QUOTED_WHOLE + 1);
        let expected = format!(
            "You said 2001 characters, beginning with: {}",
            "x".repeat(100)
        );
        assert_eq!(response(&long, 0), [Step::text(expected)]);
    }

    #[test]
    fn a_tool_call_ends_a_response_and_text_before_it_belongs_to_it() {
        let script =
            r#"JSON:[{"text":"I will."},{"tool":"Bash","input":{"command":"ls"}},{"text":"done"}]"#;
        let call = Step::tool("Bash", json!({"command": "ls"}));
        assert_eq!(response(script, 0), [Step::text("I will."), call]);
        assert_eq!(response(script, 1), [Step::text("done")]);
        assert_eq!(response(script, 2), [Step::text("Done.")]);
    }

    #[test]
    fn every_kind_of_step_can_be_written_in_a_message() {
        let script = r#"JSON:[{"think":4},{"hang":0.5},{"gate":"g"},{"thinking":"hm"},{"slow":3},
            {"text":"a","chunks":2,"gate":"h"},{"tools":[{"tool":"Read","input":{}}]}]"#;
        let expected = [
            Step::Hang { hang: 4.0 },
            Step::Hang { hang: 0.5 },
            Step::gate("g"),
            Step::Thinking {
                thinking: "hm".into(),
            },
            Step::Slow { slow: 3 },
            Step::gated_text("a", 2, "h"),
            Step::Tools {
                tools: vec![ToolCall {
                    tool: "Read".into(),
                    input: json!({}),
                }],
            },
        ];
        assert_eq!(response(script, 0), expected);
        let error = r#"JSON:[{"status":400,"error":"invalid_request_error","message":"no"}]"#;
        let expected = Step::error(400, "invalid_request_error", "no");
        assert_eq!(response(error, 0), [expected]);
    }

    #[test]
    fn a_set_answer_goes_before_the_quote() {
        let mut script = ModelScript::default();
        script.set("hello", vec![Step::text("hi")]);
        assert_eq!(script.response(" hello\n", 0), Ok(vec![Step::text("hi")]));
    }

    #[test]
    fn a_broken_script_is_named() {
        let error = ModelScript::default()
            .response("JSON:[{]", 0)
            .expect_err("not JSON");
        assert!(error.contains("can't be read"), "{error}");
    }
}
