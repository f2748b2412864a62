//! A table without lines: one column gives way in a narrow terminal, and the widest other one where that is not
//! enough; no row wraps.

use comfy_table::{
    Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, Width,
};
use std::os::fd::BorrowedFd;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Blanks between two columns.
const GAP: u16 = 2;
/// Below this a column says nothing any more.
const LEAST: u16 = 10;

/// How the columns stand.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    pub header: &'a [&'a str],
    /// Those whose figures stand at the right.
    pub right: &'a [usize],
    /// The one that is cut where the terminal is narrow.
    pub gives_way: usize,
}

impl Columns<'_> {
    /// With colours always: whoever prints it takes them out where they are not wanted.
    pub fn render(&self, rows: impl IntoIterator<Item = Row>, width: Option<u16>) -> String {
        let rows: Vec<Row> = rows.into_iter().collect();
        let widths = self.widths(&rows, width);
        let mut table = Table::new();
        let header = self.header.iter();
        let header = header.map(|name| Cell::new(name).add_attribute(Attribute::Bold));
        let one_line = |mut row: Row| {
            row.max_height(1);
            row
        };
        table
            .load_style(comfy_table::presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_truncation_indicator("…")
            .force_no_tty()
            .enforce_styling()
            .set_header(one_line(Row::from(header)))
            .add_rows(rows.into_iter().map(one_line));
        if let Some(width) = width {
            table.set_width(width);
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, self.gap(index)));
            if index != self.gives_way {
                column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(widths[index])));
            }
            if self.right.contains(&index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.trim_fmt()
    }

    fn gap(&self, index: usize) -> u16 {
        if index + 1 < self.header.len() {
            GAP
        } else {
            0
        }
    }

    /// As wide as what is in them, with the gap; the widest gives what the terminal and the one that gives way lack.
    fn widths(&self, rows: &[Row], width: Option<u16>) -> Vec<u16> {
        let cells = |index: usize| {
            rows.iter()
                .filter_map(move |row| row.cell_iter().nth(index))
        };
        let content = |index: usize| {
            let widest = cells(index).map(|cell| cell.content().width()).max();
            let widest = widest.unwrap_or(0).max(self.header[index].width());
            u16::try_from(widest).unwrap_or(u16::MAX / 16)
        };
        let mut widths: Vec<u16> = (0..self.header.len())
            .map(|index| content(index) + self.gap(index))
            .collect();
        let least = widths[self.gives_way].min(LEAST + GAP);
        let total: u16 = widths.iter().sum::<u16>() - widths[self.gives_way] + least;
        let lacking = total.saturating_sub(width.unwrap_or(u16::MAX));
        let others = widths.iter_mut().enumerate();
        let others = others.filter(|(index, _)| *index != self.gives_way);
        if let Some((_, widest)) = others.max_by_key(|(_, width)| **width) {
            *widest = widest.saturating_sub(lacking).max(LEAST + GAP).min(*widest);
        }
        widths
    }
}

/// Breaks a line by its width, behind a space if there is one in the second half of the row. Every character is shown.
pub fn wrapped(line: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let mut row = String::new();
    for c in line.chars() {
        if row.width() + c.width().unwrap_or(0) > width {
            let space = row.rfind(' ').map(|at| at + 1);
            let at = space.filter(|at| row[..*at].width() * 2 >= width);
            let rest = row.split_off(at.unwrap_or(row.len()));
            rows.push(std::mem::replace(&mut row, rest));
        }
        row.push(c);
    }
    rows.push(row);
    rows
}

/// How wide the terminal is, where standard output is one.
pub fn terminal_width() -> Option<u16> {
    width_of(rustix::stdio::stdout())
}

/// The same for standard error.
pub fn stderr_width() -> Option<u16> {
    width_of(rustix::stdio::stderr())
}

fn width_of(output: BorrowedFd<'_>) -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(output).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}

/// A locale that does not know UTF-8 shows no other characters.
pub fn is_ascii() -> bool {
    let variables = ["LC_ALL", "LC_CTYPE", "LANG"];
    let mut values = variables.iter().filter_map(|name| std::env::var(name).ok());
    let locale = values.find(|value| !value.is_empty());
    let locale = locale.unwrap_or_default().to_lowercase();
    !locale.contains("utf-8") && !locale.contains("utf8")
}
