//! The values of a call to a tool of an MCP server, as its dialog shows them.

use super::dialog::FoundDialog;
use super::permission::{Input, dashed, end_of_values, indented_block, is_barred};
use crate::core::claude::vocabulary::{
    ABOUT_TOOL, ALLOWED_DOMAINS, BLOCKED_DOMAINS, LINES_OF_FILE, OF_MCP, PAGES_OF_FILE,
    PART_OF_FILE, REST_OF_FILE,
};
use serde_json::{Map, Value};
use unicode_width::UnicodeWidthStr;

/// The `name: value` rows between the dashed lines, or below the row with the tool's name; a value of several lines stands
/// below its name, with a bar along its left side. Nothing, where a row can't be read.
pub(super) fn values(found: &FoundDialog) -> Input {
    let page = found.page();
    let texts = value_rows(found).into_iter();
    let texts = texts.map(|row| page.text(row).trim());
    let mut values: Vec<(String, Vec<&str>)> = Vec::new();
    for text in texts.take_while(|text| !text.starts_with(ABOUT_TOOL)) {
        match (
            text.strip_prefix('│'),
            text.split_once(": "),
            text.strip_suffix(':'),
        ) {
            (Some(line), _, _) => values
                .last_mut()?
                .1
                .push(line.strip_prefix(' ').unwrap_or(line)),
            (None, Some((key, value)), _) => values.push((key.to_owned(), vec![value])),
            (None, None, Some(key)) => values.push((key.to_owned(), Vec::new())),
            (None, None, None) if text.is_empty() => {}
            (None, None, None) => return None,
        }
    }
    let values = values
        .into_iter()
        .map(|(key, lines)| Some((key, value_of(&lines.join("\n"))?)));
    let values = values.collect::<Option<Map<String, Value>>>();
    values.filter(|values| !values.is_empty())
}

/// The rows that may have values: between the dashed lines, or below the row with the tool's name.
fn value_rows(found: &FoundDialog) -> Vec<usize> {
    match dashed(found) {
        Some(rows) => rows.collect(),
        None => indented_block(found).skip(1).collect(),
    }
}

/// Whether a value of a call to a tool of a server stands in several rows and two of them may be one line: the rows don't
/// tell what stood where they meet.
pub(super) fn has_wrapped_value(found: &FoundDialog) -> bool {
    let page = found.page();
    if end_of_values(found).is_none() {
        return false;
    }
    let may_go_on = |row: usize| {
        let next = page.text(row + 1).trim_start_matches(['│', ' ']);
        let word = next.split_whitespace().next().unwrap_or_default();
        page.text(row).width() + word.width() + WRAP_MARGIN >= page.cols()
    };
    let rows = value_rows(found).into_iter();
    let mut rows = rows.take_while(|row| !page.text(*row).trim().starts_with(ABOUT_TOOL));
    rows.any(|row| is_barred(page, row) && is_barred(page, row + 1) && may_go_on(row))
}

/// Columns that a value's block may leave free at its right side, with the blank between two words.
const WRAP_MARGIN: usize = 8;

/// The input of a call that is written with nothing in it: `demo - look (MCP)`, `demo - look() (MCP)`, or
/// `demo — Look Tool: (MCP)` with no values between it and what is said about the tool.
pub(super) fn no_values(found: &FoundDialog, named: &str) -> Input {
    let (before, after) = named.split_once(OF_MCP)?;
    let before = before.trim_end();
    let before = before.strip_suffix("()").unwrap_or(before);
    let after = after.trim_start();
    let has_values = after.starts_with('(') && !after.starts_with("()");
    let empty = !before.contains('(') && !has_values && dashed(found).is_none();
    empty.then(Map::new)
}

/// The input of a call of one of Claude Code's own tools: its argument, as it stands between the brackets, and what is told
/// behind that.
pub(super) fn own_input(tool: &str, key: &str, argument: &str) -> Input {
    match tool {
        "Read" => Some(read_input(key, argument)),
        "WebSearch" => web_search_input(key, argument),
        _ => Some(Map::from_iter([text(key, argument.trim_matches('"'))])),
    }
}

fn text(key: &str, value: &str) -> (String, Value) {
    (key.to_owned(), Value::from(value))
}

/// `/etc/services · lines 10-14`, `/etc/services · from line 10`, `/a.pdf · pages 1-5`. A path may end like that itself: then
/// the file is another one in the same folder.
fn read_input(key: &str, argument: &str) -> Map<String, Value> {
    let part = argument.rsplit_once(PART_OF_FILE);
    let part = part.and_then(|(path, part)| Some((path, part_of_file(part)?)));
    let (path, part) = part.unwrap_or((argument, Vec::new()));
    std::iter::once(text(key, path)).chain(part).collect()
}

/// The parameters that name a part of a file.
fn part_of_file(told: &str) -> Option<Vec<(String, Value)>> {
    let number = |text: &str| text.parse::<u64>().ok();
    let first = |line: u64| ("offset".to_owned(), Value::from(line));
    let told = told.trim();
    if let Some(lines) = told.strip_prefix(LINES_OF_FILE) {
        let (from, to) = lines.split_once('-')?;
        let (from, to) = (number(from)?, number(to)?);
        let count = (to + 1).checked_sub(from)?;
        return Some(vec![first(from), ("limit".to_owned(), Value::from(count))]);
    }
    if let Some(from) = told.strip_prefix(REST_OF_FILE) {
        return Some(vec![first(number(from)?)]);
    }
    let pages = told.strip_prefix(PAGES_OF_FILE)?;
    let is_range = pages.chars().all(|c| c.is_ascii_digit() || c == '-');
    is_range.then(|| vec![text("pages", pages)])
}

/// `"a query"`, or `"a query", only allowing domains: docs.rs, crates.io, blocking domains: example.org`. No domain has a quote
/// in it, so that the last one ends the query.
fn web_search_input(key: &str, argument: &str) -> Input {
    let (query, told) = argument.strip_prefix('"')?.rsplit_once('"')?;
    let mut input = Map::from_iter([text(key, query)]);
    let (told, blocked) = told.split_once(BLOCKED_DOMAINS).unwrap_or((told, ""));
    let allowed = match told.strip_prefix(ALLOWED_DOMAINS) {
        Some(allowed) => allowed,
        None if told.is_empty() => "",
        None => return None,
    };
    for (key, domains) in [("allowed_domains", allowed), ("blocked_domains", blocked)] {
        let domains: Vec<&str> = domains
            .split(", ")
            .filter(|name| !name.is_empty())
            .collect();
        if !domains.is_empty() {
            input.insert(key.to_owned(), Value::from(domains));
        }
    }
    Some(input)
}

/// A value, if it can be told what was sent: an object or a list in a form of Claude Code's own, such as `{ x: true }`, can't.
fn value_of(text: &str) -> Option<Value> {
    match serde_json::from_str(text) {
        Ok(value) => Some(value),
        Err(_) if text.starts_with(['[', '{']) => None,
        Err(_) => Some(Value::from(text)),
    }
}

/// The values of a call on one row: `demo - look (MCP)(what: "the sky", n: 3)`.
pub(super) fn arguments(row: &str) -> Input {
    let call = row.replacen(OF_MCP, "", 1);
    let mut rest = call.split_once('(')?.1;
    let mut values = Map::new();
    while let Some((key, text)) = rest.split_once(": ") {
        let end = value_end(text)?;
        let value = value_of(&text[..end])?;
        rest = text[end..].trim_start_matches([',', ' ']);
        values.insert(key.to_owned(), value);
    }
    (!values.is_empty()).then_some(values)
}

/// Where the value that `text` begins with ends: after its closing quote or bracket, or before `,` or `)`.
fn value_end(text: &str) -> Option<usize> {
    if text.starts_with(['[', '{']) {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        return values
            .next()
            .and_then(Result::ok)
            .map(|_| values.byte_offset());
    }
    let Some(quoted) = text.strip_prefix('"') else {
        return text.find([',', ')']);
    };
    let mut escaped = false;
    let close = quoted.char_indices().find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    })?;
    Some(close.0 + 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_part_of_a_file_is_no_part_of_its_path() {
        for (argument, input) in [
            ("/etc/hosts", json!({"file_path": "/etc/hosts"})),
            (
                "/etc/services · lines 10-14",
                json!({"file_path": "/etc/services", "offset": 10, "limit": 5}),
            ),
            ("a · from line 7", json!({"file_path": "a", "offset": 7})),
            (
                "a.pdf · pages 1-5",
                json!({"file_path": "a.pdf", "pages": "1-5"}),
            ),
            ("a · lines 9", json!({"file_path": "a · lines 9"})),
            ("a · lines 9-3", json!({"file_path": "a · lines 9-3"})),
            ("a · pages /etc", json!({"file_path": "a · pages /etc"})),
            ("a · lines 1-2/b", json!({"file_path": "a · lines 1-2/b"})),
        ] {
            let read = own_input("Read", "file_path", argument);
            assert_eq!(read.as_ref(), input.as_object(), "{argument}");
        }
    }

    #[test]
    fn an_object_that_is_no_json_is_no_value() {
        for (text, expected) in [
            ("{ x: true }", None),
            ("[ 'a' ]", None),
            ("[1, 2]", Some(json!([1, 2]))),
            ("true", Some(json!(true))),
            ("the {sky}", Some(json!("the {sky}"))),
        ] {
            assert_eq!(value_of(text), expected, "{text}");
        }
    }

    #[test]
    fn a_list_and_an_object_are_values() {
        let row = r#"demo - look (MCP)(of: ["a","b"], deep: {"x":[1,2]}, what: "snow", n: 3)"#;
        let read = arguments(row);
        let input = json!({"of": ["a", "b"], "deep": {"x": [1, 2]}, "what": "snow", "n": 3});
        assert_eq!(read.as_ref(), input.as_object());
        assert_eq!(
            arguments(r#"demo - look (MCP)(of: ["a", what: "snow")"#),
            None
        );
    }

    #[test]
    fn the_sites_of_a_search_are_no_part_of_its_query() {
        for (argument, input) in [
            (r#""rust""#, Some(json!({"query": "rust"}))),
            (
                r#""rust", only allowing domains: docs.rs, crates.io"#,
                Some(json!({"query": "rust", "allowed_domains": ["docs.rs", "crates.io"]})),
            ),
            (
                r#""rust", blocking domains: a.org"#,
                Some(json!({"query": "rust", "blocked_domains": ["a.org"]})),
            ),
            (
                r#""rust", only allowing domains: b.org, blocking domains: a.org"#,
                Some(
                    json!({"query": "rust", "allowed_domains": ["b.org"], "blocked_domains": ["a.org"]}),
                ),
            ),
            (
                r#""a", only allowing domains: docs.rs""#,
                Some(json!({"query": "a\", only allowing domains: docs.rs"})),
            ),
            (r#""rust", in another way"#, None),
            ("rust", None),
        ] {
            let read = own_input("WebSearch", "query", argument);
            let input = input
                .as_ref()
                .map(|input| input.as_object().expect("an object"));
            assert_eq!(read.as_ref(), input, "{argument}");
        }
    }
}
