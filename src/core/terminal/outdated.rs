//! Whether the screen was drawn for the size that the terminal has.
//!
//! When the size changes, the emulator cuts or wraps what stands on the screen. Until the program has drawn all of it
//! again, a text that looks whole may be cut at the new edge.

use super::At;

/// What is known of the last change of size.
#[derive(Debug, Default)]
pub(super) struct Outdated {
    resized: Option<At>,
    /// When the program had first drawn all of an outdated screen again.
    redrawn: Option<At>,
    outdated: bool,
}

impl Outdated {
    /// The size changed at `at`, and everything on the screen `stands` as it was drawn.
    pub(super) fn resized(&mut self, at: At, stands: bool) {
        self.resized = Some(at);
        self.outdated |= !stands;
    }

    /// A frame is over, and nothing is left of what stood on the screen before it.
    pub(super) fn drawn(&mut self, at: At) {
        self.outdated = false;
        self.redrawn = Some(at);
    }

    pub(super) fn is_outdated(&self) -> bool {
        self.outdated
    }

    pub(super) fn last_resize(&self) -> Option<At> {
        self.resized
    }

    /// When the screen was first drawn for the size that it has; the change of size itself where all stood as it was.
    pub(super) fn last_redraw(&self) -> Option<At> {
        self.redrawn.max(self.resized)
    }
}

/// Counts the rows that a frame erases, from the control sequences of the program.
#[derive(Debug, Default)]
pub(super) struct Erased {
    rows: usize,
    /// The last sequence took the cursor to the first place of the screen.
    at_home: bool,
}

impl Erased {
    /// A control sequence: what is before its last byte, and that.
    pub(super) fn note(&mut self, params: &[u8], last: u8) {
        let all = match (params, last) {
            (b"2", b'J') | (b"?1049", b'h') => true,
            (b"" | b"0", b'J') => self.at_home,
            _ => false,
        };
        if all {
            self.whole_screen();
        }
        if (params, last) == (b"2", b'K') {
            self.rows = self.rows.saturating_add(1);
        }
        self.at_home = matches!((params, last), (b"" | b"1;1" | b";", b'H'));
    }

    pub(super) fn whole_screen(&mut self) {
        self.rows = usize::MAX;
    }

    /// The rows that were erased since the last call.
    pub(super) fn take(&mut self) -> usize {
        std::mem::take(&mut self.rows)
    }
}

#[cfg(test)]
mod tests {
    use crate::core::terminal::{At, Terminal};

    fn at(ms: u64) -> At {
        At::from_millis(ms)
    }

    /// A terminal of 20 x 4 with text on it that has just become smaller.
    fn resized() -> Terminal {
        let mut terminal = Terminal::new(20, 4);
        terminal.feed(at(0), b"one two three four");
        terminal.quiet(at(100));
        terminal.resize(at(200), 10, 3);
        terminal
    }

    fn outdated_after(bytes: &[u8]) -> bool {
        let mut terminal = resized();
        let mut frames = terminal.feed(at(210), bytes);
        frames.extend(terminal.quiet(at(400)));
        frames.last().expect("a frame").outdated
    }

    #[test]
    fn a_screen_is_out_of_date_until_all_of_it_is_drawn_again() {
        let mut terminal = resized();
        let frames = terminal.quiet(at(300));
        assert!(frames[0].outdated);
        assert_eq!(frames[0].resized, Some(at(200)));
        for (bytes, outdated) in [
            (&b"\x1b[?2026h\x1b[2Jx\x1b[?2026l"[..], false),
            (b"\x1b[2J\x1b[Hx", false),
            (b"\x1b[H\x1b[Jx", false),
            (b"\x1b[?1049hx", false),
            (b"\x1bcx", false),
            (b"\x1b[H\x1b[2K\x1b[1B\x1b[2K\x1b[1B\x1b[2Kx", false),
            (b"\x1b[H\x1b[2K\x1b[1B\x1b[2Kx", true),
            (b"\x1b[2;1H\x1b[Jx", true),
            (b"\x1b[?2026h*\x1b[?2026l", true),
            (
                b"\x1b[?2026h\x1b[2Kx\x1b[?2026l\x1b[?2026h\x1b[2K\x1b[2Ky\x1b[?2026l",
                true,
            ),
            (b"\x1b[?1000h", true),
            (b"\x1b[H\x1b[2K\x1b[1B\x1b[2K", false),
            (
                b"\x1b[?2026h\x1b[H\x1b[2K\x1b[1B\x1b[2K\x1b[?2026l\x1b[Hx",
                false,
            ),
        ] {
            let shown = String::from_utf8_lossy(bytes);
            assert_eq!(outdated_after(bytes), outdated, "{shown:?}");
        }
    }

    #[test]
    fn a_frame_tells_when_its_screen_was_first_drawn_for_its_size() {
        let mut terminal = resized();
        assert_eq!(terminal.quiet(at(300))[0].redrawn, Some(at(200)));
        let whole = b"\x1b[?2026h\x1b[2Jx\x1b[?2026l";
        for ms in [3000, 3500] {
            let frames = terminal.feed(at(ms), whole);
            assert_eq!(frames[0].redrawn, Some(at(3000)), "at {ms}");
            assert_eq!(frames[0].resized, Some(at(200)));
        }
        terminal.resize(at(4000), 12, 3);
        assert_eq!(terminal.quiet(at(4100))[0].redrawn, Some(at(4000)));
    }

    /// Claude Code draws nothing again for a terminal that only gets more rows.
    #[test]
    fn more_rows_below_cut_nothing() {
        for (text, cols, rows, outdated) in [
            (&b"one two three four"[..], 20, 5, false),
            (b"one two three four", 20, 3, true),
            (b"one two three four", 21, 5, true),
            (b"one two three four", 19, 5, true),
            // A row comes back from above the screen.
            (b"1\r\n2\r\n3\r\n4\r\n5", 20, 5, true),
        ] {
            let mut terminal = Terminal::new(20, 4);
            terminal.feed(at(0), text);
            terminal.resize(at(200), cols, rows);
            assert_eq!(terminal.is_outdated(), outdated, "{cols}x{rows}");
        }
        let mut terminal = resized();
        terminal.resize(at(300), 10, 5);
        assert!(terminal.is_outdated(), "it was before");
    }

    #[test]
    fn the_same_size_and_an_empty_screen_change_nothing() {
        let mut terminal = Terminal::new(20, 4);
        terminal.resize(at(0), 30, 5);
        terminal.feed(at(10), b"text");
        assert!(!terminal.quiet(at(100))[0].outdated);
        terminal.resize(at(200), 30, 5);
        assert!(!terminal.is_outdated());
    }
}
