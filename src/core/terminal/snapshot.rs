//! Escape sequences that draw the visible screen again on a fresh terminal of the same size.

use super::cluster::{column_before_cursor, may_join};
use super::emulator::Terminal;
use super::rows::{ScreenPart, part};
use alacritty_terminal::grid::{Cursor, Dimensions};
use alacritty_terminal::index::{Column, Line as GridLine};
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{
    CharsetIndex, Color, CursorShape, CursorStyle, NamedColor, StandardCharset,
};
use std::fmt::Write;

/// The modes that a program has set for its own input, with their numbers.
const MODES: [(TermMode, u16); 8] = [
    (TermMode::BRACKETED_PASTE, 2004),
    (TermMode::FOCUS_IN_OUT, 1004),
    (TermMode::APP_CURSOR, 1),
    (TermMode::MOUSE_REPORT_CLICK, 1000),
    (TermMode::MOUSE_DRAG, 1002),
    (TermMode::MOUSE_MOTION, 1003),
    (TermMode::SGR_MOUSE, 1006),
    (TermMode::UTF8_MOUSE, 1005),
];

/// Choosing the plain character set changes nothing, and keeps two cells from becoming one emoji.
const APART: &str = "\x1b(B";

/// The plain character set everywhere.
const PLAIN_SETS: &str = "\x0f\x1b(B\x1b)B\x1b*B\x1b+B";

impl Terminal {
    /// What a new recording or a person who joins has to be sent first: the screen with its
    /// attributes, the cursor, the modes and the title.
    pub fn snapshot(&self) -> Vec<u8> {
        let alt = self.term().mode().contains(TermMode::ALT_SCREEN);
        let mut out = String::from(if alt { "\x1b[?1049h" } else { "\x1b[?1049l" });
        // Each by itself as well, since not every terminal knows the soft reset.
        out.push_str("\x1b[!p\x1b[r\x1b[?6l\x1b[4l\x1b[20l\x1b[?7h\x1b[m");
        out.push_str(PLAIN_SETS);
        out.push_str("\x1b[H\x1b[2J");
        self.rows(&mut out);
        self.modes(&mut out);
        self.state(&mut out);
        out.into_bytes()
    }

    /// The visible rows with their colours and nothing else: each begins and ends with plain attributes.
    pub fn styled_lines(&self) -> Vec<String> {
        let line = |row| self.styled_row(row, self.term().columns());
        (0..self.term().screen_lines()).map(line).collect()
    }

    /// As many columns of a row as `limit`.
    pub(super) fn styled_row(&self, row: usize, limit: usize) -> String {
        let mut out = String::new();
        let mut pen = Pen::default();
        self.row(GridLine(row as i32), limit, &mut ' ', &mut pen, &mut out);
        if pen != Pen::default() {
            out.push_str("\x1b[m");
        }
        out
    }

    fn rows(&self, out: &mut String) {
        let mut pen = Pen::default();
        let mut runs_on = false;
        let mut before = ' ';
        for row in 0..self.term().screen_lines() {
            if !runs_on {
                put(out, format_args!("\x1b[{};1H", row + 1));
                before = ' ';
            }
            if runs_on && self.is_blank(row) {
                // Something has to come, for the row before to be wrapped into this one.
                pen.change_to(&Cell::default(), out);
                out.push(' ');
            }
            runs_on = self.row(GridLine(row as i32), usize::MAX, &mut before, &mut pen, out);
        }
    }

    /// Whether nothing is in this row of the screen, not even a colour.
    pub(super) fn is_blank(&self, row: usize) -> bool {
        let cells = &self.term().grid()[GridLine(row as i32)];
        (0..self.term().columns()).all(|col| cells[Column(col)] == Cell::default())
    }

    /// Draws one row; returns whether the terminal wraps it into the next one, which is then drawn
    /// with no jump in between so that the wrapping comes about again.
    /// `before` is the character that was drawn last.
    fn row(
        &self,
        row: GridLine,
        limit: usize,
        before: &mut char,
        pen: &mut Pen,
        out: &mut String,
    ) -> bool {
        let cells = &self.term().grid()[row];
        let cols = self.term().columns();
        let wraps = cells[Column(cols - 1)].flags.contains(Flags::WRAPLINE);
        let blank = |col: &usize| cells[Column(*col)] == Cell::default();
        let used = (0..cols)
            .rev()
            .find(|col| wraps || !blank(col))
            .map_or(0, |col| col + 1);
        for col in 0..used.min(limit) {
            let cell = &cells[Column(col)];
            let part = part(cells, col);
            let is_cut = col + 1 == limit && cell.flags.contains(Flags::WIDE_CHAR);
            if part == ScreenPart::Rest || is_cut {
                continue;
            }
            let (shown, marks) = match part {
                ScreenPart::Torn => (' ', &[][..]),
                _ => (cell.c, cell.zerowidth().unwrap_or_default()),
            };
            pen.change_to(cell, out);
            if may_join(*before, shown) {
                out.push_str(APART);
            }
            out.push(if shown == '\t' { ' ' } else { shown });
            out.extend(marks);
            *before = marks.last().copied().unwrap_or(shown);
        }
        wraps
    }

    /// Where the program left off: its margins, its place, its pen.
    fn state(&self, out: &mut String) {
        let cursor = &self.term().grid().cursor;
        let mode = self.term().mode();
        self.saved_cursor(out);
        let mut top = 0;
        if let Some((first, last)) = self.unseen().margins() {
            put(out, format_args!("\x1b[{first};{last}r"));
            if mode.contains(TermMode::ORIGIN) {
                top = first - 1;
            }
        }
        if mode.contains(TermMode::ORIGIN) {
            out.push_str("\x1b[?6h");
        }
        let row = usize::try_from(cursor.point.line.0).unwrap_or(0);
        go_to(out, row.saturating_sub(top), cursor.point.column.0);
        self.draw_last_again(cursor, out);
        for (flag, set) in [
            (TermMode::INSERT, "\x1b[4h"),
            (TermMode::LINE_FEED_NEW_LINE, "\x1b[20h"),
        ] {
            if mode.contains(flag) {
                out.push_str(set);
            }
        }
        if !mode.contains(TermMode::LINE_WRAP) {
            out.push_str("\x1b[?7l");
        }
        put_pen(out, cursor);
        if self.unseen().shifted {
            out.push('\x0e');
        }
        self.reopen_cluster(top, out);
    }

    /// Draws the last character again, if a mark or another part of an emoji may still be added to it. It must be the last
    /// thing in the snapshot: a terminal adds nothing to a character behind which a control sequence came.
    fn reopen_cluster(&self, top: usize, out: &mut String) {
        let grid = self.term().grid();
        let point = grid.cursor.point;
        let column = column_before_cursor(grid);
        let base = self.open_cluster().chars().next();
        // In insert mode the character would move what stands behind it.
        if base != Some(grid[point.line][Column(column)].c)
            || self.term().mode().contains(TermMode::INSERT)
        {
            return;
        }
        let row = usize::try_from(point.line.0).unwrap_or(0);
        go_to(out, row.saturating_sub(top), column);
        out.push_str(self.open_cluster());
    }

    fn saved_cursor(&self, out: &mut String) {
        let saved = &self.term().grid().saved_cursor;
        if *saved != Default::default() {
            let row = usize::try_from(saved.point.line.0).unwrap_or(0);
            go_to(out, row, saved.point.column.0);
            self.draw_last_again(saved, out);
            put_pen(out, saved);
            out.push_str("\x1b7\x1b[m");
            out.push_str(PLAIN_SETS);
        }
    }

    /// A character in the last column leaves the cursor on it, and only the next one wraps.
    fn draw_last_again(&self, cursor: &Cursor<Cell>, out: &mut String) {
        let point = cursor.point;
        if !cursor.input_needs_wrap || point.column.0 + 1 != self.term().columns() {
            return;
        }
        let cells = &self.term().grid()[point.line];
        if cells[point.column].flags.contains(Flags::WRAPLINE) {
            // The next one has come already, and drawing this again would part them.
            return;
        }
        let spacer = cells[point.column].flags.contains(Flags::WIDE_CHAR_SPACER);
        let column = Column(point.column.0 - usize::from(spacer && point.column.0 > 0));
        if spacer {
            out.push('\x08');
        }
        let cell = &cells[column];
        out.push_str("\x1b[m");
        Pen::default().change_to(cell, out);
        out.push(if cell.c == '\t' { ' ' } else { cell.c });
        out.extend(cell.zerowidth().unwrap_or_default());
    }

    fn modes(&self, out: &mut String) {
        out.push_str(&self.input_modes());
        let shown = if self.term().mode().contains(TermMode::SHOW_CURSOR) {
            'h'
        } else {
            'l'
        };
        put(out, format_args!("\x1b[?25{shown}"));
        let style = self.term().cursor_style();
        let number = match style.shape {
            _ if style == CursorStyle::default() => 0,
            CursorShape::Underline => 4,
            CursorShape::Beam => 6,
            _ => 2,
        };
        let number = number - u8::from(style.blinking && number > 0);
        put(out, format_args!("\x1b[{number} q"));
        put(out, format_args!("\x1b]0;{}\x07", self.title()));
    }

    /// What the program has asked the keyboard and the mouse for, and what it has not: those who get this may have
    /// been asked for something else before.
    pub(super) fn input_modes(&self) -> String {
        let mode = self.term().mode();
        let mut out = String::new();
        // First what is off: some terminals take the end of one way to report the mouse for the end of all.
        for (set, is_set) in [('l', false), ('h', true)] {
            for (_, number) in MODES
                .iter()
                .filter(|(flag, _)| mode.contains(*flag) == is_set)
            {
                put(&mut out, format_args!("\x1b[?{number}{set}"));
            }
        }
        let keypad = mode.contains(TermMode::APP_KEYPAD);
        out.push_str(if keypad { "\x1b=" } else { "\x1b>" });
        self.unseen().put_keyboard(&mut out);
        out
    }
}

fn go_to(out: &mut String, row: usize, col: usize) {
    put(out, format_args!("\x1b[{};{}H", row + 1, col + 1));
}

/// How the next character will look.
fn put_pen(out: &mut String, cursor: &Cursor<Cell>) {
    out.push_str("\x1b[m");
    Pen::default().change_to(&cursor.template, out);
    for (set, name) in [
        (CharsetIndex::G0, '('),
        (CharsetIndex::G1, ')'),
        (CharsetIndex::G2, '*'),
        (CharsetIndex::G3, '+'),
    ] {
        if cursor.charsets[set] == StandardCharset::SpecialCharacterAndLineDrawing {
            put(out, format_args!("\x1b{name}0"));
        }
    }
}

/// The attributes that the next character would get.
#[derive(PartialEq, Clone)]
struct Pen {
    fg: Color,
    bg: Color,
    flags: Flags,
}

const ATTRIBUTES: [(Flags, u8); 7] = [
    (Flags::BOLD, 1),
    (Flags::DIM, 2),
    (Flags::ITALIC, 3),
    (Flags::UNDERLINE, 4),
    (Flags::INVERSE, 7),
    (Flags::HIDDEN, 8),
    (Flags::STRIKEOUT, 9),
];

impl Default for Pen {
    fn default() -> Pen {
        let cell = Cell::default();
        Pen {
            fg: cell.fg,
            bg: cell.bg,
            flags: Flags::empty(),
        }
    }
}

impl Pen {
    fn change_to(&mut self, cell: &Cell, out: &mut String) {
        let drawn = ATTRIBUTES
            .iter()
            .fold(Flags::empty(), |all, (flag, _)| all | *flag);
        let next = Pen {
            fg: cell.fg,
            bg: cell.bg,
            flags: cell.flags & drawn,
        };
        if next == *self {
            return;
        }
        *self = next;
        out.push_str("\x1b[0");
        for (_, code) in ATTRIBUTES
            .iter()
            .filter(|(flag, _)| self.flags.contains(*flag))
        {
            put(out, format_args!(";{code}"));
        }
        put_colour(out, self.fg, 30);
        put_colour(out, self.bg, 40);
        out.push('m');
    }
}

/// The colour as parameters of SGR; `base` is 30 for the text and 40 for the ground.
fn put_colour(out: &mut String, colour: Color, base: u16) {
    match colour {
        Color::Named(NamedColor::Foreground | NamedColor::Background) => {}
        Color::Named(named) if (named as u16) < 8 => {
            put(out, format_args!(";{}", base + named as u16))
        }
        Color::Named(named) if (named as u16) < 16 => {
            put(out, format_args!(";{}", base + 52 + named as u16))
        }
        Color::Named(_) => {}
        Color::Indexed(index) => put(out, format_args!(";{};5;{index}", base + 8)),
        Color::Spec(rgb) => put(
            out,
            format_args!(";{};2;{};{};{}", base + 8, rgb.r, rgb.g, rgb.b),
        ),
    }
}

pub(super) fn put(out: &mut String, text: std::fmt::Arguments) {
    // Writing to a String can't fail.
    let _ = out.write_fmt(text);
}
