//! The stand-in's terminal: raw mode, whole frames, keys with a time limit.

use super::page::DrawnPage;
use super::typed::{StandInTyped, TypedKey};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{self, OptionalActions, Termios};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

/// The alternate screen, bracketed paste, focus reports, no cursor: the modes that Claude Code sets.
pub const BEGIN: &str = "\x1b[?1049h\x1b[?2004h\x1b[?1004h\x1b[?25l";
const END: &str = "\x1b]0;\x07\x1b[?1004l\x1b[?2004l\x1b[?1049l\x1b[?25h";

/// The maximum time between the bytes of an escape sequence.
const ESCAPE_GAP: Duration = Duration::from_millis(20);

/// One frame between synchronized-output marks, so that a reader never reads half of it.
pub fn frame(drawn: &DrawnPage, title: &str) -> String {
    let mut text = format!("\x1b[?2026h\x1b]0;{title}\x07\x1b[H");
    for (index, row) in drawn.rows.iter().enumerate() {
        // Writing to a string can't fail.
        let _ = write!(text, "\x1b[{};1H\x1b[2K{row}", index + 1);
    }
    let (row, col) = drawn.cursor;
    let _ = write!(text, "\x1b[{};{}H\x1b[?2026l", row + 1, col + 1);
    text
}

/// The terminal on standard input and output. Dropping it restores the terminal.
pub struct Tty {
    before: Termios,
    typed: StandInTyped,
    last: String,
}

impl Tty {
    pub fn open() -> io::Result<Tty> {
        let before = termios::tcgetattr(io::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        termios::tcsetattr(io::stdin(), OptionalActions::Now, &raw)?;
        let tty = Tty {
            before,
            typed: StandInTyped::default(),
            last: String::new(),
        };
        write(BEGIN)?;
        Ok(tty)
    }

    /// Columns and rows.
    pub fn size(&self) -> (usize, usize) {
        let size = termios::tcgetwinsize(io::stdout());
        size.map_or((80, 24), |size| (size.ws_col.into(), size.ws_row.into()))
    }

    /// Shows a page, if it differs from the last one.
    pub fn show(&mut self, drawn: &DrawnPage, title: &str) -> io::Result<()> {
        let frame = frame(drawn, title);
        if frame != self.last {
            write(&frame)?;
            self.last = frame;
        }
        Ok(())
    }

    /// The keys that come within this time; an error if no more can come.
    pub fn keys(&mut self, limit: Duration) -> io::Result<Vec<TypedKey>> {
        if !is_readable(limit)? {
            return Ok(Vec::new());
        }
        let mut bytes = [0; 4096];
        let count = rustix::io::read(io::stdin(), &mut bytes)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut keys = self.typed.feed(&bytes[..count]);
        if !is_readable(ESCAPE_GAP)? {
            keys.extend(self.typed.silence());
        }
        Ok(keys)
    }
}

fn is_readable(limit: Duration) -> io::Result<bool> {
    let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
    let stdin = io::stdin();
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut ready, Some(&limit)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

impl Drop for Tty {
    fn drop(&mut self) {
        // If the terminal is gone, it can't be restored.
        let _ = write(END);
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}
