//! The call that stands above a dialog, as the conversation shows it.

use super::activity;
use super::dialog::Found;
use super::page::Joint;

/// The signs of the last call above a dialog, `⎿  $ mkfifo p` or `● Bash(mkfifo p)`, and what is in front of each.
pub(super) struct Called(Vec<(char, Before)>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    Blank,
    /// A row begins with it.
    Edge,
}

impl Called {
    pub(super) fn above(found: &Found) -> Called {
        let page = found.page;
        let top = found.top.unwrap_or(0);
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
        let rows = std::iter::once(command).chain((first + 1..top).map(|row| page.text(row)));
        Called(rows.flat_map(signs_of).collect())
    }

    /// What is in front of the sign number `place` of the command with these rows, where the call shows it.
    pub(super) fn joint_at(&self, texts: &[&str], place: usize) -> Option<Joint> {
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
        match before {
            Before::Nothing => Some(Joint::Shown),
            Before::Blank => Some(Joint::Blank),
            Before::Edge => None,
        }
    }
}

fn signs_of(row: &str) -> Vec<(char, Before)> {
    let mut before = Before::Edge;
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
