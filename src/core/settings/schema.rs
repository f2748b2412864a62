//! The JSON schema of slots.toml, made from the types that it is read into: for editors, and for programs that write
//! one. Pure.

use super::keys::{COLS, MODES, ROWS};
use super::parse::{Places, parse};
use super::{
    DaemonConfig, NotifyConfig, NtfyConfig, RemoteAnswers, SessionsConfig, SlackConfig, SlotConfig,
    WebhookConfig,
};
use crate::core::settings::limits::LEAST_FILES;
use crate::core::settings::session::COUNTS;
use crate::core::settings::supervision::{LOG_FILES, TRIES, TURNS};
use crate::core::settings::table::SIZE;
use crate::core::text::diagnostic::Source;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::ops::RangeInclusive;
use std::path::Path;

/// The names of slots, roles and daemons.
const NAME: &str = "^[a-z0-9][a-z0-9_-]{0,63}$";

/// Two times of day.
const QUIET: &str = "^[0-9]{1,2}:[0-9]{2} *- *[0-9]{1,2}:[0-9]{2}$";

/// A slot that says nothing but what it has to.
const SHORTEST: &str = "[[slot]]\nname = \"a\"\nrole = \"a\"\ncwd = \".\"\n";

/// What can only be said of one slot, and not of all.
const OWN_KEYS: [&str; 2] = ["name", "session"];

pub fn schema() -> Value {
    let mut slot = object::<SlotConfig>();
    refine(&mut slot);
    let mut defaults = slot.clone();
    OWN_KEYS.iter().for_each(|key| drop(defaults.remove(*key)));
    let mut daemon = object::<DaemonConfig>();
    daemon["name"]["pattern"] = json!(NAME);
    let mut notify = object::<NotifyConfig>();
    fill_in_defaults(&mut notify, &json!(NotifyConfig::default()));
    notify["quiet"]["pattern"] = json!(QUIET);
    notify["link"]["type"] = json!("string");
    for (channel, keys) in [
        ("webhook", object::<WebhookConfig>()),
        ("ntfy", object::<NtfyConfig>()),
        ("slack", object::<SlackConfig>()),
    ] {
        notify[channel] = table(keys, &["url"]);
    }
    let ntfy = &mut notify["ntfy"]["properties"];
    ntfy["answers"]["default"] = json!(RemoteAnswers::default());
    ntfy["public_server"]["default"] = json!(false);
    let mut sessions = object::<SessionsConfig>();
    sessions["buffer"]["pattern"] = json!(SIZE);
    for count in ["per_owner", "total"] {
        limit(&mut sessions[count], &COUNTS);
    }
    fill_in_defaults(&mut sessions, &json!(SessionsConfig::default()));
    let tables = json!({
        "daemon": table(daemon, &[]),
        "notify": table(notify, &[]),
        "sessions": table(sessions, &[]),
        "defaults": table(defaults, &[]),
        "slot": {"type": "array", "items": table(slot, &["name"])},
    });
    let mut schema = table(tables.as_object().cloned().unwrap_or_default(), &[]);
    schema["anyOf"] = json!([{"required": ["slot"]}, {"required": ["sessions"]}]);
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("slots.toml of missiond");
    schema
}

fn fill_in_defaults(keys: &mut Map<String, Value>, usual: &Value) {
    for (key, usual) in usual.as_object().into_iter().flatten() {
        keys[key]["default"] = usual.clone();
    }
}

/// A table that takes these keys and no others.
fn table(properties: Map<String, Value>, required: &[&str]) -> Value {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// The keys of a type, each with its own schema in place.
fn object<T: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft07().for_serialize();
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.cloned().unwrap_or_default()
}

/// What the types alone don't say: the words and ranges that are checked, and what holds where a key is left out.
fn refine(slot: &mut Map<String, Value>) {
    for name in ["name", "role"] {
        slot[name]["pattern"] = json!(NAME);
    }
    let modes: Vec<&str> = MODES.iter().map(|(word, _)| *word).collect();
    slot["mode"]["enum"] = json!(modes);
    slot["command"]["minItems"] = json!(1);
    slot["log_size"]["pattern"] = json!(SIZE);
    slot["max_memory"]["pattern"] = json!(format!("{SIZE}|^off$"));
    limit(&mut slot["cols"], &COLS);
    limit(&mut slot["rows"], &ROWS);
    limit(&mut slot["restart_tries"], &TRIES);
    limit(&mut slot["log_files"], &LOG_FILES);
    limit(&mut slot["max_turns"], &TURNS);
    let usual = usual_slot();
    for (key, schema) in slot.iter_mut() {
        let required = SHORTEST.contains(&format!("{key} = "));
        if !required && !usual[key].is_null() {
            schema["default"] = usual[key].clone();
        }
    }
}

fn limit(schema: &mut Value, range: &RangeInclusive<u16>) {
    schema["minimum"] = json!(range.start());
    schema["maximum"] = json!(range.end());
}

/// A slot with every default.
fn usual_slot() -> Value {
    let source = Source::new(Path::new("slots.toml"), SHORTEST);
    let places = Places {
        base: Path::new("/"),
        home: None,
    };
    let slot = parse(&source, places)
        .ok()
        .and_then(|(mut draft, _)| draft.slots.pop());
    slot.map_or(Value::Null, |draft| json!(draft.slot))
}

/// Limits as a person writes them.
pub(super) fn limits(_: &mut SchemaGenerator) -> Schema {
    let from = |least: u64, about: &str| json!({"type": "integer", "minimum": least, "maximum": u16::MAX, "description": about});
    json_schema!({
        "type": "object",
        "properties": {
            "cpu": {"type": "string", "description": "CPU time that each process may use."},
            "files": from(LEAST_FILES, "Files that each process may have open at the same time."),
            "processes": from(1, "Processes and threads of the user, all together, above which none can be started."),
            "file_size": {
                "type": "string",
                "pattern": SIZE,
                "description": "The largest file that a process may write.",
            },
        },
        "additionalProperties": false,
    })
}

/// An amount of money as a number, or `off`.
pub(super) fn amount_or_off(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "number"}, {"const": "off"}]})
}
