//! The call that stands above a dialog, as the conversation shows it.

use super::activity;
use super::dialog::FoundDialog;
use super::page::{Joint, has_room};

/// Columns that the conversation may leave free at the right side of a row, with its indent.
const MARGIN: usize = 10;

/// The signs of the last call above a dialog, `⎿  $ mkfifo p` or `● Bash(mkfifo p)`, and what is in front of each.
pub(super) struct Called(Vec<(char, Before)>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Blank,
    /// A row begins with it, and may be the rest of a line.
    Edge,
    /// A row begins with it, and the row before had room for more: a line begins here.
    Line,
}

impl Called {
    pub(super) fn above(found: &FoundDialog) -> Called {
        let page = found.page();
        let top = found.top().unwrap_or(0);
        let last = activity::last_entry(page, top).unwrap_or(top);
        let begins = |row: usize| {
            let text = page.text(row);
            let shell = text
                .split_once("⎿")
                .and_then(|(_, text)| text.split_once("$ "));
            shell
                .or_else(|| text.split_once("Bash("))
                .map(|(_, command)| (row, command))
        };
        let Some((first, command)) = (last..top).find_map(begins) else {
            return Called(Vec::new());
        };
        let width = page.cols().saturating_sub(MARGIN);
        let mut before = page.text(first);
        let more = (first + 1..top).flat_map(|row| {
            let text = page.text(row);
            let is_line = has_room(before, text.trim_start(), width);
            before = text;
            signs_of(text, if is_line { Before::Line } else { Before::Edge })
        });
        let signs = signs_of(command, Before::Edge).into_iter();
        Called(signs.chain(more).collect())
    }

    /// What is in front of the sign number `place` of the command with these rows, where the call shows it. `place` is
    /// the first sign of one of the rows.
    pub(super) fn joint_at(&self, texts: &[&str], place: usize) -> Option<Joint> {
        let signs = |text: &&str| text.chars().filter(|c| !c.is_whitespace()).count();
        let command = texts
            .iter()
            .flat_map(|text| text.chars())
            .filter(|c| !c.is_whitespace());
        let called = self.0.iter().map(|(c, _)| *c);
        let same = command
            .zip(called)
            .take(place + 1)
            .filter(|(one, other)| one == other)
            .count();
        let before = self.0.get(place).filter(|_| same == place + 1)?.1;
        let mut passed = 0;
        let row = texts.iter().find(|text| {
            passed += signs(text);
            passed > place
        });
        let shows_blank = row.is_some_and(|row| row.starts_with(' '));
        match before {
            // The row shows a blank that the call does not have.
            Before::Nothing if shows_blank => None,
            Before::Nothing => Some(Joint::Shown),
            Before::Blank if shows_blank => Some(Joint::Shown),
            Before::Blank => Some(Joint::Blank),
            Before::Line => Some(Joint::Line),
            Before::Edge => None,
        }
    }
}

fn signs_of(row: &str, mut before: Before) -> Vec<(char, Before)> {
    let mut signs = Vec::new();
    for c in row.trim().chars() {
        if c.is_whitespace() {
            before = Before::Blank;
        } else {
            signs.push((c, before));
            before = Before::Nothing;
        }
    }
    signs
}
