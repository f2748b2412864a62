//! Whether a dialog may be about a call: it has the same tool, and everything that the screen shows of the input matches.

use super::OpenAsk;
use crate::core::claude::reading::{Dialog, is_shown};
use serde_json::Value;
use std::path::{Component, Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// The screen shows another tool or another input.
    Other,
    /// Nothing contradicts it, but the tool's own name does not confirm it either.
    Possible,
    Same,
}

pub(super) fn fit(open: &OpenAsk, dialog: &Dialog, cwd: &Path) -> Fit {
    if dialog.tool.as_deref() == Some("Edit") && open.tool == "Bash" {
        return match is_edit_by_sed(open, dialog) {
            true => Fit::Same,
            false => Fit::Other,
        };
    }
    let tools = dialog
        .tool
        .as_deref()
        .map_or(Fit::Possible, |shown| same_tool(shown, &open.tool));
    let shown = dialog.input.iter().flatten();
    let same = shown
        .filter_map(|(key, shown)| Some((key, shown, open.input.get(key)?)))
        .all(|(key, shown, whole)| Shown { key, open, dialog }.is(shown, whole, cwd));
    if same { tools } else { Fit::Other }
}

/// Claude Code shows `sed -i` as the edit that it makes: the file is the last word of the command.
fn is_edit_by_sed(open: &OpenAsk, dialog: &Dialog) -> bool {
    let command = open.input["command"].as_str().unwrap_or_default();
    let words: Vec<&str> = command.split_whitespace().collect();
    let (Some(&"sed"), Some(file)) = (words.first(), words.last()) else {
        return false;
    };
    let file = file.trim_matches(['\'', '"']);
    let name = file.rsplit('/').next().unwrap_or_default();
    let is_in_place = |word: &&str| word.starts_with("-i") || word.starts_with("--in-place");
    words.iter().any(is_in_place) && !name.is_empty() && dialog.text.contains(name)
}

/// Tools whose dialogs look alike, or whose names appear differently on the screen.
const ALIKE: [&[&str]; 3] = [
    &["Edit", "MultiEdit", "Write", "NotebookEdit"],
    &["Read", "Grep", "Glob", "LS"],
    &["Task", "Agent"],
];

fn same_tool(shown: &str, tool: &str) -> Fit {
    let alike = |names: &&[&str]| names.contains(&shown) && names.contains(&tool);
    let of_servers = || shown.starts_with("mcp__") && tool.starts_with("mcp__");
    match () {
        () if shown == tool || shown == "Task" && tool == "Agent" => Fit::Same,
        () if ALIKE.iter().any(alike) || of_servers() => Fit::Possible,
        () => Fit::Other,
    }
}

/// A value of the input, as far as the screen shows it.
struct Shown<'a> {
    key: &'a str,
    open: &'a OpenAsk,
    dialog: &'a Dialog,
}

impl Shown<'_> {
    fn is(&self, shown: &Value, whole: &Value, cwd: &Path) -> bool {
        if let (Some(shown), Some(whole), true) =
            (shown.as_str(), whole.as_str(), self.key.ends_with("path"))
        {
            let places = [Some(cwd), self.open.at.as_deref()];
            let mut places = places.into_iter().flatten();
            // If the change does not fit on the screen, the question below it shows only the file name.
            let cut = !self.dialog.complete && Path::new(whole).ends_with(shown);
            return cut || places.any(|place| same_path(shown, whole, place));
        }
        let (shown_text, whole_text) = (squeezed(shown), squeezed(whole));
        match self.dialog.complete {
            // Of other values a screen may show only the first row.
            true if self.key != "command" && self.key != "url" => {
                whole_text.starts_with(&shown_text)
            }
            true => shown_text == whole_text,
            false => parts(shown).all(|part| whole_text.contains(&part)),
        }
    }
}

/// Without characters that change when a row is wrapped, and without quotes that a screen may add.
fn squeezed(value: &Value) -> String {
    let text = value.as_str().map_or(value.to_string(), str::to_owned);
    text.chars().filter(|c| is_shown(c) && *c != '"').collect()
}

/// A screen with too few rows shows the end of a command, one with a `…` its beginning; `… +7 lines` replaces the rest.
fn parts(shown: &Value) -> impl Iterator<Item = String> {
    let text = shown.as_str().map_or(shown.to_string(), str::to_owned);
    let rows: Vec<String> = text.split(['\n', '…']).map(str::to_owned).collect();
    rows.into_iter()
        .filter(|row| !row.trim_start().starts_with('+') || !row.contains("lines"))
        .map(|row| squeezed(&Value::from(row)))
}

/// The screen shows a path relative to the working directory, relative to home, or absolute.
fn same_path(shown: &str, whole: &str, cwd: &Path) -> bool {
    let whole = plain(&cwd.join(whole));
    if shown.starts_with(['~', '…']) {
        let end = Path::new(shown.trim_start_matches(['~', '…', '/']));
        return whole.ends_with(end);
    }
    plain(&cwd.join(shown)) == whole
}

/// Without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}
