//! The emulator with its scanner, its answers and its frames.

use super::cluster::attach;
use super::frames::Frames;
use super::outdated::Outdated;
use super::replies::TerminalReplies;
use super::scan::{ScanPiece, Scanner};
use super::unseen::Unseen;
use super::{At, Cursor, Frame, Line, Modes, Run, Screen, Style};
use alacritty_terminal::grid::{Dimensions, Row};
use alacritty_terminal::index::{Column, Line as GridLine};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::{Config, Osc52, Term, TermMode};
use alacritty_terminal::vte::ansi::{Color, NamedColor, Processor, Timeout};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Rows kept above the screen: about 3 MB for each slot at 120 columns. The conversation itself comes
/// from the transcript, not from cells.
const SCROLLBACK: usize = 1000;

/// Sizes that are drawn; smaller or larger ones (a broken recording, a hostile resize) are clamped.
const SIZES: std::ops::RangeInclusive<usize> = 2..=1000;

/// A terminal without a window: fed with what the program wrote, it holds the screen.
pub struct Terminal {
    pub(super) term: Term<TerminalReplies>,
    parser: Processor<NoClock>,
    scanner: Scanner,
    frames: Frames,
    outdated: Outdated,
    pub(super) desk: TerminalReplies,
    faults: u64,
}

impl Terminal {
    pub fn new(cols: usize, rows: usize) -> Terminal {
        let desk = TerminalReplies::default();
        let size = GridSize::clamped(cols, rows);
        let mut scanner = Scanner::default();
        scanner.unseen.resize(size.rows);
        Terminal {
            term: new_term(size, &desk),
            parser: Processor::new(),
            scanner,
            frames: Frames::default(),
            outdated: Outdated::default(),
            desk,
            faults: 0,
        }
    }

    /// The program wrote `bytes` at `at`. Returns the frames that are due, with their screens.
    pub fn feed(&mut self, at: At, bytes: &[u8]) -> Vec<Frame> {
        let mut frames = self.quiet(at);
        self.take(at, bytes, |frame| frames.push(frame()));
        frames
    }

    /// The same where nobody looks at the frames: no screen is made, which is most of the work.
    pub fn skim(&mut self, at: At, bytes: &[u8]) {
        self.end_silently(at);
        self.take(at, bytes, |_| {});
    }

    fn take(&mut self, at: At, bytes: &[u8], mut due: impl FnMut(&dyn Fn() -> Frame)) {
        let at = self.frames.output(at);
        self.desk.set_time(at);
        let cols = self.term.columns();
        for piece in self.scanner.scan(bytes, cols) {
            match piece {
                ScanPiece::Bytes(bytes) => self.draw(&bytes),
                ScanPiece::Part(part) => self.guarded(|terminal| attach(&mut terminal.term, &part)),
                ScanPiece::Wipe => {
                    self.guarded(|terminal| terminal.term.grid_mut().reset_region(..))
                }
                ScanPiece::FrameBegin => self.frames.begin(),
                ScanPiece::FrameEnd(erased) => {
                    self.has_drawn(at, erased);
                    if self.frames.end() {
                        due(&|| self.frame(at));
                    }
                }
                ScanPiece::AskVersion => self.desk.reply(concat!(
                    "\x1bP>|missiond(",
                    env!("CARGO_PKG_VERSION"),
                    ")\x1b\\"
                )),
            }
        }
    }

    /// Recorded time has come to `at`, with no output since the last.
    pub fn quiet(&mut self, at: At) -> Vec<Frame> {
        let due = self.end_silently(at);
        due.map(|due| self.frame(due)).into_iter().collect()
    }

    /// Ends a frame that has no mark at its end; returns when it was over.
    fn end_silently(&mut self, at: At) -> Option<At> {
        let due = self.frames.due_before(at)?;
        let erased = self.scanner.erased.take();
        self.has_drawn(due, erased);
        Some(due)
    }

    /// A frame is over at `at`, in which the program erased this many rows.
    fn has_drawn(&mut self, at: At, erased: usize) {
        let is_all = erased >= self.term.screen_lines();
        if self.outdated.is_outdated() && (is_all || self.is_empty()) {
            self.outdated.drawn(at);
        }
    }

    fn is_empty(&self) -> bool {
        (0..self.term.screen_lines()).all(|row| self.is_blank(row))
    }

    /// Whether another size adds empty rows below and changes nothing else: no row is cut or wrapped, and none comes back
    /// from above the screen.
    fn only_gets_rows_below(&self, size: GridSize) -> bool {
        let (cols, rows) = self.size();
        size.cols == cols && size.rows > rows && self.term.history_size() == 0
    }

    /// The terminal gets another size at `at`.
    pub fn resize(&mut self, at: At, cols: usize, rows: usize) -> Vec<Frame> {
        let frames = self.quiet(at);
        self.frames.output(at);
        let size = GridSize::clamped(cols, rows);
        if (size.cols, size.rows) != self.size() {
            let stands = self.is_empty() || self.only_gets_rows_below(size);
            self.outdated.resized(at, stands);
            self.scanner.erased.take();
        }
        self.guarded(|terminal| terminal.term.resize(size));
        self.desk.set_size(size.cols, size.rows);
        self.scanner.unseen.resize(size.rows);
        self.frames.drawn();
        frames
    }

    /// The recorded time of the last output or resize.
    pub fn last_change(&self) -> At {
        self.frames.last_change()
    }

    /// Whether something was drawn that no frame has shown yet.
    pub fn is_drawing(&self) -> bool {
        self.frames.is_open()
    }

    /// Whether the program has not drawn its whole screen since the size changed.
    pub fn is_outdated(&self) -> bool {
        self.outdated.is_outdated()
    }

    /// What is to be written back to the program, which has asked for it.
    pub fn take_replies(&mut self) -> Vec<u8> {
        self.desk.take_replies()
    }

    /// How often the emulator failed and was begun anew with an empty screen.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    pub fn screen(&self) -> Screen {
        let (cols, rows) = self.size();
        let line = |row| self.line(GridLine(row as i32));
        let mut lines: Vec<Line> = (0..rows).map(line).collect();
        if let Some(last) = lines.last_mut() {
            // What it was wrapped into has gone from the screen.
            last.wrapped = false;
        }
        Screen {
            cols,
            rows,
            lines,
            cursor: self.screen_cursor(),
            title: self.desk.title(),
            modes: self.modes_set(),
        }
    }

    pub fn modes_set(&self) -> Modes {
        let mode = self.term.mode();
        Modes {
            alt_screen: mode.contains(TermMode::ALT_SCREEN),
            bracketed_paste: mode.contains(TermMode::BRACKETED_PASTE),
            focus_reporting: mode.contains(TermMode::FOCUS_IN_OUT),
        }
    }

    pub(super) fn screen_cursor(&self) -> Cursor {
        let cursor = self.term.grid().cursor.point;
        Cursor {
            row: usize::try_from(cursor.line.0).unwrap_or(0),
            col: cursor.column.0,
            visible: self.term.mode().contains(TermMode::SHOW_CURSOR),
        }
    }

    pub(super) fn unseen(&self) -> &Unseen {
        &self.scanner.unseen
    }

    pub(super) fn open_cluster(&self) -> &str {
        self.scanner.open_cluster()
    }

    /// Columns and rows.
    pub fn size(&self) -> (usize, usize) {
        (self.term.columns(), self.term.screen_lines())
    }

    /// Whether the program draws on the alternate screen.
    pub fn is_alternate(&self) -> bool {
        self.term.mode().contains(TermMode::ALT_SCREEN)
    }

    /// The title set with OSC 0 or 2; empty when none was set or it was reset.
    pub fn title(&self) -> String {
        self.desk.title()
    }

    /// The last `n` rows down to the last one that holds text, from the scrollback too.
    pub fn lines(&self, n: usize) -> Vec<String> {
        let top = self.term.topmost_line().0;
        let mut lines = Vec::new();
        for row in (top..self.term.screen_lines() as i32).rev() {
            let text = self.line(GridLine(row)).text;
            if lines.len() == n {
                break;
            }
            if !(lines.is_empty() && text.is_empty()) {
                lines.push(text);
            }
        }
        lines.reverse();
        lines
    }

    /// The same with the rows of each line that was wrapped as one.
    pub fn whole_lines(&self, n: usize) -> Vec<String> {
        let top = self.term.topmost_line().0;
        let rows = (top..self.term.screen_lines() as i32).rev();
        let mut lines: Vec<String> = Vec::new();
        for row in rows.map(GridLine) {
            let (text, wrapped) = self.cells_of(row);
            match lines.len() {
                0 if text.trim_end().is_empty() => {}
                count if wrapped && count > 0 => lines[count - 1].insert_str(0, &text),
                count if count == n => break,
                _ => lines.push(text.trim_end().to_owned()),
            }
        }
        lines.reverse();
        lines
    }

    /// All the text of a row, blanks included, and whether it was wrapped into the next one.
    fn cells_of(&self, row: GridLine) -> (String, bool) {
        let cells = &self.term.grid()[row];
        let (mut text, mut wrapped) = (String::new(), false);
        for col in 0..self.term.columns() {
            let cell = &cells[Column(col)];
            wrapped = cell.flags.contains(Flags::WRAPLINE);
            // A wide character had no room there, and stands in the next row.
            if !cell.flags.contains(Flags::LEADING_WIDE_CHAR_SPACER) {
                push_text(&mut text, part(cells, col), cell);
            }
        }
        (text, wrapped)
    }

    fn frame(&self, at: At) -> Frame {
        Frame {
            at,
            drawn: self.frames.last_change(),
            screen: self.screen(),
            resized: self.outdated.last_resize(),
            redrawn: self.outdated.last_redraw(),
            outdated: self.outdated.is_outdated(),
        }
    }

    fn draw(&mut self, bytes: &[u8]) {
        self.frames.drawn();
        self.guarded(|terminal| terminal.parser.advance(&mut terminal.term, bytes));
    }

    /// A panic of the emulator costs this terminal its screen, and nothing else.
    fn guarded(&mut self, act: impl FnOnce(&mut Terminal)) {
        if catch_unwind(AssertUnwindSafe(|| act(self))).is_err() {
            let size = GridSize {
                cols: self.term.columns(),
                rows: self.term.screen_lines(),
            };
            self.term = new_term(size, &self.desk);
            self.parser = Processor::new();
            self.faults += 1;
        }
    }

    fn line(&self, row: GridLine) -> Line {
        let cells = &self.term.grid()[row];
        let mut line = Line::default();
        for col in 0..self.term.columns() {
            let cell = &cells[Column(col)];
            push_text(&mut line.text, part(cells, col), cell);
            push_style(&mut line.runs, col, style_of(cell));
            line.wrapped = cell.flags.contains(Flags::WRAPLINE);
        }
        line.text.truncate(line.text.trim_end_matches(' ').len());
        line
    }
}

fn new_term(size: GridSize, desk: &TerminalReplies) -> Term<TerminalReplies> {
    desk.set_size(size.cols, size.rows);
    let config = Config {
        scrolling_history: SCROLLBACK,
        // Keys are written in their plain form, so the protocol that would change them is not offered.
        kitty_keyboard: false,
        osc52: Osc52::Disabled,
        ..Config::default()
    };
    Term::new(config, &size, desk.clone())
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

pub(super) fn part(row: &Row<Cell>, col: usize) -> ScreenPart {
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

#[derive(Debug, Clone, Copy)]
struct GridSize {
    cols: usize,
    rows: usize,
}

impl GridSize {
    fn clamped(cols: usize, rows: usize) -> GridSize {
        let clamp = |n: usize| n.clamp(*SIZES.start(), *SIZES.end());
        GridSize {
            cols: clamp(cols),
            rows: clamp(rows),
        }
    }
}

impl Dimensions for GridSize {
    fn total_lines(&self) -> usize {
        self.rows
    }

    fn screen_lines(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.cols
    }
}

/// Marked frames are followed by [`Frames`], in recorded time: the parser must not hold anything back.
#[derive(Default)]
struct NoClock;

impl Timeout for NoClock {
    fn set_timeout(&mut self, _: Duration) {}

    fn clear_timeout(&mut self) {}

    fn pending_timeout(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_emulator_costs_the_screen_only() {
        let mut terminal = Terminal::new(20, 4);
        terminal.feed(At::ZERO, b"hello");
        terminal.guarded(|_| panic!("injected"));
        assert_eq!((terminal.faults(), terminal.lines(9)), (1, vec![]));
        terminal.feed(At::ZERO, b"again\x1b[c");
        assert_eq!(terminal.lines(9), ["again"]);
        assert!(!terminal.take_replies().is_empty());
    }
}
