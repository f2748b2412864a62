//! The rows of the grid as text with styles, read again only where the program has drawn.

use super::replies::TerminalReplies;
use super::{Line, Run, Style};
use alacritty_terminal::Term;
use alacritty_terminal::grid::{Dimensions, Row};
use alacritty_terminal::index::{Column, Line as GridLine};
use alacritty_terminal::term::TermDamage;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color, NamedColor};
use std::sync::Arc;

/// The visible rows as they were read last. A frame of Claude Code changes two or three of them; to read all of them cost
/// more than everything else that is done with a frame.
#[derive(Debug, Default)]
pub(super) struct ReadRows {
    lines: Vec<Arc<Line>>,
    /// Something was drawn that the emulator does not count as its own.
    is_stale: bool,
}

impl ReadRows {
    /// The grid was changed, and not by the emulator itself.
    pub fn make_stale(&mut self) {
        self.is_stale = true;
    }

    /// The rows now.
    pub fn read(&mut self, term: &mut Term<TerminalReplies>) -> Vec<Arc<Line>> {
        let rows = term.screen_lines();
        let damaged: Option<Vec<usize>> = match term.damage() {
            TermDamage::Full => None,
            TermDamage::Partial(damaged) => Some(damaged.map(|damaged| damaged.line).collect()),
        };
        term.reset_damage();
        match damaged {
            Some(damaged) if !self.is_stale && self.lines.len() == rows => {
                for row in damaged.into_iter().filter(|row| *row < rows) {
                    self.lines[row] = visible_line(term, row);
                }
            }
            _ => self.lines = visible_lines(term),
        }
        self.is_stale = false;
        debug_assert_eq!(self.lines, visible_lines(term));
        self.lines.clone()
    }
}

impl ReadRows {
    /// Reads all rows from the grid. Whether they differ from those that were read last, which only a fault of the emulator
    /// can bring about.
    pub fn check<T>(&mut self, term: &Term<T>) -> bool {
        let lines = visible_lines(term);
        let differ = !self.lines.is_empty() && self.lines != lines;
        self.lines = lines;
        differ
    }

    /// As if the emulator had drawn a row and not said so.
    #[cfg(test)]
    pub fn spoil(&mut self) {
        self.lines
            .iter_mut()
            .for_each(|line| *line = Arc::default());
    }
}

/// All visible rows from top to bottom.
pub(super) fn visible_lines<T>(term: &Term<T>) -> Vec<Arc<Line>> {
    let rows = 0..term.screen_lines();
    rows.map(|row| visible_line(term, row)).collect()
}

fn visible_line<T>(term: &Term<T>, row: usize) -> Arc<Line> {
    let mut line = line(&term.grid()[GridLine(row as i32)]);
    // What the last row was wrapped into has gone from the screen.
    line.wrapped &= row + 1 < term.screen_lines();
    Arc::new(line)
}

/// The text of a row with its styles.
pub(super) fn line(row: &Row<Cell>) -> Line {
    let cells = &row[..];
    let used = cells.iter().rposition(|cell| !is_space(cell));
    let used = used.map_or(0, |last| last + 1);
    let mut text = String::with_capacity(used);
    let mut runs = Vec::new();
    for (col, cell) in cells[..used].iter().enumerate() {
        push_text(&mut text, part(row, col), cell);
        push_style(&mut runs, col, style_of(cell));
    }
    text.truncate(text.trim_end_matches(' ').len());
    Line {
        text,
        runs,
        wrapped: is_wrapped(row),
    }
}

/// All the text of a row, spaces included, and whether it was wrapped into the next one.
pub(super) fn whole_text(row: &Row<Cell>) -> (String, bool) {
    let mut text = String::new();
    for (col, cell) in row[..].iter().enumerate() {
        // A wide character had no room there, and stands in the next row.
        if !cell.flags.contains(Flags::LEADING_WIDE_CHAR_SPACER) {
            push_text(&mut text, part(row, col), cell);
        }
    }
    (text, is_wrapped(row))
}

fn is_wrapped(row: &Row<Cell>) -> bool {
    let last = row[..].last();
    last.is_some_and(|cell| cell.flags.contains(Flags::WRAPLINE))
}

/// Whether a cell adds nothing to the end of a row.
fn is_space(cell: &Cell) -> bool {
    cell.c == ' '
        && cell.extra.is_none()
        && !cell.flags.intersects(WIDE)
        && style_of(cell) == Style::default()
}

/// What a cell is of the character that it holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ScreenPart {
    Whole,
    /// The room that a wide character takes beside its own cell.
    Rest,
    /// Half of a wide character whose other half is gone: nothing is seen there.
    Torn,
}

/// The flags of cells that are part of a wide character, or were.
const WIDE: Flags = Flags::WIDE_CHAR
    .union(Flags::WIDE_CHAR_SPACER)
    .union(Flags::LEADING_WIDE_CHAR_SPACER);

pub(super) fn part(row: &Row<Cell>, col: usize) -> ScreenPart {
    if !row[Column(col)].flags.intersects(WIDE) {
        return ScreenPart::Whole;
    }
    let has = |col: usize, flag| col < row.len() && row[Column(col)].flags.contains(flag);
    // The end of a row that was too short for a wide character, which may have been overwritten since.
    if has(col, Flags::LEADING_WIDE_CHAR_SPACER) {
        return ScreenPart::Torn;
    }
    let begins = has(col, Flags::WIDE_CHAR);
    let ends = has(col, Flags::WIDE_CHAR_SPACER);
    match (begins, ends) {
        (true, _) if !has(col + 1, Flags::WIDE_CHAR_SPACER) => ScreenPart::Torn,
        (_, true) if col == 0 || !has(col - 1, Flags::WIDE_CHAR) => ScreenPart::Torn,
        (_, true) => ScreenPart::Rest,
        _ => ScreenPart::Whole,
    }
}

fn push_text(text: &mut String, part: ScreenPart, cell: &Cell) {
    match part {
        ScreenPart::Rest => {}
        ScreenPart::Torn => text.push(' '),
        ScreenPart::Whole => {
            text.push(if cell.c == '\t' { ' ' } else { cell.c });
            text.extend(cell.zerowidth().unwrap_or_default());
        }
    }
}

fn push_style(runs: &mut Vec<Run>, col: usize, style: Style) {
    match runs.last_mut() {
        Some(run) if run.to == col && run.style == style => run.to += 1,
        _ if style == Style::default() => {}
        _ => runs.push(Run {
            from: col,
            to: col + 1,
            style,
        }),
    }
}

fn style_of(cell: &Cell) -> Style {
    Style {
        bold: cell.flags.contains(Flags::BOLD),
        dim: cell.flags.contains(Flags::DIM),
        italic: cell.flags.contains(Flags::ITALIC),
        inverse: cell.flags.contains(Flags::INVERSE),
        coloured: cell.fg != Color::Named(NamedColor::Foreground)
            || cell.bg != Color::Named(NamedColor::Background),
    }
}
