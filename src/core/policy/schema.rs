//! The JSON schema of a policy file, built from the same lists of names as the parser.

use super::Decision;
use super::file::{DECISIONS, DEFAULTS, LISTS, VERDICTS};
use super::grants::GRANTABLE;
use serde_json::{Map, Value, json};

pub fn schema() -> Value {
    let mut properties = lists();
    let more = json!({
        "default": {
            "description": "What happens if no rule matches. In a file for several roles: the rules of every role.",
            "oneOf": [words(DEFAULTS), table(lists())],
        },
        "deny_reason": {"type": "string", "description": "A reason that Claude gets with each deny."},
        "dialogs": dialogs(),
        "mcp": grants(),
        "roles": by_name("Rules of one role, by its name."),
        "slots": by_name("Rules of one slot, by its name."),
        "example": {
            "type": "array",
            "minItems": 1,
            "items": example(),
            "description": "A call with the verdict that it must get. The file does not load if it gets another.",
        },
    });
    properties.extend(more.as_object().cloned().unwrap_or_default());
    let mut schema = table(properties);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("policies/<role>.toml of missiond");
    schema
}

/// A table with these keys and no others.
fn table(properties: Map<String, Value>) -> Value {
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn lists() -> Map<String, Value> {
    let list = |(key, decision, _): &(&str, Decision, _)| {
        let what = format!(
            "Rules in the syntax of Claude Code's own settings. A call that matches one: {}.",
            decision.word()
        );
        let schema = json!({"type": "array", "items": {"type": "string"}, "description": what});
        ((*key).to_owned(), schema)
    };
    LISTS.iter().map(list).collect()
}

fn by_name(about: &str) -> Value {
    json!({"type": "object", "additionalProperties": table(lists()), "description": about})
}

fn words<T>(words: &[(&str, T)]) -> Value {
    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    json!({"type": "string", "enum": words})
}

fn dialogs() -> Value {
    let keys = [
        (
            "trust",
            "The question at the start whether Claude Code may work in a folder.",
        ),
        (
            "api_key",
            "The question whether Claude Code may use an API key that it found.",
        ),
        ("plan", "A plan that Claude proposes."),
        ("question", "A question with options that Claude asks."),
    ];
    let answered = |(key, about): (&str, &str)| {
        let mut decisions = words(DECISIONS);
        decisions["description"] = json!(about);
        (key.to_owned(), decisions)
    };
    table(keys.into_iter().map(answered).collect())
}

fn grants() -> Value {
    let strings = json!({
        "type": "array",
        "items": {"type": "string"},
        "description": "The slots that the requests may concern.",
    });
    let granted = json!({
        "type": "array",
        "items": {"type": "string", "enum": GRANTABLE},
        "description": "Requests that a program inside the slot may make over MCP and the control socket.",
    });
    let keys = [("allow", granted), ("slots", strings)];
    table(
        keys.into_iter()
            .map(|(key, schema)| (key.to_owned(), schema))
            .collect(),
    )
}

fn example() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let mut verdict = words(VERDICTS);
    verdict["description"] = json!("The verdict that the call must get.");
    let keys = [
        ("tool", text("The tool's name.")),
        ("verdict", verdict),
        ("cwd", text("The directory in which the call is made.")),
        ("slot", text("The slot that makes the call.")),
        (
            "input",
            json!({"type": "object", "description": "The tool's input."}),
        ),
    ];
    let keys = keys
        .into_iter()
        .map(|(key, schema)| (key.to_owned(), schema));
    let mut schema = table(keys.collect());
    schema["required"] = json!(["tool", "verdict"]);
    schema
}
