//! The control socket: its schema is whole, and docs/api.md says the same.

use super::schema;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What is behind this line of the page is made from the schema.
const MARK: &str = "<!-- Made from the table of requests; MISSIOND_WRITE_DOCS=1 cargo test --test schema writes it. -->\n";

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/api.md")
}

#[test]
fn the_page_of_the_control_socket_says_what_the_schema_says() {
    let text = std::fs::read_to_string(page()).expect("the page");
    let (intro, listed) = text.split_once(MARK).expect("the mark in the page");
    let made = listing(&schema("api"));
    if std::env::var_os("MISSIOND_WRITE_DOCS").is_some() {
        std::fs::write(page(), format!("{intro}{MARK}{made}")).expect("the page is written");
        return;
    }
    let differs = listed
        .lines()
        .zip(made.lines())
        .find(|(is, should)| is != should);
    assert!(
        listed == made,
        "docs/api.md is not what the table of requests says; write it with: MISSIOND_WRITE_DOCS=1 cargo test \
         --test schema\nthe first line that differs: {differs:?}"
    );
}

#[test]
fn every_method_and_every_parameter_is_described() {
    let schema = schema("api");
    let methods = schema["methods"].as_array().expect("methods");
    assert!(methods.len() > 40, "{}", methods.len());
    for method in methods {
        let name = &method["name"];
        assert!(described(method), "{name}");
        assert!(
            method["access"].is_string() && method["names"].is_string(),
            "{name}"
        );
        for (field, about) in fields(resolved(&schema, &method["params"])) {
            assert!(described(about), "{name}: {field}");
            let words = about["description"].as_str().expect("words");
            let is_time = words.to_lowercase().contains("millisecond");
            assert_eq!(field.ends_with("_ms"), is_time, "{name}: {field}: {words}");
        }
    }
}

/// Every type that is named is defined.
#[test]
fn every_reference_leads_somewhere() {
    fn check(root: &Value, value: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(name) = fields.get("$ref") {
                    assert!(resolved(root, value).is_object(), "{name}");
                }
                fields.values().for_each(|field| check(root, field));
            }
            Value::Array(items) => items.iter().for_each(|item| check(root, item)),
            _ => {}
        }
    }
    let schema = schema("api");
    check(&schema, &schema);
}

fn described(value: &Value) -> bool {
    value["description"]
        .as_str()
        .is_some_and(|words| words.len() > 5)
}

fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    match name_of(schema) {
        Some(name) => &root["$defs"][name],
        None => schema,
    }
}

fn name_of(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

fn fields(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"]
        .as_object()
        .into_iter()
        .flat_map(Map::iter)
}

fn listing(schema: &Value) -> String {
    let mut page = String::from("\n## Methods\n");
    for method in schema["methods"].as_array().into_iter().flatten() {
        let word = |key: &str| method[key].as_str().unwrap_or_default();
        let who = match word("access") {
            "anybody" => "every process of this user, also inside a slot".to_owned(),
            "own slot" => "the hooks that run in the slot".to_owned(),
            "granted" => format!(
                "a person; inside a slot with `[mcp] allow = [\"{}\"]` in the role's policy",
                word("grant")
            ),
            _ => "a person".to_owned(),
        };
        let _ = write!(
            page,
            "\n### `{}`\n{}\n\nCalled by: {who}. Names: {}. Answer: {}.\n",
            word("name"),
            word("description"),
            word("names"),
            type_of(&method["result"])
        );
        page += &table(resolved(schema, &method["params"]), "parameter");
    }
    page += "\n## Notifications\n";
    for notification in schema["notifications"].as_array().into_iter().flatten() {
        let word = |key: &str| notification[key].as_str().unwrap_or_default();
        let params = type_of(&notification["params"]);
        let _ = write!(
            page,
            "\n`{}`: {} Params: {params}.\n",
            word("name"),
            word("description")
        );
    }
    page += "\n## Types\n";
    let is_of_params =
        |name: &str| name.ends_with("Params") || ["Select", "OneSlot", "OneTask"].contains(&name);
    let types = schema["$defs"].as_object().into_iter().flat_map(Map::iter);
    for (name, about) in types.filter(|(name, _)| !is_of_params(name)) {
        let words = about["description"]
            .as_str()
            .map(|words| format!("{}\n", one_line(words)));
        let _ = write!(page, "\n### {name}\n{}", words.unwrap_or_default());
        page += &defined(about);
    }
    page
}

/// What a type is made of: its fields, its words, or one of several forms.
fn defined(about: &Value) -> String {
    let mut text = table(about, "field");
    let forms = about["oneOf"].as_array().or(about["anyOf"].as_array());
    for form in forms.into_iter().flatten() {
        let tag = fields(form).find_map(|(_, field)| field["const"].as_str());
        let word = tag.or(form["const"].as_str());
        let others: Vec<String> = fields(form)
            .filter(|(_, field)| field.get("const").is_none())
            .map(|(name, field)| format!("`{name}` {}", type_of(field)))
            .collect();
        let name = word.map_or_else(|| type_of(form), |word| format!("`{word}`"));
        let about = form["description"]
            .as_str()
            .map(|words| format!(" {}", one_line(words)));
        let of = if others.is_empty() {
            String::new()
        } else {
            format!(" ({})", others.join(", "))
        };
        let _ = write!(
            text,
            "\n- {name}{of}{}",
            about.map(|words| format!(":{words}")).unwrap_or_default()
        );
    }
    if let Some(words) = about["enum"].as_array() {
        let words: Vec<String> = words
            .iter()
            .filter_map(Value::as_str)
            .map(|word| format!("`{word}`"))
            .collect();
        let _ = write!(text, "\nOne of {}.", words.join(", "));
    }
    match text.ends_with('\n') || text.is_empty() {
        true => text,
        false => text + "\n",
    }
}

fn table(schema: &Value, head: &str) -> String {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let rows: Vec<String> = fields(schema)
        .map(|(name, field)| {
            let must = if required.contains(&Value::from(name.as_str())) {
                "yes"
            } else {
                ""
            };
            let words = one_line(field["description"].as_str().unwrap_or_default());
            let words = words.replace('|', "\\|");
            format!("| `{name}` | {} | {must} | {words} |\n", type_of(field))
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let always = if head == "field" {
        "always there"
    } else {
        "required"
    };
    format!(
        "\n| {head} | type | {always} | |\n| --- | --- | --- | --- |\n{}",
        rows.concat()
    )
}

fn one_line(words: &str) -> String {
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn type_of(schema: &Value) -> String {
    if let Some(name) = name_of(schema) {
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(forms) = schema["anyOf"].as_array() {
        return forms.iter().map(type_of).collect::<Vec<_>>().join(" or ");
    }
    let one = |name: &str| match name {
        "array" if schema["items"].is_object() => format!("list of {}", type_of(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("object of {}", type_of(&schema["additionalProperties"]))
        }
        other => other.to_owned(),
    };
    match &schema["type"] {
        Value::String(name) => one(name),
        Value::Array(names) => {
            let names: Vec<String> = names.iter().filter_map(Value::as_str).map(one).collect();
            names.join(" or ")
        }
        _ => "any value".to_owned(),
    }
}
