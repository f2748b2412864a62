//! The list of choices of a dialog.

mod beside;
mod previews;

use super::page::{MARKER, Page, indent, join_label};
use super::{Choice, Digits};
use crate::core::claude::vocabulary::BUTTONS;
use unicode_width::UnicodeWidthStr;

/// A list of choices found on the page.
pub(super) struct DialogOptions {
    choices: Vec<Choice>,
    selected: Option<usize>,
    /// Row and column of the marker, which stands in front of the selected choice.
    marker: (usize, usize),
    /// The first row of the list, and the row after the last one.
    first: usize,
    end: usize,
    /// Whether the list could be followed from its first choice on.
    whole: bool,
    digits: Digits,
}

/// Columns between the marker and the ticks, below which the button stands: `❯ 4. [ ]`.
const TICK_INDENT: usize = 5;

/// A row that begins a choice.
struct OptionEntry<'a> {
    row: usize,
    number: Option<u32>,
    text: &'a str,
    /// Rows below it that say more of it, where it has no number.
    details: usize,
}

impl DialogOptions {
    pub(super) fn choices(&self) -> &[Choice] {
        &self.choices
    }

    pub(super) fn selected(&self) -> Option<usize> {
        self.selected
    }

    pub(super) fn marker(&self) -> (usize, usize) {
        self.marker
    }

    pub(super) fn first(&self) -> usize {
        self.first
    }

    pub(super) fn end(&self) -> usize {
        self.end
    }

    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    pub(super) fn digits(&self) -> Digits {
        self.digits
    }

    /// The list of the dialog at the bottom of the page: below the last rule, or below the one before
    /// where a rule divides the list itself. Only a dialog whose head is off the page has none above.
    pub(super) fn find(page: &Page) -> Option<DialogOptions> {
        previews::find(page)
            .or_else(|| beside::find(page))
            .or_else(|| DialogOptions::find_plain(page))
    }

    fn find_plain(page: &Page) -> Option<DialogOptions> {
        let Some(last) = page.above(page.len(), |row| page.is_head(row)) else {
            let marker = find_marker(page, 0, 0).filter(|marker| marker.1 > 0)?;
            return Some(DialogOptions::around(page, marker));
        };
        if let Some(marker) = find_marker(page, last + 1, 0) {
            return Some(DialogOptions::around(page, marker));
        }
        let before = page.above(last, |row| page.is_head(row));
        let marker = find_marker(page, before.map_or(0, |before| before + 1), 0)?;
        let found = DialogOptions::around(page, marker);
        // With no head above, only a list that goes on below the rule is divided by it.
        (before.is_some() || found.end > last).then_some(found)
    }

    /// The list of a view of which nothing is known but that it takes the keys: prompts of the conversation, which stand in
    /// the first column, may be left above it.
    pub(super) fn find_below_prompts(page: &Page) -> Option<DialogOptions> {
        let marker = find_marker(page, 0, 1)?;
        Some(DialogOptions::around(page, marker))
    }

    pub(super) fn around(page: &Page, marker: (usize, usize)) -> DialogOptions {
        let (row, col) = marker;
        let entry = entry_at(page, row, col).unwrap_or(OptionEntry {
            row,
            number: None,
            text: "",
            details: 0,
        });
        let entries = match numbered_from(page, col, &entry) {
            Some((row, number)) => with_button(page, col, numbered(page, col, row, number)),
            None => unnumbered(page, col, row),
        };
        let aside = second_column(page, &entries);
        let end = entries
            .last()
            .map_or(row, |entry| entry_end(page, col, entry.row + entry.details));
        let whole = entries
            .first()
            .is_some_and(|entry| entry.number.is_none_or(|number| number == 1));
        let selected = selected(page, &entries, marker);
        let writes = selected.is_some_and(|at| has_field(page, marker, entries[at].row));
        DialogOptions {
            selected,
            digits: if writes { Digits::Write } else { Digits::Pick },
            first: entries.first().map_or(row, |entry| entry.row),
            choices: entries
                .iter()
                .map(|entry| choice(page, col, entry, aside))
                .collect(),
            marker,
            end,
            whole,
        }
    }
}

/// Whether the cursor stands in a choice, behind its marker: it is parked there, or drawn where versions that park none
/// draw it. Then the choice is a field, and takes what is typed.
fn has_field(page: &Page, (marked, col): (usize, usize), first: usize) -> bool {
    let cursor = page.screen().cursor;
    let end = entry_end(page, col, first).max(marked + 1);
    let within = |row: usize| (first..end).contains(&row);
    within(cursor.row) && cursor.col > col + 1 || page.drawn_cursors().any(within)
}

/// The choice that the marker stands in front of.
fn selected(page: &Page, entries: &[OptionEntry], (row, col): (usize, usize)) -> Option<usize> {
    let here = entries.iter().position(|entry| entry.row == row);
    let above = || entries.iter().rposition(|entry| entry.row < row);
    here.or_else(|| is_marked_below(page, row, col).then(above).flatten())
}

/// Whether the marker stands in front of a later row of a numbered choice, as old versions have it where the label
/// fills its first row and is wrapped.
fn is_marked_below(page: &Page, row: usize, col: usize) -> bool {
    let marked = page.row(row).indent() == col && page.text(row).trim().starts_with(MARKER);
    let unnumbered = split_number(below(page, row)).0.is_none();
    let behind_number = row > 0
        && (entry_starts(page, row - 1, col) && is_full(page, row)
            || runs_over(page, row - 1, col));
    marked && unnumbered && behind_number
}

/// Whether a row is the next word of the numbered choice above it, which an old version has set to the very left, or behind
/// the blank at which it was wrapped.
fn runs_over(page: &Page, row: usize, col: usize) -> bool {
    let is_left = page.row(row).indent() <= col && marker_column(page.text(row)).is_none();
    let outside = col > 0 && is_left && !page.is_rule(row);
    let follows = row > 0 && entry_starts(page, row - 1, col);
    outside && follows && !page.is_blank(row) && is_full(page, row)
}

/// The column of the marker in a row; it may stand alone in the second row of its choice.
fn marker_at(page: &Page, row: usize) -> Option<usize> {
    let alone = || {
        let col = page.row(row).indent();
        is_marked_below(page, row, col).then_some(col)
    };
    marker_column(page.text(row)).or_else(alone)
}

/// A row of a choice below its first one.
fn below<'a>(page: &Page<'a>, row: usize) -> &'a str {
    page.text(row)
        .trim()
        .trim_start_matches(MARKER)
        .trim_start()
}

/// The marker in the rows from `start` and the columns from `left_edge` on. Where the program parks the cursor on
/// its marker, that one is meant; else the least indented one, since what a dialog quotes is indented further than
/// the dialog's own list, and of those the lowest, since the list comes last.
pub(super) fn find_marker(page: &Page, start: usize, left_edge: usize) -> Option<(usize, usize)> {
    let cursor = page.screen().cursor;
    let rows = start..page.len();
    let marked: Vec<(usize, usize)> = rows
        .filter_map(|row| marker_at(page, row).map(|col| (row, col)))
        .filter(|(_, col)| *col >= left_edge)
        .collect();
    let left = marked.iter().map(|(_, col)| *col).min()?;
    let parked = marked
        .iter()
        .find(|(row, col)| (cursor.row, cursor.col) == (*row, *col));
    let lowest = marked.iter().rev().find(|(_, col)| *col == left);
    parked.or(lowest).copied()
}

/// Signs that stand in the marker's place where a list goes on beyond what is shown.
const SCROLL_SIGNS: [char; 2] = ['↑', '↓'];

/// The column of the marker where a row begins with one that has a label behind it.
fn marker_column(text: &str) -> Option<usize> {
    let rest = text.trim_start_matches(' ').strip_prefix(MARKER)?;
    // Where a label fills its row the blank is left out: `❯1. Along the river`.
    let apart = rest.starts_with([' ', '\u{a0}']) || split_number(rest).0.is_some();
    (apart && !rest.trim().is_empty()).then(|| indent(text))
}

/// The choice that begins in `row`, of a list whose marker column is `col`.
fn entry_at<'a>(page: &Page<'a>, row: usize, col: usize) -> Option<OptionEntry<'a>> {
    let text = page.text(row);
    let unsigned = text.trim_start_matches(' ');
    let unsigned = unsigned.strip_prefix(SCROLL_SIGNS).unwrap_or(unsigned);
    let label = unsigned
        .trim_start_matches(MARKER)
        .trim_start_matches([' ', '\u{a0}']);
    let signed = text.trim_start_matches(' ').starts_with(SCROLL_SIGNS) && indent(text) == col;
    let start = if signed || marker_column(text) == Some(col) {
        col + 2
    } else {
        indent(text)
    };
    if label.is_empty() || !(col + 1..=col + 2).contains(&start) {
        return None;
    }
    let (number, text) = split_number(label);
    Some(OptionEntry {
        row,
        number,
        text,
        details: 0,
    })
}

/// Where a numbered list can be followed from: the entry itself, or the one above the button.
fn numbered_from(page: &Page, col: usize, entry: &OptionEntry) -> Option<(usize, u32)> {
    let start = match entry.number {
        Some(_) => entry.row,
        None if is_marked_below(page, entry.row, col) => entry.row,
        None => button_at(page, entry.row, col).map(|button| button.row)?,
    };
    let numbered = |row: usize| entry_at(page, row, col).and_then(|entry| entry.number);
    (0..=start)
        .rev()
        .find_map(|row| Some((row, numbered(row)?)))
}

/// The button, where `row` is it.
fn button_at<'a>(page: &Page<'a>, row: usize, col: usize) -> Option<OptionEntry<'a>> {
    let text = page.text(row);
    let label = text.trim_start_matches([' ', '\u{a0}', MARKER]);
    let start = text.chars().count() - label.chars().count();
    let found = BUTTONS.contains(&label) && start == col + TICK_INDENT;
    found.then_some(OptionEntry {
        row,
        number: None,
        text: label,
        details: 0,
    })
}

/// Puts the button of the list behind the last choice that can be ticked, below which it stands.
fn with_button<'a>(
    page: &Page<'a>,
    col: usize,
    mut entries: Vec<OptionEntry<'a>>,
) -> Vec<OptionEntry<'a>> {
    let ticked = |entry: &OptionEntry| split_check(entry.text).0.is_some();
    if let Some(last) = entries.iter().rposition(ticked) {
        let end = entry_end(page, col, entries[last].row);
        entries.splice(last + 1..last + 1, button_at(page, end, col));
    }
    entries
}

/// `2. No` into its number and its label.
fn split_number(label: &str) -> (Option<u32>, &str) {
    let numbered = label.split_once('.').and_then(|(number, rest)| {
        // Where a label had to be cut short of its row, some versions leave out the blank: `2.Yes`. `2.5 GB` is a label.
        let text = match rest.strip_prefix(' ') {
            Some(text) => Some(text).filter(|text| !text.is_empty()),
            None => Some(rest).filter(|text| text.starts_with(|c: char| !c.is_ascii_digit())),
        };
        Some((number.parse().ok()?, text?))
    });
    numbered.map_or((None, label), |(number, text)| (Some(number), text))
}

/// Follows the numbers up to 1 and down to the last one.
fn numbered<'a>(page: &Page<'a>, col: usize, row: usize, number: u32) -> Vec<OptionEntry<'a>> {
    let with_number = |row: usize, wanted: u32| {
        entry_at(page, row, col).filter(|entry| entry.number == Some(wanted))
    };
    let mut entries: Vec<OptionEntry> = with_number(row, number).into_iter().collect();
    let (mut at, mut wanted) = (row, number);
    while let Some(entry) = wanted
        .checked_sub(1)
        .and_then(|n| find_near(page, col, (0..at).rev(), |row| with_number(row, n)))
    {
        (at, wanted) = (entry.row, wanted - 1);
        entries.insert(0, entry);
    }
    (at, wanted) = (row, number);
    while let Some(entry) = find_near(page, col, at + 1..page.len(), |row| {
        with_number(row, wanted + 1)
    }) {
        (at, wanted) = (entry.row, wanted + 1);
        entries.push(entry);
    }
    entries
}

/// The next entry in the order of `rows`, over descriptions, wrapped labels, a rule and a few blanks.
fn find_near<'a>(
    page: &Page<'a>,
    col: usize,
    rows: impl Iterator<Item = usize>,
    wanted: impl Fn(usize) -> Option<OptionEntry<'a>>,
) -> Option<OptionEntry<'a>> {
    let mut blanks = 0;
    for row in rows {
        if let Some(entry) = wanted(row) {
            return Some(entry);
        }
        let belongs = page.is_rule(row)
            || page.row(row).indent() >= 2
            || page.is_spilled(row)
            || is_marked_below(page, row, col)
            || runs_over(page, row, col)
            || button_at(page, row, col).is_some();
        blanks += usize::from(page.is_blank(row));
        if blanks > 1 || !(belongs || page.is_blank(row)) {
            return None;
        }
    }
    None
}

/// The rows around the marker that stand in one column with it.
fn unnumbered<'a>(page: &Page<'a>, col: usize, row: usize) -> Vec<OptionEntry<'a>> {
    let (_, column) = behind_tick(page.text(row));
    let entry = |row: usize| {
        let beside =
            || entry_at(page, row, col).filter(|_| row == 0 || indent_of_label(page, row, col));
        entry_in_column(page, row, column).or_else(beside)
    };
    let first = (0..row)
        .rev()
        .take_while(|row| entry(*row).is_some())
        .last();
    let rows = first.unwrap_or(row)..page.len();
    let entries: Vec<OptionEntry> = rows.map_while(&entry).collect();
    with_details(page, column, &entries).unwrap_or(entries)
}

/// The sign of the choice that holds, in front of its label: `❯ ✔ Dark mode`.
const TICK: char = '✔';

/// The label of a row without the marker and a tick, and the column where it begins.
fn behind_tick(text: &str) -> (&str, usize) {
    let label = text.trim_start_matches([' ', '\u{a0}', MARKER]);
    let ticked = label
        .strip_prefix(TICK)
        .and_then(|label| label.strip_prefix(' '));
    let label = ticked.unwrap_or(label).trim_start();
    (label, text.chars().count() - label.chars().count())
}

fn entry_in_column<'a>(page: &Page<'a>, row: usize, column: usize) -> Option<OptionEntry<'a>> {
    let (text, start) = behind_tick(page.text(row));
    let found = start == column && !text.is_empty() && !is_scroll_note(page.text(row));
    found.then_some(OptionEntry {
        row,
        number: None,
        text,
        details: 0,
    })
}

/// Choices with blank rows between them, each with muted rows below its label that say more of it. `marked` are the rows
/// around the marker; where no other choice looks like that they are taken as they are.
fn with_details<'a>(
    page: &Page<'a>,
    column: usize,
    marked: &[OptionEntry<'a>],
) -> Option<Vec<OptionEntry<'a>>> {
    let (first, last) = (marked.first()?.row, marked.last()?.row);
    let of = |first: usize, last: usize| {
        let label = entry_in_column(page, first, column)?;
        let muted = |row| entry_in_column(page, row, column).is_some() && page.row(row).is_muted();
        let details = last - first;
        (first + 1..=last)
            .all(muted)
            .then_some(OptionEntry { details, ..label })
    };
    let is_choice = |entry: &OptionEntry| entry.details > 0 && !page.row(entry.row).is_muted();
    let mut entries = vec![of(first, last)?];
    while let Some(entry) = block_above(page, entries[0].row)
        .and_then(|(first, last)| of(first, last))
        .filter(is_choice)
    {
        entries.insert(0, entry);
    }
    while let Some(entry) = entries
        .last()
        .and_then(|entry| block_below(page, entry.row + entry.details))
        .and_then(|(first, last)| of(first, last))
        .filter(is_choice)
    {
        entries.push(entry);
    }
    (entries.len() > 1).then_some(entries)
}

/// The first and the last of the rows with text that one blank row parts from `row` below them.
fn block_above(page: &Page, row: usize) -> Option<(usize, usize)> {
    let last = row.checked_sub(2).filter(|_| page.is_blank(row - 1))?;
    let first = page.above(last + 1, |row| page.is_blank(row))? + 1;
    (first <= last).then_some((first, last))
}

fn block_below(page: &Page, row: usize) -> Option<(usize, usize)> {
    let first = row + 2;
    let parted = first < page.len() && page.is_blank(row + 1) && !page.is_blank(first);
    let end = (first..page.len()).find(|row| page.is_blank(*row));
    parted.then(|| (first, end.unwrap_or(page.len()) - 1))
}

fn indent_of_label(page: &Page, row: usize, col: usize) -> bool {
    marker_column(page.text(row)) == Some(col)
        || page.row(row).indent() == col + 2 && !is_scroll_note(page.text(row))
}

/// `↓ 14 more`, `↓ 9 more below`
fn is_scroll_note(text: &str) -> bool {
    let counted = text.trim_start().strip_prefix(SCROLL_SIGNS);
    counted.is_some_and(|text| text.ends_with(" more") || text.contains(" more "))
}

/// Whether a row says that a list whose marker column is `col` goes on: by a note such as `↓ 14 more` or `… +3 models`, or
/// by an arrow in the marker's place.
pub(super) fn goes_on(text: &str, col: Option<usize>) -> bool {
    let label = text.trim_start();
    let is_count = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let arrow = label.strip_prefix(SCROLL_SIGNS);
    let note = arrow.is_some_and(|text| is_count(text.trim_start())) && is_scroll_note(text);
    let left_out = label.strip_prefix("… +").is_some_and(is_count);
    // Not `↓ to select`, which says what a key does.
    let choice = arrow.and_then(|text| text.strip_prefix(' '));
    let in_place = col == Some(indent(text)) && choice.is_some_and(|text| !text.starts_with("to "));
    note || left_out || in_place
}

/// The row after the choice that begins in `row`: over what is indented as far as a number.
fn entry_end(page: &Page, col: usize, row: usize) -> usize {
    let ends = |next: &usize| {
        page.is_blank(*next)
            || page.row(*next).indent() <= col
                && !page.is_spilled(*next)
                && !is_marked_below(page, *next, col)
                && !runs_over(page, *next, col)
            || entry_starts(page, *next, col)
            || button_at(page, *next, col).is_some() && is_ticked_row(page, row, col)
    };
    (row + 1..page.len()).find(ends).unwrap_or(page.len())
}

fn is_ticked_row(page: &Page, row: usize, col: usize) -> bool {
    entry_at(page, row, col).is_some_and(|entry| split_check(entry.text).0.is_some())
}

fn entry_starts(page: &Page, row: usize, col: usize) -> bool {
    entry_at(page, row, col).is_some_and(|entry| entry.number.is_some())
}

fn choice(page: &Page, col: usize, entry: &OptionEntry, second: Option<usize>) -> Choice {
    let (checked, text) = split_check(entry.text);
    let end = match entry.number {
        Some(_) => entry_end(page, col, entry.row),
        None => entry.row + 1 + entry.details,
    };
    let (label, aside) = split_columns(page.text(entry.row), text, second);
    let rows: Vec<usize> = (entry.row + 1..end).collect();
    let wraps = rows
        .iter()
        .take_while(|row| {
            let goes_on = continues_label(page, entry, **row) || runs_over(page, **row - 1, col);
            entry.number.is_some() && aside.is_none() && goes_on
        })
        .count();
    let rest = aside
        .into_iter()
        .chain(rows[wraps..].iter().map(|row| page.text(*row)));
    let description = Some(join_label(rest)).filter(|text| !text.is_empty());
    let mut whole = label.trim().to_owned();
    for row in &rows[..wraps] {
        whole.push_str(if page.is_spilled(*row) { "" } else { " " });
        whole.push_str(below(page, *row));
    }
    let label = whole.trim_end_matches('✔').trim_end().to_owned();
    Choice {
        label,
        number: entry.number,
        description,
        checked,
    }
}

/// `[ ] Cheese` into whether it is ticked and its label.
fn split_check(text: &str) -> (Option<bool>, &str) {
    match text
        .strip_prefix('[')
        .and_then(|text| text.split_once("] "))
    {
        Some((tick, label)) if tick.chars().count() == 1 => (Some(tick != " "), label),
        _ => (None, text),
    }
}

/// A menu sets its explanations into a second column: the column in which a text begins after three or
/// more blanks, in two choices or more.
fn second_column(page: &Page, entries: &[OptionEntry]) -> Option<usize> {
    let starts: Vec<usize> = entries
        .iter()
        .filter_map(|entry| text_after_gap(page.text(entry.row)))
        .collect();
    let begins_at = |start: usize| {
        let split = |entry: &&OptionEntry| split_at_column(page.text(entry.row), start).is_some();
        entries.iter().filter(split).count()
    };
    starts.into_iter().find(|start| begins_at(*start) >= 2)
}

/// What begins in a column, after two blanks at least.
fn split_at_column(row: &str, column: usize) -> Option<&str> {
    let at = row
        .char_indices()
        .map(|(at, _)| at)
        .find(|at| row[..*at].width() == column)?;
    let begins = row[..at].ends_with("  ") && !row[at..].starts_with(' ');
    begins.then_some(&row[at..])
}

fn text_after_gap(text: &str) -> Option<usize> {
    let label = text.trim_start_matches([' ', MARKER]);
    let gap = text.len() - label.len() + label.find("   ")?;
    let rest = text[gap..].trim_start();
    Some(text[..text.len() - rest.len()].width())
}

/// The label, and the explanation in the second column, where the list has one and a gap before it.
fn split_columns<'a>(
    row: &'a str,
    label: &'a str,
    second: Option<usize>,
) -> (&'a str, Option<&'a str>) {
    match second.and_then(|second| split_at_column(row, second)) {
        Some(aside) => (
            label[..label.len().saturating_sub(aside.len())].trim(),
            Some(aside),
        ),
        None => (label, None),
    }
}

/// A row below a choice continues its label if the label's row had no room for the next word; else it
/// is the choice's description.
fn continues_label(page: &Page, entry: &OptionEntry, row: usize) -> bool {
    is_full(page, row) && !entry.text.is_empty()
}

/// Whether the row above has no room for the first word of `row`.
fn is_full(page: &Page, row: usize) -> bool {
    let word = below(page, row)
        .split_whitespace()
        .next()
        .unwrap_or_default();
    page.text(row - 1).width() + 1 + word.width() + 2 > page.cols()
}
