//! Escape sequences that draw the visible screen again on a fresh terminal of the same size.

use super::cluster::may_join;
use super::emulator::Terminal;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line as GridLine};
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{Color, NamedColor};
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

impl Terminal {
    /// What a new recording or a person who joins has to be sent first: the screen with its
    /// attributes, the cursor, the modes and the title.
    pub fn snapshot(&self) -> Vec<u8> {
        let mut out = String::from("\x1b[!p\x1b[?7h");
        if self.term.mode().contains(TermMode::ALT_SCREEN) {
            out.push_str("\x1b[?1049h");
        }
        out.push_str("\x1b[m\x1b[H\x1b[2J");
        self.rows(&mut out);
        self.modes(&mut out);
        out.into_bytes()
    }

    /// The visible rows with their colours and nothing else: each begins and ends with plain attributes.
    pub fn styled_lines(&self) -> Vec<String> {
        let line = |row: usize| {
            let mut out = String::new();
            let mut pen = Pen::default();
            self.row(GridLine(row as i32), &mut pen, &mut out);
            if pen != Pen::default() {
                out.push_str("\x1b[m");
            }
            out
        };
        (0..self.term.screen_lines()).map(line).collect()
    }

    fn rows(&self, out: &mut String) {
        let mut pen = Pen::default();
        let mut runs_on = false;
        for row in 0..self.term.screen_lines() {
            if !runs_on {
                put(out, format_args!("\x1b[{};1H", row + 1));
            }
            runs_on = self.row(GridLine(row as i32), &mut pen, out);
        }
    }

    /// Draws one row; returns whether the terminal wraps it into the next one, which is then drawn
    /// with no jump in between so that the wrapping comes about again.
    fn row(&self, row: GridLine, pen: &mut Pen, out: &mut String) -> bool {
        let cells = &self.term.grid()[row];
        let cols = self.term.columns();
        let wraps = cells[Column(cols - 1)].flags.contains(Flags::WRAPLINE);
        let blank = |col: &usize| cells[Column(*col)] == Cell::default();
        let used = (0..cols)
            .rev()
            .find(|col| wraps || !blank(col))
            .map_or(0, |col| col + 1);
        let mut before = ' ';
        for col in 0..used {
            let cell = &cells[Column(col)];
            if !cell
                .flags
                .intersects(Flags::WIDE_CHAR_SPACER | Flags::LEADING_WIDE_CHAR_SPACER)
            {
                pen.change_to(cell, out);
                if may_join(before, cell.c) {
                    out.push_str(APART);
                }
                out.push(if cell.c == '\t' { ' ' } else { cell.c });
                out.extend(cell.zerowidth().unwrap_or_default());
                before = cell
                    .zerowidth()
                    .and_then(<[char]>::last)
                    .copied()
                    .unwrap_or(cell.c);
            }
        }
        wraps
    }

    fn modes(&self, out: &mut String) {
        let mode = self.term.mode();
        let cursor = self.term.grid().cursor.point;
        for (_, number) in MODES.iter().filter(|(flag, _)| mode.contains(*flag)) {
            put(out, format_args!("\x1b[?{number}h"));
        }
        let shown = if mode.contains(TermMode::SHOW_CURSOR) {
            'h'
        } else {
            'l'
        };
        put(
            out,
            format_args!(
                "\x1b[m\x1b[{};{}H\x1b[?25{shown}",
                cursor.line.0 + 1,
                cursor.column.0 + 1
            ),
        );
        put(out, format_args!("\x1b]0;{}\x07", self.desk.title()));
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

fn put(out: &mut String, text: std::fmt::Arguments) {
    // Writing to a String can't fail.
    let _ = out.write_fmt(text);
}
