//! The JSON schema of a policy file, made from the lists of words that it is read with.

use super::Decision;
use super::file::{DECISIONS, DEFAULTS, LISTS, VERDICTS};
use super::grants::GRANTABLE;
use serde_json::{Map, Value, json};

pub fn schema() -> Value {
    let mut properties = lists();
    let more = json!({
        "default": {
            "description": "what is decided where no rule speaks, or the rules that hold for every role",
            "oneOf": [words(DEFAULTS), table(lists())],
        },
        "deny_reason": {"type": "string", "description": "told to Claude with every no"},
        "dialogs": dialogs(),
        "mcp": grants(),
        "roles": {"type": "object", "additionalProperties": table(lists())},
        "slots": {"type": "object", "additionalProperties": table(lists())},
        "example": {"type": "array", "minItems": 1, "items": example()},
    });
    properties.extend(more.as_object().cloned().unwrap_or_default());
    let mut schema = table(properties);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("policies/<role>.toml of missiond");
    schema
}

/// A table that takes these keys and no others.
fn table(properties: Map<String, Value>) -> Value {
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn lists() -> Map<String, Value> {
    let list = |(key, decision, _): &(&str, Decision, _)| {
        let what = format!(
            "rules as in Claude Code's own settings; they say: {}",
            decision.word()
        );
        let schema = json!({"type": "array", "items": {"type": "string"}, "description": what});
        ((*key).to_owned(), schema)
    };
    LISTS.iter().map(list).collect()
}

fn words<T>(words: &[(&str, T)]) -> Value {
    let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    json!({"type": "string", "enum": words})
}

fn dialogs() -> Value {
    let keys = ["trust", "api_key", "plan", "question"];
    table(
        keys.iter()
            .map(|key| ((*key).to_owned(), words(DECISIONS)))
            .collect(),
    )
}

fn grants() -> Value {
    let strings = json!({"type": "array", "items": {"type": "string"}});
    let granted = json!({"type": "array", "items": {"type": "string", "enum": GRANTABLE}});
    let keys = [("allow", granted), ("slots", strings)];
    table(
        keys.into_iter()
            .map(|(key, schema)| (key.to_owned(), schema))
            .collect(),
    )
}

fn example() -> Value {
    let text = || json!({"type": "string"});
    let keys = [
        ("tool", text()),
        ("verdict", words(VERDICTS)),
        ("cwd", text()),
        ("slot", text()),
        ("input", json!({"type": "object"})),
    ];
    let keys = keys
        .into_iter()
        .map(|(key, schema)| (key.to_owned(), schema));
    let mut schema = table(keys.collect());
    schema["required"] = json!(["tool", "verdict"]);
    schema
}
