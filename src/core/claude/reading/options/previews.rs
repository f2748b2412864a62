//! A question whose choices have previews: a box stands beside the list, and shows that of the marked row. A digit only
//! moves there, and below a rule is the choice to talk instead.

use super::{DialogOptions, find_marker};
use crate::core::claude::reading::page::{MARKER, Page};
use crate::core::claude::reading::{Choice, Digits};
use crate::core::claude::vocabulary::TALK_INSTEAD;
use std::ops::Range;
use unicode_width::UnicodeWidthStr;

/// The list of the question at the bottom of the page, where a box stands beside it.
pub(super) fn find(page: &Page) -> Option<DialogOptions> {
    let last = page.above(page.len(), |row| page.is_head(row))?;
    let between = page
        .above(last, |row| page.is_head(row))
        .map(|head| head + 1..last);
    let (rows, from, column) = [between, Some(last + 1..page.len())]
        .into_iter()
        .flatten()
        .find_map(|rows| preview(page, rows.clone()).map(|(from, column)| (rows, from, column)))?;
    let list = page.left_of(column, from, rows.end);
    let marker = find_marker(&list, rows.start, 0).filter(|marker| marker.1 == 0)?;
    let mut options = DialogOptions::around(&list, marker);
    options.choices.iter_mut().for_each(without_description);
    options.digits = Digits::Move;
    add_talk(page, rows.end + 1, &mut options);
    let notes = from..rows.end;
    if page.drawn_cursors().any(|row| notes.contains(&row)) {
        // Somebody writes notes: no row takes a key.
        options.selected = None;
    }
    Some(options)
}

/// The row and the column in which the box begins.
fn preview(page: &Page, mut rows: Range<usize>) -> Option<(usize, usize)> {
    rows.find_map(|row| {
        let (list, lid) = page.text(row).split_once("  ┌─")?;
        let is_lid = lid.trim_start_matches('─') == "┐";
        let column = list.width() + 2;
        let left = page.left_of(column, row + 1, page.len());
        let side = page.text(row + 1).get(left.text(row + 1).len()..)?;
        let goes_on = side.trim_start().starts_with(['│', '└']);
        (is_lid && goes_on).then_some((row, column))
    })
}

/// Nothing but its label stands below a choice.
fn without_description(choice: &mut Choice) {
    if let Some(rest) = choice.description.take() {
        choice.label = format!("{} {rest}", choice.label);
    }
}

fn add_talk(page: &Page, row: usize, options: &mut DialogOptions) {
    let text = page.text(row);
    if text.trim_start_matches([MARKER, ' ']) != TALK_INSTEAD {
        return;
    }
    if text.starts_with(MARKER) {
        options.selected = Some(options.choices.len());
    }
    options.choices.push(Choice {
        label: TALK_INSTEAD.to_owned(),
        number: None,
        description: None,
        checked: None,
    });
    options.end = row + 1;
}
