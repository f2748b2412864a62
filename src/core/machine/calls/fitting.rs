//! Whether a dialog may be about a call: the tool is the same, and so is all that the screen shows of the input.

use super::OpenAsk;
use crate::core::claude::reading::{Dialog, is_shown};
use serde_json::Value;
use std::path::{Component, Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// The screen shows another tool or another input.
    Other,
    /// Nothing that it shows speaks against it, but neither does the tool's own name speak for it.
    Possible,
    Same,
}

pub(super) fn fit(open: &OpenAsk, dialog: &Dialog, cwd: &Path) -> Fit {
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

/// Tools whose dialogs look alike, or whose names the screen writes in its own way.
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
            // The question below a change that is off the screen names the file alone.
            let cut = !self.dialog.complete && Path::new(whole).ends_with(shown);
            return cut || places.any(|place| same_path(shown, whole, place));
        }
        let (shown_text, whole_text) = (squeezed(shown), squeezed(whole));
        match self.dialog.complete {
            // Of other values a screen may show the first row alone.
            true if self.key != "command" && self.key != "url" => {
                whole_text.starts_with(&shown_text)
            }
            true => shown_text == whole_text,
            false => parts(shown).all(|part| whole_text.contains(&part)),
        }
    }
}

/// Without what moves or goes where a row is wrapped, and without the quotes that a screen may set.
fn squeezed(value: &Value) -> String {
    let text = value.as_str().map_or(value.to_string(), str::to_owned);
    text.chars().filter(|c| is_shown(c) && *c != '"').collect()
}

/// A screen that is too low shows the end of a command, one with a `…` its beginning; `… +7 lines` stands for the rest.
fn parts(shown: &Value) -> impl Iterator<Item = String> {
    let text = shown.as_str().map_or(shown.to_string(), str::to_owned);
    let rows: Vec<String> = text.split(['\n', '…']).map(str::to_owned).collect();
    rows.into_iter()
        .filter(|row| !row.trim_start().starts_with('+') || !row.contains("lines"))
        .map(|row| squeezed(&Value::from(row)))
}

/// The screen shows a path from the working directory on, from the home directory on, or whole.
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
