//! The values of a call to a tool of an MCP server, as its dialog shows them.

use super::dialog::FoundDialog;
use super::permission::{Input, dashed, end_of_values, indented_block, is_barred};
use crate::core::claude::vocabulary::{ABOUT_TOOL, OF_MCP};
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
        .map(|(key, lines)| (key, value_of(&lines.join("\n"))));
    Some(values.collect::<Map<String, Value>>()).filter(|values| !values.is_empty())
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

/// The input of a call that is written with nothing in it: `demo - look (MCP)`, or `demo — Look Tool: (MCP)` with no values
/// between it and what is said about the tool.
pub(super) fn no_values(found: &FoundDialog, named: &str) -> Input {
    let (before, after) = named.split_once(OF_MCP)?;
    let after = after.trim_start();
    let has_values = after.starts_with('(') && !after.starts_with("()");
    let empty = !before.contains('(') && !has_values && dashed(found).is_none();
    empty.then(Map::new)
}

fn value_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// The values of a call on one row: `demo - look (MCP)(what: "the sky", n: 3)`.
pub(super) fn arguments(row: &str) -> Input {
    let call = row.replacen(OF_MCP, "", 1);
    let mut rest = call.split_once('(')?.1;
    let mut values = Map::new();
    while let Some((key, text)) = rest.split_once(": ") {
        let end = value_end(text)?;
        let value = value_of(&text[..end]);
        rest = text[end..].trim_start_matches([',', ' ']);
        values.insert(key.to_owned(), value);
    }
    (!values.is_empty()).then_some(values)
}

/// Where the value that `text` begins with ends: after its closing quote, or before `,` or `)`.
fn value_end(text: &str) -> Option<usize> {
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
