//! A table without lines: one column gives way in a narrow terminal, no row wraps.

use comfy_table::{
    Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Row, Table,
};

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
        let mut table = Table::new();
        let header = self.header.iter();
        table
            .load_style(comfy_table::presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_truncation_indicator("…")
            .force_no_tty()
            .enforce_styling()
            .set_header(header.map(|name| Cell::new(name).add_attribute(Attribute::Bold)))
            .add_rows(rows.into_iter().map(|mut row| {
                row.max_height(1);
                row
            }));
        if let Some(width) = width {
            table.set_width(width);
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, if index + 1 < self.header.len() { 2 } else { 0 }));
            if index != self.gives_way {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
            if self.right.contains(&index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.trim_fmt()
    }
}

/// How wide the terminal is, where standard output is one.
pub fn terminal_width() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    (size.ws_col > 0).then_some(size.ws_col)
}
