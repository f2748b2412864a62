//! Two choices side by side, as Claude Code draws them where a server of tools asks the person something:
//! `❯ Accept    Decline`. The arrows move the marker from one to the other, up and down too.

use super::options::DialogOptions;
use super::page::{MARKER, Page};
use super::{Choice, Digits};
use unicode_width::UnicodeWidthStr;

const LABELS: [&str; 2] = ["Accept", "Decline"];

/// The choices below the last rule, where one of them is marked. With the marker elsewhere a field has the keys.
pub(super) fn find(page: &Page) -> Option<DialogOptions> {
    let head = page.above(page.len(), |row| page.is_head(row))?;
    let row = page.above(page.len(), |row| row > head && is_row(page.text(row)))?;
    let text = page.text(row);
    let before = text.split_once(MARKER)?.0;
    Some(DialogOptions {
        choices: LABELS.map(choice).into(),
        selected: parts(text).position(|part| part.starts_with(MARKER)),
        marker: (row, before.width()),
        first: row,
        end: row + 1,
        whole: true,
        digits: Digits::Pick,
    })
}

fn is_row(text: &str) -> bool {
    let labels = parts(text).map(|part| part.trim_start_matches(MARKER).trim_start());
    labels.eq(LABELS)
}

/// What is set apart by two blanks or more.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split("  ")
        .map(str::trim)
        .filter(|part| !part.is_empty())
}

fn choice(label: &str) -> Choice {
    Choice {
        label: label.to_owned(),
        number: None,
        description: None,
        checked: None,
    }
}
