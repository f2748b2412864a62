//! docs/configuration.md has every key of both files: in an example that loads, and in a table made from the schema.

use super::schema;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const MARK: &str =
    "<!-- Made from the schemas; MISSIOND_WRITE_DOCS=1 cargo test --test schema writes it. -->\n";

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md")
}

fn text() -> String {
    std::fs::read_to_string(page()).expect("the page")
}

#[test]
fn the_tables_of_the_page_say_what_the_schemas_say() {
    let text = text();
    let (intro, listed) = text.split_once(MARK).expect("the mark in the page");
    let made = listing();
    if std::env::var_os("MISSIOND_WRITE_DOCS").is_some() {
        std::fs::write(page(), format!("{intro}{MARK}{made}")).expect("the page is written");
        return;
    }
    assert!(
        listed == made,
        "docs/configuration.md is not what the schemas say: MISSIOND_WRITE_DOCS=1 cargo test --test schema"
    );
}

/// The example of a file, which is the block whose first line names it.
fn example(file: &str) -> String {
    let text = text();
    let head = format!("```toml\n# {file}\n");
    let (_, rest) = text.split_once(&head).expect("the example");
    let (example, _) = rest.split_once("```").expect("its end");
    example.to_owned()
}

#[test]
fn the_examples_load_and_have_every_key() {
    let root = tempfile::tempdir().expect("a directory");
    let policies = root.path().join("policies");
    std::fs::create_dir(&policies).expect("a directory");
    let (slots, policy) = (example("slots.toml"), example("policies/coder.toml"));
    std::fs::write(root.path().join("slots.toml"), &slots).expect("a file");
    std::fs::write(policies.join("coder.toml"), &policy).expect("a file");
    std::fs::create_dir(root.path().join("app")).expect("the slot's directory");
    let checked = assert_cmd::Command::new(env!("CARGO_BIN_EXE_missiond"))
        .args(["config", "check", "-c"])
        .arg(root.path().join("slots.toml"))
        .env("HOME", root.path())
        .assert();
    checked.success();
    for (file, example) in [("slots", slots), ("policy", policy)] {
        for (table, keys) in tables(file) {
            for key in keys.keys().filter(|key| !OLD.contains(&key.as_str())) {
                let named = [format!("{key} = "), format!("{key}]"), format!("[{key}.")];
                let is_shown = named.iter().any(|named| example.contains(named));
                assert!(is_shown, "the example of {file} has no `{key}` of {table}");
            }
        }
    }
}

/// Other names of a key, which the tables have and the examples don't need.
const OLD: [&str; 2] = ["auto_allow", "require_confirm"];

/// The tables of a file with their keys, as a person writes their heads. A key that is a table is a table of its own.
fn tables(file: &str) -> Vec<(String, Map<String, Value>)> {
    fn add(head: &str, schema: &Value, found: &mut Vec<(String, Map<String, Value>)>) {
        let properties = schema["properties"].as_object().expect("keys");
        let is_table = |about: &Value| about["properties"].is_object();
        let items = |about: &Value| about["items"]["properties"].is_object();
        let own = properties.iter();
        let own = own.filter(|(_, about)| !is_table(about) && !items(about));
        let own: Map<String, Value> = own
            .map(|(key, about)| (key.clone(), about.clone()))
            .collect();
        if !own.is_empty() {
            found.push((head.to_owned(), own));
        }
        for (key, about) in properties {
            let path = format!(
                "{}{}{key}",
                head.trim_matches(['[', ']']),
                if head.is_empty() { "" } else { "." }
            );
            match (is_table(about), items(about)) {
                (true, _) => add(&format!("[{path}]"), about, found),
                (_, true) => add(&format!("[[{path}]]"), &about["items"], found),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    add("", &schema(file), &mut found);
    found
}

fn listing() -> String {
    let mut page = String::new();
    for (file, title) in [
        ("slots", "slots.toml"),
        ("policy", "policies/&lt;role&gt;.toml"),
    ] {
        let _ = writeln!(page, "\n## Keys of {title}");
        for (head, keys) in tables(file) {
            if head.starts_with("[defaults") {
                continue;
            }
            let head = match head.as_str() {
                "" => "At the top".to_owned(),
                head => format!("`{head}`"),
            };
            let _ = writeln!(
                page,
                "\n### {head}\n\n| key | type | default | meaning |\n| --- | --- | --- | --- |"
            );
            for (key, about) in keys {
                let usual = match &about["default"] {
                    Value::Null => String::new(),
                    usual => format!("`{usual}`"),
                };
                let _ = writeln!(
                    page,
                    "| `{key}` | {} | {usual} | {} |",
                    kind(&about),
                    meaning(&key, &about)
                );
            }
        }
    }
    page
}

fn kind(about: &Value) -> String {
    let named = |kind: &str| {
        match kind {
            "array" => "list of strings",
            "object" => "table",
            kind => return kind.to_owned(),
        }
        .to_owned()
    };
    match (&about["type"], about.get("anyOf")) {
        (Value::String(kind), _) => named(kind),
        (Value::Array(kinds), _) => {
            let kinds = kinds.iter().filter_map(Value::as_str);
            kinds
                .filter(|kind| *kind != "null")
                .map(named)
                .collect::<Vec<_>>()
                .join(" or ")
        }
        (_, Some(_)) => "number or \"off\"".to_owned(),
        _ => "string".to_owned(),
    }
}

/// What a key means, and its values if it takes only some.
fn meaning(key: &str, about: &Value) -> String {
    let mut text = about["description"]
        .as_str()
        .unwrap_or_else(|| panic!("`{key}` has no description"))
        .to_owned();
    if let (Some(least), Some(most)) = (about["minimum"].as_u64(), about["maximum"].as_u64()) {
        let _ = write!(text, " From {least} to {most}.");
    }
    let values = values(about);
    if !values.is_empty() {
        let _ = write!(text, " Values: {}.", values.join(", "));
    }
    text.replace('|', "\\|").replace('\n', " ")
}

fn values(about: &Value) -> Vec<String> {
    let several = about["enum"]
        .as_array()
        .or_else(|| about["items"]["enum"].as_array());
    let one = |value: &Value| value.as_str().map(|value| format!("`{value}`"));
    if let Some(several) = several {
        return several.iter().filter_map(one).collect();
    }
    let variants = about["oneOf"].as_array().into_iter().flatten();
    let variants = variants.filter(|variant| variant["type"] == "string");
    let described =
        |variant: &Value| match (variant["const"].as_str(), variant["description"].as_str()) {
            (Some(value), Some(about)) => {
                vec![format!("`{value}` ({})", about.trim_end_matches('.'))]
            }
            _ => values(variant),
        };
    variants.flat_map(described).collect()
}
