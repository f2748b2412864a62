//! Two choices side by side, as Claude Code draws them where a server of tools asks the person something:
//! `❯ Accept    Decline`. The arrows move the marker from one to the other, up and down too.

use super::DialogOptions;
use crate::core::claude::reading::page::{MARKER, Page};
use crate::core::claude::reading::{Choice, Digits};
use unicode_width::UnicodeWidthStr;

const LABELS: [&str; 2] = ["Accept", "Decline"];

/// The choices below the last rule, if one of them is marked. With the marker above them a field of the form has the keys, and
/// there is nothing to choose.
pub(super) fn find(page: &Page) -> Option<DialogOptions> {
    let head = page.above(page.len(), |row| page.is_head(row))?;
    let row = page.above(page.len(), |row| row > head && is_row(page.text(row)))?;
    let text = page.text(row);
    let marked = page.above(row + 1, |row| row > head && page.text(row).contains(MARKER))?;
    let before = page.text(marked).split_once(MARKER)?.0;
    let at_buttons = marked == row;
    let choices = LABELS.map(choice).into_iter().filter(|_| at_buttons);
    Some(DialogOptions {
        choices: choices.collect(),
        selected: parts(text).position(|part| part.starts_with(MARKER)),
        marker: (marked, before.width()),
        first: marked,
        end: row + 1,
        whole: true,
        digits: match at_buttons {
            true => Digits::Pick,
            false => Digits::Write,
        },
    })
}

fn is_row(text: &str) -> bool {
    let labels = parts(text).map(|part| part.trim_start_matches(MARKER).trim_start());
    labels.eq(LABELS)
}

/// What is set apart by two spaces or more.
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
