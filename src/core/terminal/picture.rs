//! The screen as it looks in a terminal of another size: what fits of it, drawn row by row. The program's own bytes
//! would wrap and scroll where they should not.

use super::emulator::Terminal;
use super::snapshot::put;
use alacritty_terminal::grid::Dimensions;

/// What a terminal of some size shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Each begins and ends with plain attributes.
    rows: Vec<String>,
    /// Where the cursor goes; `None` where it is not to be seen.
    cursor: Option<(usize, usize)>,
    /// What the program wants to hear of the keyboard and the mouse.
    modes: String,
}

impl Terminal {
    /// A picture for a terminal of `cols` and `rows`, with `note` in its last row. Where not all rows fit, those
    /// round the cursor are shown, the lower ones rather than the upper: that is where programs talk. Empty rows at
    /// the end are nothing to be shown.
    pub fn picture(&self, cols: usize, rows: usize, note: &str) -> Picture {
        let room = rows.saturating_sub(1);
        let cursor = self.screen_cursor();
        let lowest = self.rows_used(cursor.row).saturating_sub(room);
        let top = lowest.min(cursor.row);
        let shown = room.min(self.term().screen_lines() - top);
        let mut drawn: Vec<String> = (top..top + shown)
            .map(|row| self.styled_row(row, cols))
            .collect();
        drawn.resize(room, String::new());
        drawn.push(format!("\x1b[2m{}\x1b[m", cut(note, cols)));
        let is_seen = cursor.visible && cursor.row < top + shown && cursor.col < cols;
        Picture {
            rows: drawn,
            cursor: is_seen.then(|| (cursor.row - top, cursor.col)),
            modes: self.input_modes(),
        }
    }

    /// Up to the last row that has something on it, or the cursor.
    fn rows_used(&self, cursor: usize) -> usize {
        let written = (0..self.term().screen_lines()).rfind(|row| !self.is_blank(*row));
        written.map_or(0, |row| row + 1).max(cursor + 1)
    }
}

impl Picture {
    /// What makes this picture out of the one before, or out of anything at all.
    pub fn since(&self, before: Option<&Picture>) -> Vec<u8> {
        if before == Some(self) {
            return Vec::new();
        }
        // Shown at once by terminals that know how; with no wrapping, so that a full row stays a row.
        let mut out = String::from("\x1b[?2026h\x1b[?25l");
        if before.is_none() {
            out.push_str("\x1b[?1049h\x1b[!p\x1b[r\x1b[m\x1b[2J");
        }
        out.push_str("\x1b[?7l");
        for (at, row) in self.rows.iter().enumerate() {
            if before.and_then(|before| before.rows.get(at)) != Some(row) {
                put(&mut out, format_args!("\x1b[{};1H\x1b[2K{row}", at + 1));
            }
        }
        out.push_str("\x1b[?7h");
        if before.is_none_or(|before| before.modes != self.modes) {
            out.push_str(&self.modes);
        }
        if let Some((row, col)) = self.cursor {
            put(
                &mut out,
                format_args!("\x1b[{};{}H\x1b[?25h", row + 1, col + 1),
            );
        }
        out.push_str("\x1b[?2026l");
        out.into_bytes()
    }
}

/// As much of a note as fits; it is plain ASCII of our own.
fn cut(note: &str, cols: usize) -> String {
    note.chars().take(cols).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::terminal::At;

    fn shown(cols: usize, rows: usize, pictures: &[Picture]) -> Vec<String> {
        let mut viewer = Terminal::new(cols, rows);
        let mut before = None;
        for picture in pictures {
            viewer.feed(At::ZERO, &picture.since(before));
            before = Some(picture);
        }
        let screen = viewer.screen();
        screen.lines.iter().map(|line| line.text.clone()).collect()
    }

    fn terminal(text: &str) -> Terminal {
        let mut terminal = Terminal::new(10, 4);
        terminal.feed(At::ZERO, text.as_bytes());
        terminal
    }

    #[test]
    fn a_larger_terminal_shows_all_and_the_note_below() {
        let picture = terminal("one\r\ntwo").picture(20, 7, "note");
        let expected = ["one", "two", "", "", "", "", "note"];
        assert_eq!(shown(20, 7, &[picture]), expected);
    }

    #[test]
    fn a_smaller_one_shows_what_is_round_the_cursor() {
        let mut terminal = terminal("first line\r\nsecond\r\nthird\r\nfourth");
        let low = terminal.picture(5, 3, "note");
        assert_eq!(
            shown(5, 3, std::slice::from_ref(&low)),
            ["third", "fourt", "note"]
        );
        terminal.feed(At::ZERO, b"\x1b[1;3H");
        let high = terminal.picture(5, 3, "note");
        assert_eq!(high.cursor, Some((0, 2)));
        assert_eq!(shown(5, 3, &[low, high]), ["first", "secon", "note"]);
    }

    #[test]
    fn empty_rows_at_the_end_push_nothing_out() {
        let terminal = terminal("one\r\ntwo");
        let picture = terminal.picture(5, 3, "note");
        assert_eq!(picture.cursor, Some((1, 3)));
        assert_eq!(shown(5, 3, &[picture]), ["one", "two", "note"]);
        // The cursor's own row comes first, empty or not.
        let below = super::tests::terminal("one\r\ntwo\r\n");
        let picture = below.picture(5, 3, "note");
        assert_eq!(shown(5, 3, &[picture]), ["two", "", "note"]);
    }

    #[test]
    fn a_wide_character_that_does_not_fit_is_left_out() {
        let picture = terminal("ab漢字").picture(5, 3, "");
        assert_eq!(shown(5, 3, &[picture])[0], "ab漢");
    }

    #[test]
    fn only_what_has_changed_is_drawn() {
        let mut terminal = terminal("one\r\ntwo");
        let before = terminal.picture(20, 7, "note");
        assert!(before.since(Some(&before)).is_empty());
        terminal.feed(At::ZERO, b"\rTWO");
        let after = terminal.picture(20, 7, "note");
        let drawn = String::from_utf8(after.since(Some(&before))).unwrap();
        assert!(drawn.contains("TWO") && !drawn.contains("one"), "{drawn:?}");
    }
}
