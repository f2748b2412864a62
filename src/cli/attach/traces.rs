//! What a program has done to the person's terminal, and what puts it right again. Pure.

use crate::core::terminal::sequences::{SequenceKind, SequencePiece, Sequences};
use crate::core::terminal::{At, Terminal};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Modes that a terminal begins with: they are put right by setting them.
const ON_AT_FIRST: [&[u8]; 2] = [b"7", b"25"];
const ALTERNATE: [&[u8]; 3] = [b"47", b"1047", b"1049"];

/// Modes that are remembered; a program uses a dozen, and a hostile one must not fill the memory.
const MAX_MODES: usize = 64;

/// Everything that was shown.
pub struct Traces {
    sequences: Sequences,
    changed: ChangedModes,
    /// To know where the text ends.
    terminal: Terminal,
}

#[derive(Default)]
struct ChangedModes {
    /// Private modes that are not as a terminal has them at first.
    modes: BTreeSet<Vec<u8>>,
    alternate: bool,
    /// The kitty protocol or its like was asked for.
    keyboard: bool,
    cursor_style: bool,
    /// The numbers of the commands that take colours back.
    colours: BTreeSet<&'static str>,
}

impl Traces {
    pub fn new(cols: u16, rows: u16) -> Traces {
        Traces {
            sequences: Sequences::default(),
            changed: ChangedModes::default(),
            terminal: Terminal::new(cols.into(), rows.into()),
        }
    }

    pub fn resize(&mut self, cols: u16, rows: u16) {
        self.terminal.resize(At::ZERO, cols.into(), rows.into());
    }

    pub fn shown(&mut self, bytes: &[u8]) {
        let changed = &mut self.changed;
        self.sequences.split(bytes, |piece| changed.note(&piece));
        self.terminal.feed(At::ZERO, bytes);
        // Nobody here answers the program.
        self.terminal.take_replies();
    }

    /// What puts the terminal right, with the cursor on a line of its own below what was shown.
    pub fn undo(&self) -> String {
        // CAN ends a sequence that was torn off; the rest are the modes that no number is kept of.
        let mut out = String::from("\x18\x1b[?2026l\x1b[r\x1b[?6l\x1b[4l\x1b>\x0f\x1b(B");
        self.changed.undo(&mut out);
        out.push_str("\x1b[m");
        // Leaving the alternate screen brings the person's own screen and cursor back.
        if !self.changed.alternate {
            let _ = write!(out, "\x1b[{};1H\r\n\x1b[J", self.last_row() + 1);
        }
        out
    }

    fn last_row(&self) -> usize {
        let screen = self.terminal.screen();
        let used = screen
            .lines
            .iter()
            .rposition(|line| !line.text.is_empty() || !line.runs.is_empty());
        used.unwrap_or(0).max(screen.cursor.row)
    }
}

impl ChangedModes {
    fn note(&mut self, piece: &SequencePiece) {
        match piece.kind {
            SequenceKind::Csi => self.note_csi(piece.body()),
            SequenceKind::Osc => self.note_osc(piece.body()),
            // A full reset.
            SequenceKind::Escape if piece.raw == b"\x1bc" => *self = ChangedModes::default(),
            _ => {}
        }
    }

    fn note_csi(&mut self, body: &[u8]) {
        match body {
            [b'?', modes @ .., set @ (b'h' | b'l')] => {
                for mode in modes.split(|byte| *byte == b';') {
                    self.note_mode(mode, *set == b'h');
                }
            }
            [b'>' | b'=' | b'<', .., b'u'] | [b'>', .., b'm'] => self.keyboard = true,
            [.., b' ', b'q'] => self.cursor_style = true,
            _ => {}
        }
    }

    fn note_mode(&mut self, mode: &[u8], set: bool) {
        if ALTERNATE.contains(&mode) {
            self.alternate = set;
        } else if set == ON_AT_FIRST.contains(&mode) {
            self.modes.remove(mode);
        } else if self.modes.len() < MAX_MODES && mode.len() <= 5 {
            self.modes.insert(mode.to_vec());
        }
    }

    fn note_osc(&mut self, body: &[u8]) {
        let number = body.split(|byte| *byte == b';').next();
        let undone_by = match number {
            Some(b"4") => "104",
            Some(b"10") => "110",
            Some(b"11") => "111",
            Some(b"12") => "112",
            _ => return,
        };
        self.colours.insert(undone_by);
    }

    fn undo(&self, out: &mut String) {
        if self.keyboard {
            // On the screen that it was set on; each has its own.
            out.push_str("\x1b[<99u\x1b[=0u\x1b[>4m");
        }
        if self.alternate {
            out.push_str("\x1b[?1049l");
        }
        for mode in &self.modes {
            let set = match ON_AT_FIRST.contains(&mode.as_slice()) {
                true => 'h',
                false => 'l',
            };
            let _ = write!(out, "\x1b[?{}{set}", String::from_utf8_lossy(mode));
        }
        if self.cursor_style {
            out.push_str("\x1b[0 q");
        }
        for number in &self.colours {
            let _ = write!(out, "\x1b]{number}\x1b\\");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traces(text: &str) -> Traces {
        let mut traces = Traces::new(20, 6);
        traces.shown(text.as_bytes());
        traces
    }

    #[test]
    fn what_was_set_is_taken_back_and_nothing_else() {
        let undo = traces(
            "\x1b[?1049h\x1b[?1000;1006h\x1b[?2004h\x1b[?25l\x1b[?7h\x1b[>1u\x1b[5 q\x1b]11;#fff\x07\x1b[?2004l",
        )
        .undo();
        for taken_back in [
            "\x1b[?1049l",
            "\x1b[?1000l",
            "\x1b[?1006l",
            "\x1b[?25h",
            "\x1b[<99u",
            "\x1b[0 q",
            "\x1b]111\x1b\\",
        ] {
            assert!(undo.contains(taken_back), "{taken_back:?} in {undo:?}");
        }
        for untouched in ["2004", "\x1b[?7h", "]104", "]110"] {
            assert!(!undo.contains(untouched), "{untouched:?} in {undo:?}");
        }
    }

    #[test]
    fn the_cursor_ends_below_the_text() {
        for (text, row) in [("one\r\ntwo\x1b[H", 2), ("$ ", 1), ("", 1)] {
            let mut traces = traces(text);
            let undo = traces.undo();
            traces.shown(undo.as_bytes());
            let screen = traces.terminal.screen();
            assert_eq!((screen.cursor.row, screen.cursor.col), (row, 0), "{text:?}");
        }
    }

    #[test]
    fn a_torn_sequence_does_not_swallow_what_follows() {
        let mut traces = traces("one\x1b]0;torn");
        let undo = traces.undo() + "message";
        traces.shown(undo.as_bytes());
        assert_eq!(traces.terminal.lines(9), ["one", "message"]);
    }
}
