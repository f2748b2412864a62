//! The emulator with its scanner, its answers and its frames.

use super::cluster::attach;
use super::frames::Frames;
use super::outdated::Outdated;
use super::replies::TerminalReplies;
use super::rows::{ReadRows, line, visible_lines, whole_text};
use super::scan::{ScanPiece, Scanner};
use super::unseen::Unseen;
use super::{At, Cursor, Frame, Line, Modes, Screen};
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line as GridLine;
use alacritty_terminal::term::{Config, Osc52, Term, TermMode};
use alacritty_terminal::vte::ansi::{Processor, Timeout};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Rows kept above the screen: about 3 MB for each slot at 120 columns. The conversation itself comes
/// from the transcript, not from cells.
const SCROLLBACK: usize = 1000;

/// Sizes that are drawn; smaller or larger ones (a broken recording, a hostile resize) are clamped.
const SIZES: std::ops::RangeInclusive<usize> = 2..=1000;

/// A terminal without a window: fed with what the program wrote, it holds the screen.
pub struct Terminal {
    term: Term<TerminalReplies>,
    parser: Processor<NoClock>,
    scanner: Scanner,
    frames: Frames,
    outdated: Outdated,
    desk: TerminalReplies,
    rows: ReadRows,
    faults: u64,
}

impl Terminal {
    pub fn new(cols: usize, rows: usize) -> Terminal {
        let desk = TerminalReplies::default();
        let size = GridSize::clamped(cols, rows);
        let mut scanner = Scanner::default();
        scanner.resize(size.rows);
        Terminal {
            term: new_term(size, &desk),
            parser: Processor::new(),
            scanner,
            frames: Frames::default(),
            outdated: Outdated::default(),
            desk,
            rows: ReadRows::default(),
            faults: 0,
        }
    }

    /// The program wrote `bytes` at `at`. Returns the frames that are due, with their screens.
    pub fn feed(&mut self, at: At, bytes: &[u8]) -> Vec<Frame> {
        let mut frames = self.quiet(at);
        self.take(at, bytes, |terminal, at| frames.push(terminal.frame(at)));
        frames
    }

    /// The same where nobody looks at the frames: no screen is made, which is most of the work.
    pub fn skim(&mut self, at: At, bytes: &[u8]) {
        self.end_silently(at);
        self.take(at, bytes, |_, _| {});
    }

    fn take(&mut self, at: At, bytes: &[u8], mut due: impl FnMut(&mut Terminal, At)) {
        let at = self.frames.output(at);
        self.desk.set_time(at);
        let cols = self.term.columns();
        let scanned = self.scanner.scan(bytes, cols);
        for piece in &scanned.pieces {
            match piece {
                ScanPiece::Bytes(bytes) => self.draw(&scanned.bytes[bytes.clone()]),
                ScanPiece::Part(part) => self.guarded(|terminal| attach(&mut terminal.term, part)),
                ScanPiece::Wipe => {
                    self.rows.make_stale();
                    self.guarded(|terminal| terminal.term.grid_mut().reset_region(..))
                }
                ScanPiece::FrameBegin => self.frames.begin(),
                ScanPiece::FrameEnd(erased) => {
                    self.has_drawn(at, *erased);
                    if self.frames.end() {
                        due(self, at);
                    }
                }
                ScanPiece::AskVersion => self.desk.reply(concat!(
                    "\x1bP>|missiond(",
                    env!("CARGO_PKG_VERSION"),
                    ")\x1b\\"
                )),
            }
        }
        self.scanner.take_back(scanned);
    }

    /// Recorded time has come to `at`, with no output since the last.
    pub fn quiet(&mut self, at: At) -> Vec<Frame> {
        let due = self.end_silently(at);
        due.map(|due| self.frame(due)).into_iter().collect()
    }

    /// Reads the whole screen once more, whatever the emulator says of what it has drawn: before a key nothing is taken on
    /// trust. Returns the frame if it is another one than was read last. A frame that is being drawn is read at its end.
    pub fn check_rows(&mut self) -> Option<Frame> {
        let differs = !self.is_drawing() && self.rows.check(&self.term);
        differs.then(|| self.frame(self.last_change()))
    }

    /// Ends a frame that has no mark at its end; returns when it was over.
    fn end_silently(&mut self, at: At) -> Option<At> {
        let due = self.frames.due_before(at)?;
        let erased = self.scanner.take_erased();
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
            self.scanner.take_erased();
        }
        self.guarded(|terminal| terminal.term.resize(size));
        self.desk.set_size(size.cols, size.rows);
        self.scanner.resize(size.rows);
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

    /// Whether a snapshot says all there is: no sequence is half said, and the screen is drawn for its size.
    pub fn is_whole(&self) -> bool {
        self.scanner.is_at_rest() && !self.outdated.is_outdated()
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

    /// The screen now, all of it read from the grid.
    pub fn screen(&self) -> Screen {
        self.screen_of(visible_lines(&self.term))
    }

    fn screen_of(&self, lines: Vec<Arc<Line>>) -> Screen {
        let (cols, rows) = self.size();
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

    pub(super) fn term(&self) -> &Term<TerminalReplies> {
        &self.term
    }

    pub(super) fn unseen(&self) -> &Unseen {
        self.scanner.unseen()
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
            let text = line(&self.term.grid()[GridLine(row)]).text;
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
            let (text, wrapped) = whole_text(&self.term.grid()[row]);
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

    fn frame(&mut self, at: At) -> Frame {
        let lines = self.rows.read(&mut self.term);
        Frame {
            at,
            drawn: self.frames.last_change(),
            screen: self.screen_of(lines),
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
    fn before_a_key_all_rows_are_read_again() {
        let mut terminal = Terminal::new(20, 4);
        terminal.feed(At::ZERO, b"\x1b[?2026hhello\x1b[?2026l");
        assert_eq!(terminal.check_rows(), None);
        terminal.rows.spoil();
        let frame = terminal.check_rows().expect("the screen is another one");
        assert_eq!(frame.screen, terminal.screen());
        assert_eq!(terminal.check_rows(), None);
        terminal.feed(At::ZERO, b"half");
        assert_eq!(terminal.check_rows(), None, "it is being drawn");
    }

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
