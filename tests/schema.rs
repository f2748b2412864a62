//! The schemas say what the parsers take: the same keys, and nothing that one accepts and the other refuses.

#[path = "schema/api.rs"]
mod api;
#[path = "schema/configuration.rs"]
mod configuration;
#[path = "schema/troubleshooting.rs"]
mod troubleshooting;

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

fn missiond(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_missiond"))
        .env_clear()
        .env("HOME", "/no-such-home")
        .args(arguments)
        .output()
        .expect("missiond runs")
}

fn schema(of: &str) -> Value {
    let output = missiond(&["config", "schema", of]);
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// What is wrong with a value, as a validator would say it; only what these schemas use is known here.
fn fault(schema: &Value, value: &Value) -> Option<String> {
    let rules = schema.as_object().expect("a schema is an object");
    rules.iter().find_map(|(rule, says)| match rule.as_str() {
        "type" => type_fault(says, value),
        "enum" => {
            (!says.as_array()?.contains(value)).then(|| format!("{value} is not one of {says}"))
        }
        "const" => (says != value).then(|| format!("{value} is not {says}")),
        "oneOf" | "anyOf" => {
            let fits = |schema: &Value| fault(schema, value).is_none();
            (!says.as_array()?.iter().any(fits)).then(|| format!("{value} fits none of {says}"))
        }
        "pattern" => {
            let pattern = regex::Regex::new(says.as_str()?).expect("a pattern");
            (!pattern.is_match(value.as_str()?)).then(|| format!("{value} is not like {says}"))
        }
        "minimum" => (value.as_f64()? < says.as_f64()?).then(|| format!("{value} < {says}")),
        "maximum" => (value.as_f64()? > says.as_f64()?).then(|| format!("{value} > {says}")),
        "minItems" => value
            .as_array()?
            .is_empty()
            .then(|| "an empty list".to_owned()),
        "items" => value.as_array()?.iter().find_map(|item| fault(says, item)),
        "required" => {
            let missing = |key: &&Value| value.get(key.as_str().unwrap_or_default()).is_none();
            says.as_array()?
                .iter()
                .find(missing)
                .map(|key| format!("{key} is missing"))
        }
        "properties" => {
            let known = |key: &String| says.get(key);
            let table = value.as_object()?.iter();
            table
                .filter_map(|(key, value)| fault(known(key)?, value))
                .next()
        }
        "additionalProperties" => {
            let known = |key: &String| schema["properties"].get(key).is_some();
            let mut others = value.as_object()?.iter().filter(|(key, _)| !known(key));
            match says {
                Value::Bool(false) => others.next().map(|(key, _)| format!("unknown key {key}")),
                says => others.find_map(|(_, value)| fault(says, value)),
            }
        }
        "$schema" | "title" | "description" | "default" | "format" => None,
        other => panic!("this validator does not know `{other}`"),
    })
}

fn type_fault(says: &Value, value: &Value) -> Option<String> {
    let is = |name: &Value| match name.as_str().expect("a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("type {other}"),
    };
    let fits = match says {
        Value::Array(names) => names.iter().any(is),
        name => is(name),
    };
    (!fits).then(|| format!("{value} is not of type {says}"))
}

fn toml(text: &str) -> Value {
    json!(toml::from_str::<toml::Table>(text).expect("TOML"))
}

/// The keys that the parser of a file says it takes, in the table that has an unknown key in it.
fn keys_taken(file: &str, text: &str) -> BTreeSet<String> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(file);
    std::fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
    std::fs::write(&path, text).expect("a file");
    let path = path.to_str().expect("UTF-8");
    let said = match file {
        "slots.toml" => missiond(&["config", "check", "-c", path]),
        _ => missiond(&["policy", "check", path]),
    };
    let said =
        String::from_utf8_lossy(&said.stderr).into_owned() + &String::from_utf8_lossy(&said.stdout);
    let help = said.lines().find(|line| line.contains(" takes `"));
    let help = help.unwrap_or_else(|| panic!("no list of keys in: {said}"));
    help.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn keys_of(schema: &Value) -> BTreeSet<String> {
    let keys = schema["properties"].as_object().expect("a table");
    keys.keys().cloned().collect()
}

const STRANGE: &str = "zzzzzzzzzzzzzzzz = 1\n";

#[test]
fn the_schema_of_slots_toml_has_the_keys_that_the_parser_takes() {
    let schema = schema("slots");
    let tables = &schema["properties"];
    let taken = |text: &str| keys_taken("slots.toml", text);
    assert_eq!(keys_of(&schema), taken(STRANGE));
    let slot = taken(&format!("[[slot]]\n{STRANGE}"));
    assert_eq!(keys_of(&tables["slot"]["items"]), slot);
    for table in ["daemon", "notify", "sessions"] {
        let taken = taken(&format!("[{table}]\n{STRANGE}"));
        assert_eq!(keys_of(&tables[table]), taken, "{table}");
    }
    let mut defaults = taken(&format!("[defaults]\n{STRANGE}"));
    // Named there to be refused with a reason.
    assert!(defaults.remove("name") && defaults.remove("session"));
    assert_eq!(keys_of(&tables["defaults"]), defaults);
}

#[test]
fn the_schema_of_a_policy_has_the_keys_that_the_parser_takes() {
    let schema = schema("policy");
    let tables = &schema["properties"];
    let taken = |text: &str| keys_taken("policies/coder.toml", text);
    assert_eq!(keys_of(&schema), taken(STRANGE));
    assert_eq!(
        keys_of(&tables["dialogs"]),
        taken(&format!("[dialogs]\n{STRANGE}"))
    );
    assert_eq!(keys_of(&tables["mcp"]), taken(&format!("[mcp]\n{STRANGE}")));
    assert_eq!(
        keys_of(&tables["default"]["oneOf"][1]),
        taken(&format!("[default]\n{STRANGE}"))
    );
    let slots = &tables["slots"]["additionalProperties"];
    assert_eq!(keys_of(slots), taken(&format!("[slots.a]\n{STRANGE}")));
    let example = taken(&format!("[[example]]\n{STRANGE}"));
    assert_eq!(keys_of(&tables["example"]["items"]), example);
}

#[test]
fn the_example_files_fit_their_schemas() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &Path| toml(&std::fs::read_to_string(file).expect("a file"));
    assert_eq!(
        fault(&schema("slots"), &read(&root.join("slots.toml"))),
        None
    );
    let files = |folder: &str| root.join(folder).read_dir().expect("a directory");
    let policies = files("policies").chain(files("policies/examples"));
    let policies = policies.map(|entry| entry.expect("an entry").path());
    for policy in policies.filter(|path| path.is_file()) {
        assert_eq!(
            fault(&schema("policy"), &read(&policy)),
            None,
            "{}",
            policy.display()
        );
    }
}

#[test]
fn what_config_show_prints_fits_the_schema() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("slots.toml");
    let shown = missiond(&["config", "show", "-c", root.to_str().expect("UTF-8")]);
    let shown = String::from_utf8(shown.stdout).expect("UTF-8");
    assert_eq!(fault(&schema("slots"), &toml(&shown)), None, "{shown}");
}

#[test]
fn what_is_wrong_is_wrong_by_the_schema_too() {
    let slot = "[[slot]]\nname = \"a\"\nrole = \"a\"\ncwd = \".\"\n";
    let schema = schema("slots");
    assert_eq!(fault(&schema, &toml(slot)), None);
    for wrong in [
        "nmae = \"b\"",
        "cols = \"wide\"",
        "cols = 1",
        "mode = \"automatic\"",
        "restart = \"sometimes\"",
        "restart_delay = 5",
        "args = \"--model\"",
    ] {
        let text = format!("{slot}{wrong}\n");
        assert!(fault(&schema, &toml(&text)).is_some(), "{wrong}");
    }
    assert!(fault(&schema, &toml("[daemon]\n")).is_some(), "no slot");
    assert!(fault(&schema, &toml("[[slot]]\nname = \"A b\"")).is_some());
}
