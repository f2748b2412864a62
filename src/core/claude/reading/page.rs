//! The screen as a reader goes through it: rows of text with the marks that Claude Code draws.

use crate::core::terminal::{Line, Screen, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The mark in front of the selected row of a list, and of the input box since 2.1.
pub(super) const MARKER: char = '❯';

pub(super) struct Page<'a> {
    screen: &'a Screen,
    /// Rows down to the last one with text; a row inside a full-width box is without its borders.
    rows: Vec<PageRow<'a>>,
}

pub(super) struct PageRow<'a> {
    text: &'a str,
    boxed: bool,
    line: &'a Line,
}

impl<'a> Page<'a> {
    pub(super) fn new(screen: &'a Screen) -> Page<'a> {
        let used = screen
            .lines
            .iter()
            .rposition(|line| !line.text.trim().is_empty())
            .map_or(0, |row| row + 1);
        let rows = screen.lines[..used]
            .iter()
            .map(|line| PageRow::new(line, screen.cols))
            .collect();
        Page { screen, rows }
    }

    /// The page without what stands in row `end` and below.
    pub(super) fn above_row(&self, end: usize) -> Page<'a> {
        let lines = &self.screen.lines[..end.min(self.len())];
        let rows = lines.iter().map(|line| PageRow::new(line, self.cols()));
        let screen = self.screen;
        Page {
            screen,
            rows: rows.collect(),
        }
    }

    /// The page above row `end`, without what stands in column `column` and right of it in row `from` and below.
    pub(super) fn left_of(&self, column: usize, from: usize, end: usize) -> Page<'a> {
        let mut page = self.above_row(end);
        for row in page.rows.iter_mut().skip(from) {
            let mut places = columns(row.text).zip(row.text.char_indices());
            let cut = places.find(|((col, _), _)| *col >= column);
            let cut = cut.map_or(row.text.len(), |(_, (at, _))| at);
            row.text = row.text[..cut].trim_end();
        }
        page
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn screen(&self) -> &'a Screen {
        self.screen
    }

    pub(super) fn cols(&self) -> usize {
        self.screen.cols
    }

    pub(super) fn row(&self, row: usize) -> &PageRow<'a> {
        &self.rows[row]
    }

    pub(super) fn text(&self, row: usize) -> &'a str {
        self.rows.get(row).map_or("", |row| row.text)
    }

    /// A line from edge to edge, as it bounds the input box and the head of a dialog. It begins in the
    /// first column: text of a model, a tool or a file never does, it is indented.
    pub(super) fn is_rule(&self, row: usize) -> bool {
        is_rule(self.text(row), self.cols())
    }

    /// The top border of a box or a panel from edge to edge.
    pub(super) fn is_lid(&self, row: usize) -> bool {
        let text = self.text(row);
        let lid = text.starts_with("╭─") && text.ends_with("─╮") || text.starts_with("▔▔");
        lid && text.width() + 2 >= self.cols()
    }

    /// The line over a dialog: a rule, or the upper edge of a panel.
    pub(super) fn is_head(&self, row: usize) -> bool {
        self.is_rule(row) || self.is_lid(row) && self.text(row).starts_with('▔')
    }

    /// Whether nothing on the page has any colour: the user wants none.
    pub(super) fn is_plain(&self) -> bool {
        let styled = |row: &PageRow| row.styles_from(0).any(|style| style.coloured || style.dim);
        !self.rows.iter().any(styled)
    }

    /// Whether a row is what was too much for the one above: the program let the terminal break the line, and not
    /// between words.
    pub(super) fn is_spilled(&self, row: usize) -> bool {
        let full = row > 0 && self.text(row - 1).width() >= self.cols();
        full && !self.is_rule(row - 1) && !self.is_blank(row) && self.row(row).indent() == 0
    }

    /// Whether the terminal wrapped a row into the next one.
    pub(super) fn is_wrapped(&self, row: usize) -> bool {
        self.rows.get(row).is_some_and(|row| row.line.wrapped)
    }

    pub(super) fn is_blank(&self, row: usize) -> bool {
        self.text(row).trim().is_empty()
    }

    /// The rows in which a cursor is drawn: one cell, turned round.
    pub(super) fn drawn_cursors(&self) -> impl Iterator<Item = usize> {
        let rows = self.rows.iter().enumerate();
        rows.flat_map(|(number, row)| {
            let inverse = row.line.runs.iter().filter(|run| run.style.inverse);
            inverse
                .filter(|run| run.to == run.from + 1)
                .map(move |_| number)
        })
    }

    /// The nearest row above `row` for which `wanted` holds.
    pub(super) fn above(&self, row: usize, wanted: impl Fn(usize) -> bool) -> Option<usize> {
        (0..row.min(self.len())).rev().find(|row| wanted(*row))
    }
}

impl<'a> PageRow<'a> {
    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    /// Whether the row is inside a full-width box.
    pub(super) fn is_boxed(&self) -> bool {
        self.boxed
    }

    fn new(line: &'a Line, cols: usize) -> PageRow<'a> {
        let text = line.text.as_str();
        let inner = text
            .strip_prefix('│')
            .and_then(|text| text.strip_suffix('│'));
        let inner = inner.filter(|_| text.width() + 2 >= cols);
        PageRow {
            text: inner.map_or(text, str::trim_end),
            boxed: inner.is_some(),
            line,
        }
    }

    pub(super) fn indent(&self) -> usize {
        indent(self.text)
    }

    /// Whether the text from `indent` on is set apart from plain text by colour or faintness.
    pub(super) fn is_muted(&self) -> bool {
        let style = self.line.style_at(self.indent() + usize::from(self.boxed));
        style.coloured || style.dim
    }

    /// Whether the cell in column `col` has a colour.
    pub(super) fn is_coloured_at(&self, col: usize) -> bool {
        self.line.style_at(col).coloured
    }

    /// Whether all text from column `from` on is coloured or faint, but for a cell with the cursor.
    pub(super) fn is_muted_from(&self, from: usize) -> bool {
        let muted = |style: Style| style.coloured || style.dim || style.inverse;
        self.styles_from(from).count() > 1 && self.styles_from(from).all(muted)
    }

    /// Whether all text from column `from` on is faint, but for a cell with the cursor.
    pub(super) fn is_faint_from(&self, from: usize) -> bool {
        let faint = |style: Style| style.dim || style.inverse;
        self.styles_from(from).any(|style| style.dim) && self.styles_from(from).all(faint)
    }

    /// The text without what Claude Code proposes behind the cursor: after a drawn cursor on a blank, all that
    /// follows is set apart, as the arguments that a command takes are (`/model [model]`).
    pub(super) fn typed(&self) -> &'a str {
        let drawn = |(col, c): (usize, char)| c == ' ' && self.line.style_at(col).inverse;
        let mut places = columns(self.text).zip(self.text.char_indices());
        let cursor = places.find(|(place, _)| drawn(*place));
        match cursor {
            Some(((col, _), (at, _))) if !self.boxed && self.is_muted_from(col + 1) => {
                &self.text[..at]
            }
            _ => self.text,
        }
    }

    /// The styles of the characters from column `from` on; blanks between words may have any.
    fn styles_from(&self, from: usize) -> impl Iterator<Item = Style> {
        let columns = columns(&self.line.text);
        let text = columns.filter(move |(col, c)| *col >= from && !c.is_whitespace());
        text.map(|(col, _)| self.line.style_at(col))
    }
}

/// The characters with the columns they stand in. Signs that become one never do so across a blank, so
/// that only the word has to be measured.
fn columns(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut word, mut word_col) = (0, 0);
    text.char_indices().map(move |(at, c)| {
        let col = word_col + text[word..at].width();
        if c == ' ' {
            (word, word_col) = (at, col);
        }
        (col, c)
    })
}

fn is_rule(text: &str, cols: usize) -> bool {
    // A name may be set into it, near its end: `──── my session ─`.
    text.starts_with("──") && text.ends_with('─') && text.width() + 2 >= cols
}

pub(super) fn indent(text: &str) -> usize {
    text.chars()
        .take_while(|c| matches!(c, ' ' | '\u{a0}'))
        .count()
}

/// What stood between two rows that the program drew one below the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joint {
    /// The text has a line break there.
    Line,
    /// The program wrapped between two words.
    Blank,
    /// The next row shows what was between the words.
    Shown,
    /// The program wrapped inside a word that is longer than a row, or between two words of which the first just fills
    /// its row: the rows by themselves don't tell.
    Doubtful,
}

impl Joint {
    /// What is put between the rows; inside a long word where that is doubtful.
    pub(super) fn text(self) -> &'static str {
        match self {
            Joint::Line => "\n",
            Joint::Blank => " ",
            Joint::Shown | Joint::Doubtful => "",
        }
    }
}

/// The joints of rows that the program wrapped at words, in `width` columns.
///
/// A break was made by wrapping where the next row's first word would not have fitted any more. After a
/// row that is just full the blank between the words still counts, unseen, in the next one.
pub(super) fn joints(rows: &[&str], width: usize) -> Vec<Joint> {
    let mut unseen = 0;
    // The columns of the word with which the text so far ends: it may go over several rows.
    let mut before = last_word(rows.first().copied().unwrap_or_default());
    let pairs = rows.iter().zip(rows.iter().skip(1));
    pairs
        .map(|(last, row)| {
            let filled = last.width() + unseen;
            let joint = joint(filled, before, row, width);
            unseen = usize::from(joint == Joint::Blank && filled >= width);
            let is_one_word = !row.contains(' ');
            let goes_on = is_one_word && joint == Joint::Doubtful;
            before = last_word(row) + if goes_on { before } else { 0 };
            joint
        })
        .collect()
}

/// Whether the first word of a row would have fitted behind the row before it.
pub(super) fn has_room(last: &str, row: &str, width: usize) -> bool {
    let word = row.trim_start().split(' ').next().unwrap_or_default();
    word.is_empty() || last.width() + indent(row).max(1) + word.width() <= width
}

/// The joint between a row of which so many columns are `filled`, of which the last word has `before`, and the next row.
fn joint(filled: usize, before: usize, row: &str, width: usize) -> Joint {
    let blanks = indent(row);
    let word = row.trim_start().split(' ').next().unwrap_or_default();
    // A wide character leaves a column free at the end of a row that is full.
    let first = word.chars().next().and_then(|c| c.width()).unwrap_or(0);
    let word = word.width();
    match filled {
        // Some versions show the blank.
        filled if blanks == 1 && filled + 1 + word > width => Joint::Shown,
        _ if blanks > 0 || word == 0 => Joint::Line,
        filled if filled + first > width && before + word > width => Joint::Doubtful,
        filled if filled + 1 + word > width => Joint::Blank,
        _ => Joint::Line,
    }
}

/// The columns of the last word of a row.
fn last_word(row: &str) -> usize {
    row.rsplit([' ', '\n']).next().unwrap_or_default().width()
}

/// Joins rows that the program wrapped at words, and keeps the line breaks that were in the text.
pub(super) fn join_wrapped<'a>(rows: impl IntoIterator<Item = &'a str>, width: usize) -> String {
    let rows: Vec<&str> = rows.into_iter().collect();
    join(&rows, &joints(&rows, width))
}

pub(super) fn join(rows: &[&str], joints: &[Joint]) -> String {
    let mut joined = rows.first().copied().unwrap_or_default().to_owned();
    for (row, joint) in rows.iter().skip(1).zip(joints) {
        joined.push_str(joint.text());
        joined.push_str(row);
    }
    joined
}

/// The same for text that has no line breaks of its own, such as a label.
pub(super) fn join_label<'a>(rows: impl IntoIterator<Item = &'a str>) -> String {
    rows.into_iter()
        .map(str::trim)
        .filter(|row| !row.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_signs_stand_in_one_place() {
        let at = |text: &str, c: char| columns(text).find(|(_, other)| *other == c);
        assert_eq!(at("a 漢 b", 'b'), Some((5, 'b')));
        assert_eq!(at("a 👩\u{200d}👧| ❤\u{fe0f} b", '|'), Some((4, '|')));
        assert_eq!(at("a 👩\u{200d}👧| ❤\u{fe0f} b", 'b'), Some((9, 'b')));
    }

    #[test]
    fn rows_are_joined_where_the_next_word_had_no_room() {
        assert_eq!(
            join_wrapped(["one two", "three", "four"], 10),
            "one two three\nfour"
        );
        assert_eq!(join_wrapped(["a", "", "  b"], 10), "a\n\n  b");
        assert_eq!(join_wrapped(["12345", "6789"], 5), "123456789");
        assert_eq!(join_wrapped(["12 45", "12", "45"], 5), "12 45 12 45");
        assert_eq!(join_wrapped(["12 45", " 12", " 4"], 5), "12 45 12\n 4");
        assert_eq!(join_wrapped(["ab 漢", "漢漢漢", "漢"], 6), "ab 漢漢漢漢漢");
    }

    #[test]
    fn a_row_that_is_full_before_a_long_word_does_not_tell() {
        use Joint::{Blank, Doubtful, Line, Shown};
        assert_eq!(joints(&["12345", "6789"], 5), [Doubtful]);
        assert_eq!(joints(&["12345", "67890", "1"], 5), [Doubtful, Doubtful]);
        assert_eq!(joints(&["ab 漢", "漢漢漢", "漢"], 6), [Doubtful, Doubtful]);
        assert_eq!(joints(&["12 45", "12"], 5), [Blank]);
        assert_eq!(joints(&["12 45", " 12"], 5), [Shown]);
        assert_eq!(joints(&["12", "34"], 5), [Line]);
    }

    /// Whatever is wrapped as Claude Code does it, at words and inside those that are longer than a row, is joined to what
    /// it was, or it is told that this is not certain.
    #[test]
    fn what_was_wrapped_is_joined_to_what_it_was_or_doubtful() {
        let words = [
            "a",
            "bcd",
            "漢字",
            "efghijklm",
            "漢字漢字漢字漢",
            "xyzxyzxyzxyzxyzxyz",
            "q漢r漢",
        ];
        for width in 5..24 {
            for first in words {
                for second in words {
                    for third in words {
                        let text = format!("{first} {second} {third}");
                        let rows = wrapped(&text, width);
                        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
                        let joints = joints(&rows, width);
                        let certain = !joints.contains(&Joint::Doubtful);
                        let same = join(&rows, &joints) == text;
                        assert!(same || !certain, "{text:?} in {width}: {rows:?} {joints:?}");
                    }
                }
            }
        }
    }

    /// Where a row has room for the word that follows, the text has a line break.
    #[test]
    fn a_row_with_room_ends_a_line() {
        let words = ["a", "bcd", "漢字", "efghijklm", "xyzxyzxyzxyzxyzxyz"];
        let between = [" ", "\n", "\n ", "\n  "];
        for width in 5..24 {
            for first in words {
                for second in words {
                    for third in words {
                        for (one, two) in
                            between.iter().flat_map(|one| between.map(|two| (one, two)))
                        {
                            let text = format!("{first}{one}{second}{two}{third}");
                            let lines = text.lines().map(|line| wrapped(line, width));
                            let lines: Vec<Vec<String>> = lines.collect();
                            let ends = |line: &Vec<String>| {
                                (1..=line.len())
                                    .map(|row| row == line.len())
                                    .collect::<Vec<_>>()
                            };
                            let is_line: Vec<bool> = lines.iter().flat_map(ends).collect();
                            let rows = lines.concat();
                            for (pair, is_line) in rows.windows(2).zip(is_line) {
                                let room = has_room(&pair[0], &pair[1], width);
                                // A row with nothing but an indent is blank.
                                let tells = !pair[0].trim().is_empty();
                                assert!(
                                    is_line || !room || !tells,
                                    "{text:?} in {width}: {rows:?}"
                                );
                            }
                        }
                    }
                }
            }
        }
    }

    /// Wraps as the library does that Claude Code uses: a word that is longer than a row begins where it saves a row.
    fn wrapped(text: &str, width: usize) -> Vec<String> {
        let start = text.len() - text.trim_start().len();
        let mut rows = vec![text[..start].to_owned()];
        let text = text.trim_start();
        for (index, word) in text.split(' ').enumerate() {
            let mut filled = rows.last().map_or(0, |row| row.width());
            if index > 0 {
                if filled >= width {
                    rows.push(String::new());
                    filled = 0;
                }
                if filled > 0 {
                    rows.last_mut().unwrap().push(' ');
                    filled += 1;
                }
            }
            if word.width() > width {
                let left = width - filled.min(width);
                let here = 1 + (word.width().saturating_sub(left + 1)) / width;
                let next = (word.width() - 1) / width;
                if next < here {
                    rows.push(String::new());
                }
                for c in word.chars() {
                    if rows.last().unwrap().width() + c.width().unwrap_or(0) > width {
                        rows.push(String::new());
                    }
                    rows.last_mut().unwrap().push(c);
                }
                continue;
            }
            if filled + word.width() > width && filled > 0 {
                rows.push(String::new());
            }
            rows.last_mut().unwrap().push_str(word);
        }
        rows.iter().map(|row| row.trim_end().to_owned()).collect()
    }
}
