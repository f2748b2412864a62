//! Claude Code's transcript, a file of JSON lines, as a conversation. Pure: lines in, values out.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The failure of a turn that a person has stopped.
pub const INTERRUPTED: &str = "the turn was interrupted";

/// One entry of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    pub time: Option<DateTime<Utc>>,
    /// `user`, `assistant`, `tool_call`, `tool_result`; `command` and `command_output` for a command of Claude Code or of the
    /// shell, and `summary` for the summary of a compacted conversation.
    pub role: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    pub session_id: Option<String>,
}

/// What follows the last message, as far as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnEnding {
    /// The assistant's text after the last tool result.
    pub text: Option<String>,
    /// An API error, or the note that a person interrupted.
    pub failure: Option<String>,
    /// The assistant's last line ends its turn, or a command of Claude Code has run.
    pub is_whole: bool,
    /// The last input is a command of Claude Code.
    of_command: bool,
}

/// Figures about the conversation from the model's last answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Figures {
    pub model: String,
    /// Tokens in its context, including its answer.
    pub context_tokens: u64,
}

/// From the last answer of a model; text that Claude Code writes in the assistant's name has no figures.
pub fn figures<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Figures> {
    lines
        .filter_map(entry)
        .filter_map(|entry| figures_of(&entry))
        .last()
}

fn figures_of(entry: &Value) -> Option<Figures> {
    let message = &entry["message"];
    let model = message["model"]
        .as_str()
        .filter(|model| *model != "<synthetic>")?;
    let counts = [
        "input_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "output_tokens",
    ];
    let usage = |count: &&str| message["usage"][*count].as_u64().unwrap_or(0);
    Some(Figures {
        model: model.to_owned(),
        context_tokens: counts.iter().map(usage).fold(0, u64::saturating_add),
    })
}

/// The entries of a conversation in order. Other lines are skipped: the file holds other records too, and its last line may be
/// incomplete.
pub fn turns<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<Turn> {
    lines.flat_map(turns_of_line).collect()
}

/// The entries in one line.
pub fn turns_of_line(line: &str) -> Vec<Turn> {
    let mut turns = entry(line).map_or_else(Vec::new, |entry| turns_of(&entry));
    turns.retain(|turn| turn.role != COMMAND_OUTPUT || !turn.text.is_empty());
    turns
}

/// How the conversation ends, read from the lines since the message was sent.
pub fn ending<'a>(lines: impl Iterator<Item = &'a str>) -> TurnEnding {
    let mut ending = TurnEnding::default();
    for entry in lines.filter_map(entry) {
        for turn in turns_of(&entry) {
            continue_ending(&mut ending, &entry, turn);
        }
    }
    ending
}

fn continue_ending(ending: &mut TurnEnding, entry: &Value, turn: Turn) {
    match turn.role.as_str() {
        "assistant" if is_api_error(entry, &turn.text) => {
            *ending = TurnEnding {
                failure: Some(turn.text),
                is_whole: true,
                ..TurnEnding::default()
            };
        }
        "assistant" => {
            ending.text = Some(match ending.text.take() {
                Some(before) => format!("{before}\n\n{}", turn.text),
                None => turn.text,
            });
            ending.is_whole = is_last(entry);
        }
        "user" if is_interrupt(&turn.text) => {
            *ending = TurnEnding {
                failure: Some(INTERRUPTED.to_owned()),
                is_whole: true,
                ..TurnEnding::default()
            };
        }
        COMMAND_OUTPUT if ending.of_command => {
            *ending = TurnEnding {
                text: Some(turn.text).filter(|text| !text.is_empty()),
                is_whole: true,
                ..TurnEnding::default()
            };
        }
        role => {
            *ending = TurnEnding {
                of_command: role == COMMAND,
                ..TurnEnding::default()
            }
        }
    }
}

/// Why the last request is being retried, as long as it has no result: `401 invalid x-api-key`.
pub fn tried_again<'a>(lines: impl DoubleEndedIterator<Item = &'a str>) -> Option<String> {
    let record = |line: &str| {
        let entry: Value = serde_json::from_str(line).ok()?;
        let kind = entry["type"].as_str()?;
        let tells = matches!(kind, "user" | "assistant") || entry["subtype"] == "api_error";
        tells.then_some(entry)
    };
    let last = lines.rev().find_map(record)?;
    let error = &last["error"];
    let status = error["status"].as_u64()?;
    let message = error["error"]["error"]["message"].as_str();
    Some(format!("{status} {}", message.unwrap_or_default()))
}

/// Whether this is an API error, which Claude Code writes in the assistant's name.
fn is_api_error(entry: &Value, text: &str) -> bool {
    let synthetic = entry["message"]["model"] == "<synthetic>";
    entry["isApiErrorMessage"] == true || (synthetic && text.starts_with("API Error"))
}

fn is_last(entry: &Value) -> bool {
    let reason = entry["message"]["stop_reason"].as_str();
    reason.is_some_and(|reason| reason != "tool_use" && reason != "pause_turn")
}

fn is_interrupt(text: &str) -> bool {
    text.starts_with("[Request interrupted by user")
}

/// A line of the main conversation; subagents' lines are marked as a side chain.
fn entry(line: &str) -> Option<Value> {
    let entry: Value = serde_json::from_str(line).ok()?;
    let kind = entry["type"].as_str()?;
    let main = entry["isSidechain"] != true && entry["isMeta"] != true;
    let said = matches!(kind, "user" | "assistant") || entry["subtype"] == "local_command";
    (main && said && !is_filler(&entry)).then_some(entry)
}

/// Whether Claude Code has written this instead of a missing answer: it does so when it resumes a conversation that ended with a
/// message or in the middle of a turn.
fn is_filler(entry: &Value) -> bool {
    let message = &entry["message"];
    message["model"] == "<synthetic>" && plain_text(&message["content"]) == "No response requested."
}

/// A command of Claude Code or of the shell instead of a message: `/clear`, `!ls`.
pub const COMMAND: &str = "command";
const COMMAND_OUTPUT: &str = "command_output";
/// The summary of a compacted conversation.
const SUMMARY: &str = "summary";

fn turns_of(entry: &Value) -> Vec<Turn> {
    let role = entry["type"].as_str().unwrap_or_default();
    match &entry["message"]["content"] {
        Value::String(text) if role == "user" => vec![entered(entry, text)],
        Value::Null => local_command(entry).into_iter().collect(),
        Value::String(text) => vec![turn(entry, role, text.clone())],
        Value::Array(blocks) => blocks
            .iter()
            .filter_map(|block| block_turn(entry, role, block))
            .collect(),
        _ => Vec::new(),
    }
}

/// A person's input. Claude Code marks its own commands, and those of the shell, with tags.
fn entered(entry: &Value, text: &str) -> Turn {
    let told = |role: &str, text: String| turn(entry, role, text);
    if entry["isCompactSummary"] == true {
        return told(SUMMARY, text.to_owned());
    }
    let is_command = ["<command-name>", "<command-message>"]
        .iter()
        .any(|tag| text.starts_with(tag));
    let name = tagged(text, "command-name").filter(|_| is_command);
    match (name, in_tag(text, "bash-input")) {
        (Some(name), _) => {
            let arguments = tagged(text, "command-args").unwrap_or_default();
            told(COMMAND, format!("{name} {arguments}").trim().to_owned())
        }
        (None, Some(command)) => told(COMMAND, format!("!{command}")),
        (None, None) => match output(text) {
            Some(output) => told(COMMAND_OUTPUT, output),
            None => told("user", pasted(text).unwrap_or(text).to_owned()),
        },
    }
}

/// The message inside `<pasted_content id="1705">`. Claude Code 2.1.328 puts these marks around a text that it has collapsed in
/// the input box.
fn pasted(text: &str) -> Option<&str> {
    let (id, rest) = text
        .trim()
        .strip_prefix("<pasted_content id=\"")?
        .split_once("\">\n")?;
    rest.strip_suffix(&format!("\n</pasted_content id=\"{id}\">"))
}

/// Newer versions record a command's output as a system line, together with the command if it has opened a view.
fn local_command(entry: &Value) -> Option<Turn> {
    let told = entered(entry, entry["content"].as_str()?);
    matches!(told.role.as_str(), COMMAND | COMMAND_OUTPUT).then_some(told)
}

/// The output of a command of Claude Code or of the shell.
fn output(text: &str) -> Option<String> {
    let parts = ["local-command-stdout", "bash-stdout"].iter();
    let mut parts = parts.filter_map(|tag| {
        let begins = text.starts_with(&format!("<{tag}>"));
        tagged(text, tag).filter(|_| begins)
    });
    let printed = parts.next()?;
    let errors = tagged(text, "bash-stderr").filter(|errors| !errors.is_empty());
    let all = errors.map_or(printed.to_owned(), |errors| format!("{printed}\n{errors}"));
    Some(anstream::adapter::strip_str(&all).to_string())
}

/// The content of the tag, if the whole text is inside it.
fn in_tag<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let inner = text.strip_prefix(&format!("<{tag}>"))?;
    inner.strip_suffix(&format!("</{tag}>"))
}

fn tagged<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{tag}>"))?;
    Some(rest.split_once(&format!("</{tag}>"))?.0)
}

fn block_turn(entry: &Value, role: &str, block: &Value) -> Option<Turn> {
    match block["type"].as_str()? {
        "text" => Some(turn(entry, role, block["text"].as_str()?.to_owned())),
        "tool_use" => Some(Turn {
            tool: block["name"].as_str().map(str::to_owned),
            input: Some(block["input"].clone()),
            ..turn(
                entry,
                "tool_call",
                block["id"].as_str().unwrap_or_default().to_owned(),
            )
        }),
        "tool_result" => Some(Turn {
            is_error: Some(block["is_error"] == true),
            ..turn(entry, "tool_result", plain_text(&block["content"]))
        }),
        _ => None,
    }
}

fn turn(entry: &Value, role: &str, text: String) -> Turn {
    Turn {
        time: entry["timestamp"]
            .as_str()
            .and_then(|time| time.parse::<DateTime<Utc>>().ok()),
        role: role.to_owned(),
        text,
        tool: None,
        input: None,
        is_error: None,
        session_id: entry["sessionId"].as_str().map(str::to_owned),
    }
}

/// A tool's result is a string or a list of blocks.
fn plain_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn user(content: Value) -> String {
        json!({"type": "user", "message": {"role": "user", "content": content}, "sessionId": "s"})
            .to_string()
    }

    fn assistant(content: Value, stop: Option<&str>) -> String {
        let message = json!({"role": "assistant", "content": content, "stop_reason": stop});
        json!({"type": "assistant", "message": message, "sessionId": "s"}).to_string()
    }

    fn text(text: &str) -> Value {
        json!([{"type": "text", "text": text}])
    }

    fn ends(lines: &[String]) -> TurnEnding {
        ending(lines.iter().map(String::as_str))
    }

    #[test]
    fn the_answer_is_the_text_after_the_last_tool_result() {
        let lines = [
            user(json!("do it")),
            assistant(text("I will."), Some("tool_use")),
            assistant(
                json!([{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]),
                Some("tool_use"),
            ),
            user(json!([{"type": "tool_result", "tool_use_id": "t1", "content": "a\nb"}])),
            assistant(text("Done.\n\n  two"), Some("end_turn")),
        ];
        let found = ends(&lines);
        assert_eq!(found.text.as_deref(), Some("Done.\n\n  two"));
        assert!(found.is_whole && found.failure.is_none());
        let roles: Vec<String> = turns(lines.iter().map(String::as_str))
            .into_iter()
            .map(|t| t.role)
            .collect();
        assert_eq!(
            roles,
            ["user", "assistant", "tool_call", "tool_result", "assistant"]
        );
    }

    #[test]
    fn a_turn_that_has_not_ended_is_not_whole() {
        assert_eq!(ends(&[user(json!("hi"))]), TurnEnding::default());
        assert!(!ends(&[user(json!("hi")), assistant(text("part"), None)]).is_whole);
    }

    /// As 2.1.325 writes it when it resumes a conversation whose last turn was cut off.
    #[test]
    fn what_stands_in_place_of_an_answer_is_none() {
        let mut filler: Value = serde_json::from_str(&assistant(
            text("No response requested."),
            Some("stop_sequence"),
        ))
        .unwrap();
        let said = filler.to_string();
        assert_eq!(
            turns(std::iter::once(said.as_str())).len(),
            1,
            "a model may say so"
        );
        filler["message"]["model"] = "<synthetic>".into();
        let lines = [user("publish".into()), filler.to_string()];
        assert_eq!(ends(&lines).text, None);
        assert_eq!(turns(lines.iter().map(String::as_str)).len(), 1);
    }

    #[test]
    fn errors_and_interrupts_are_failures() {
        let error = json!({"type": "assistant", "isApiErrorMessage": true,
            "message": {"content": [{"type": "text", "text": "API Error: 400 bad"}]}});
        assert_eq!(
            ends(&[user(json!("hi")), error.to_string()])
                .failure
                .as_deref(),
            Some("API Error: 400 bad")
        );
        let stopped = [
            user(json!("hi")),
            user(text("[Request interrupted by user]")),
        ];
        assert_eq!(ends(&stopped).failure.as_deref(), Some(INTERRUPTED));
    }

    #[test]
    fn why_a_request_is_tried_again_is_told_until_something_comes() {
        let error = json!({"type": "system", "subtype": "api_error", "error": {"status": 401,
            "error": {"type": "error", "error": {"message": "invalid x-api-key"}}}});
        let other = json!({"type": "file-history-snapshot"}).to_string();
        let lines = [user(json!("hi")), error.to_string(), other];
        let why = tried_again(lines.iter().map(String::as_str));
        assert_eq!(why.as_deref(), Some("401 invalid x-api-key"));
        let answered = [error.to_string(), assistant(text("hello"), None)];
        assert_eq!(tried_again(answered.iter().map(String::as_str)), None);
    }

    #[test]
    fn commands_are_told_as_such_and_end_by_what_they_print() {
        let clear = user(json!(
            "<command-name>/clear</command-name>\n  <command-message>clear</command-message>\n  <command-args></command-args>"
        ));
        let printed = |text: &str| {
            json!({"type": "system", "subtype": "local_command", "isMeta": false,
                "content": format!("<local-command-stdout>{text}</local-command-stdout>")})
            .to_string()
        };
        let older = user(json!(
            "<local-command-stdout>\u{1b}[2mCompacted\u{1b}[22m</local-command-stdout>"
        ));
        let named = user(json!(
            "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>all of it</command-args>"
        ));
        let shell = user(json!("<bash-input>ls; id</bash-input>"));
        let result = user(json!(
            "<bash-stdout>a</bash-stdout><bash-stderr>no</bash-stderr>"
        ));
        let lines = [
            clear.clone(),
            printed("done"),
            older.clone(),
            named,
            shell,
            result,
        ];
        let told: Vec<(String, String)> = turns(lines.iter().map(String::as_str))
            .into_iter()
            .map(|turn| (turn.role, turn.text))
            .collect();
        let expected = [
            ("command", "/clear"),
            ("command_output", "done"),
            ("command_output", "Compacted"),
            ("command", "/review all of it"),
            ("command", "!ls; id"),
            ("command_output", "a\nno"),
        ];
        assert_eq!(
            told,
            expected.map(|(role, text)| (role.to_owned(), text.to_owned()))
        );

        assert!(!ends(std::slice::from_ref(&clear)).is_whole);
        let quiet = ends(&[clear.clone(), printed("")]);
        assert_eq!((quiet.is_whole, quiet.text), (true, None));
        assert_eq!(
            ends(&[clear, older.clone()]).text.as_deref(),
            Some("Compacted")
        );
        assert!(!ends(&[older]).is_whole, "a message may look like it");
    }

    /// 2.1.325 records a command that has opened a view as a system line, after the view is closed.
    #[test]
    fn a_message_that_was_pasted_is_told_without_the_marks_around_it() {
        let told = |content: &str| {
            let line = user(json!(content));
            turns(std::iter::once(line.as_str())).remove(0).text
        };
        let marked =
            "\n\n<pasted_content id=\"1705\">\na\n\n  b\nc\n</pasted_content id=\"1705\">\n";
        assert_eq!(told(marked), "a\n\n  b\nc");
        for other in [
            "see <pasted_content id=\"1\">\na\n</pasted_content id=\"1\">",
            "<pasted_content id=\"1\">\na\n</pasted_content id=\"2\">",
            "<pasted_content id=\"1\">",
        ] {
            assert_eq!(told(other), other);
        }
    }

    #[test]
    fn a_command_that_opened_a_view_ends_by_what_it_prints() {
        let noted = |text: &str| {
            json!({"type": "system", "subtype": "local_command", "isMeta": false, "content": text})
                .to_string()
        };
        let command = noted(
            "<command-name>/resume</command-name>\n  <command-message>resume</command-message>\n  <command-args></command-args>",
        );
        let printed = noted("<local-command-stdout>Resume cancelled</local-command-stdout>");
        let lines = [command, printed, noted("something else")];
        let told = turns(lines.iter().map(String::as_str));
        let roles: Vec<&str> = told.iter().map(|turn| turn.role.as_str()).collect();
        assert_eq!(roles, ["command", "command_output"]);
        let ending = ends(&lines);
        assert_eq!(ending.text.as_deref(), Some("Resume cancelled"));
        assert!(ending.is_whole);
    }

    #[test]
    fn other_records_side_chains_and_torn_lines_are_passed_over() {
        let lines = [
            json!({"type": "file-history-snapshot"}).to_string(),
            user(json!("hi")),
            json!({"type": "assistant", "isSidechain": true, "message": {"content": "from a subagent"}}).to_string(),
            assistant(text("hello"), Some("end_turn")),
            "{\"type\": \"assis".to_owned(),
        ];
        assert_eq!(ends(&lines).text.as_deref(), Some("hello"));
    }
}
