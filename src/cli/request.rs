//! What a slot asks, as a person reads it: each line stands behind a gutter, so that nothing in it can look like missiond's
//! own words, however it is wrapped. Pure.

use crate::cli::sanitise;
use anstyle::{AnsiColor, Style};
use serde_json::{Map, Value};
use unicode_width::UnicodeWidthChar;

/// What every line of a request begins with.
const GUTTER: &str = "│ ";
/// What the rest of a line that is wider than the terminal begins with.
const GOES_ON: &str = "┆ ";
/// A terminal that is narrower shows nothing that can be read; its lines are as wide as this.
const LEAST_WIDTH: usize = 20;
/// The comparison of longer texts would take long: all old lines stand before all new ones.
const MOST_COMPARED: usize = 1_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineTone {
    Plain,
    Removed,
    Added,
}

impl LineTone {
    fn style(self) -> Style {
        let colour = match self {
            LineTone::Plain => return Style::new(),
            LineTone::Removed => AnsiColor::Red,
            LineTone::Added => AnsiColor::Green,
        };
        Style::new().fg_color(Some(colour.into()))
    }
}

/// The lines of a request, harmless for a terminal.
#[derive(Debug, Default)]
pub struct DrawnRequest {
    lines: Vec<(LineTone, String)>,
}

impl DrawnRequest {
    /// Adds a text with its lines.
    pub fn text(&mut self, text: &str) {
        self.put(LineTone::Plain, "", text);
    }

    /// Adds the input of a tool: an edit as what goes and what comes, all else by the names of its parts.
    pub fn input(&mut self, input: &Map<String, Value>) {
        let text = |key: &str| input.get(key).and_then(Value::as_str);
        let edit = text("old_string").zip(text("new_string"));
        // The file before what is done to it.
        let file = input.get_key_value("file_path");
        let others = input.iter().filter(|(key, _)| *key != "file_path");
        for (key, value) in file.into_iter().chain(others) {
            match (key.as_str(), value) {
                ("old_string", _) if edit.is_some() => {}
                ("new_string", _) if edit.is_some() => {
                    let (old, new) = edit.unwrap_or_default();
                    self.difference(old, new);
                }
                ("content", Value::String(new)) if file.is_some() => self.difference("", new),
                ("edits", Value::Array(edits)) => {
                    for (index, edit) in edits.iter().enumerate() {
                        self.text(&format!("edit {}:", index + 1));
                        match edit.as_object() {
                            Some(edit) => self.input(edit),
                            None => self.text(&edit.to_string()),
                        }
                    }
                }
                _ => self.part(key, value),
            }
        }
    }

    /// Adds one part of an input. The lines of one with several are indented below its name.
    fn part(&mut self, key: &str, value: &Value) {
        let key = sanitise::one_line(key);
        match value.as_str().filter(|text| text.trim_end().contains('\n')) {
            Some(text) => {
                self.text(&format!("{key}:"));
                self.put(LineTone::Plain, "  ", text);
            }
            None => {
                let value = value.as_str().map_or(value.to_string(), str::to_owned);
                self.text(&format!("{key}: {value}"));
            }
        }
    }

    fn difference(&mut self, old: &str, new: &str) {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        for (tone, line) in difference(&old, &new) {
            let mark = match tone {
                LineTone::Plain => "    ",
                LineTone::Removed => "  - ",
                LineTone::Added => "  + ",
            };
            self.put(tone, mark, if line.is_empty() { " " } else { line });
        }
    }

    fn put(&mut self, tone: LineTone, before: &str, text: &str) {
        let shown = sanitise::request(text).replace('\t', "    ");
        let lines = shown.lines().map(|line| (tone, format!("{before}{line}")));
        self.lines.extend(lines);
    }

    /// The lines behind their gutter, with so many blanks before it, none wider than `width`.
    pub fn drawn(&self, indent: usize, width: Option<u16>) -> String {
        let room = width.map_or(usize::MAX, |width| {
            let taken = indent + GUTTER.chars().count();
            usize::from(width).saturating_sub(taken).max(LEAST_WIDTH)
        });
        let mut page = String::new();
        for (tone, line) in &self.lines {
            let style = tone.style();
            for (index, row) in rows(line, room).into_iter().enumerate() {
                let gutter = if index == 0 { GUTTER } else { GOES_ON };
                page += &format!("{:indent$}{gutter}{style}{row}{style:#}\n", "");
            }
        }
        page
    }
}

/// The line in pieces of at most so many columns.
fn rows(line: &str, room: usize) -> Vec<String> {
    let (mut rows, mut used) = (vec![String::new()], 0);
    for c in line.chars() {
        let columns = c.width().unwrap_or(0);
        if used + columns > room {
            rows.push(String::new());
            used = 0;
        }
        used += columns;
        if let Some(row) = rows.last_mut() {
            row.push(c);
        }
    }
    rows
}

/// The lines of both texts in their order: those that go, those that come, and those that stay.
fn difference<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<(LineTone, &'a str)> {
    let (rows, columns) = (old.len() + 1, new.len() + 1);
    if rows.saturating_mul(columns) > MOST_COMPARED {
        let removed = old.iter().map(|line| (LineTone::Removed, *line));
        let added = new.iter().map(|line| (LineTone::Added, *line));
        return removed.chain(added).collect();
    }
    // How many lines stay from here to the end of both.
    let mut stay = vec![0_usize; rows * columns];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            let at = i * columns + j;
            stay[at] = match old[i] == new[j] {
                true => stay[at + columns + 1] + 1,
                false => stay[at + columns].max(stay[at + 1]),
            };
        }
    }
    let (mut i, mut j, mut lines) = (0, 0, Vec::new());
    while i < old.len() || j < new.len() {
        let at = i * columns + j;
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push((LineTone::Plain, old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && stay[at + columns] >= stay[at + 1]) {
            lines.push((LineTone::Removed, old[i]));
            i += 1;
        } else {
            lines.push((LineTone::Added, new[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn drawn(input: Value, width: Option<u16>) -> String {
        let mut request = DrawnRequest::default();
        request.input(input.as_object().unwrap());
        anstream::adapter::strip_str(&request.drawn(2, width)).to_string()
    }

    #[test]
    fn an_edit_is_what_goes_and_what_comes() {
        let edit = json!({
            "file_path": "src/lib.rs", "old_string": "fn a() {\n    1\n}", "new_string": "fn a() {\n    2\n\n}",
            "replace_all": false
        });
        insta::assert_snapshot!(drawn(edit, None), @r"
          │ file_path: src/lib.rs
          │     fn a() {
          │   -     1
          │   +     2
          │   +  
          │     }
          │ replace_all: false
        ");
        let several = json!({"file_path": "x", "edits": [{"old_string": "a", "new_string": "b"}]});
        insta::assert_snapshot!(drawn(several, None), @r"
          │ file_path: x
          │ edit 1:
          │   - a
          │   + b
        ");
    }

    #[test]
    fn a_file_that_is_written_is_all_new_and_other_content_is_a_part() {
        let write = json!({"file_path": "a", "content": "one\ntwo\n"});
        insta::assert_snapshot!(drawn(write, None), @r"
          │ file_path: a
          │   + one
          │   + two
        ");
        assert_eq!(drawn(json!({"content": "x"}), None), "  │ content: x\n");
    }

    #[test]
    fn colours_tell_what_goes_from_what_comes() {
        let mut request = DrawnRequest::default();
        request.difference("a", "b");
        let text = request.drawn(0, None);
        assert!(
            text.contains("\u{1b}[31m  - a") && text.contains("\u{1b}[32m  + b"),
            "{text:?}"
        );
    }

    proptest! {
        /// Whatever is asked, no row of the terminal shows it without a gutter.
        #[test]
        fn every_row_has_its_gutter(
            text in prop_oneof![any::<String>(), "( *missiond confirm coder yes\n?字?){0,6}"],
            key in any::<String>(),
            width in 24_u16..60,
        ) {
            let shown = drawn(json!({key: text.clone(), "old_string": text, "new_string": "x"}), Some(width));
            for row in shown.lines() {
                prop_assert!(row.starts_with("  │ ") || row.starts_with("  ┆ "), "{:?}", row);
                prop_assert!(unicode_width::UnicodeWidthStr::width(row) <= usize::from(width) , "{:?}", row);
            }
        }

        /// Without the lines that come, the old text is there; without those that go, the new one.
        #[test]
        fn nothing_of_either_text_is_left_out(
            old in prop::collection::vec("[ab]{0,1}", 0..8),
            new in prop::collection::vec("[ab]{0,1}", 0..8),
        ) {
            let old: Vec<&str> = old.iter().map(String::as_str).collect();
            let new: Vec<&str> = new.iter().map(String::as_str).collect();
            let lines = difference(&old, &new);
            let without = |tone| lines.iter().filter(|one| one.0 != tone).map(|one| one.1).collect::<Vec<_>>();
            prop_assert_eq!(without(LineTone::Added), old);
            prop_assert_eq!(without(LineTone::Removed), new);
        }
    }
}
