//! Characters that are drawn as one: a base with its marks, and emoji that are joined.
//!
//! The emulator gives each part of a joined emoji columns of its own. Claude Code gives the whole of it two, as
//! a desktop terminal does, and goes on drawing behind them: counted otherwise, everything to the right
//! of a 👩‍👩‍👧 is off by four columns.

use alacritty_terminal::Term;
use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::Column;
use alacritty_terminal::term::cell::{Cell, Flags};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Parts that may follow one base. The longest emoji, a kiss of two people with skin tones, needs nine; a
/// cell that takes any number of them is a leak.
pub(super) const MAX_PARTS: usize = 10;

const JOINER: char = '\u{200d}';
const EMOJI_STYLE: char = '\u{fe0f}';
/// Encloses a digit, `#` or `*`, with or without the style before it.
const KEYCAP: char = '\u{20e3}';
const SKIN_TONES: std::ops::RangeInclusive<char> = '\u{1f3fb}'..='\u{1f3ff}';

/// Whether `next` can become one with the character before it, which ends in `before`.
pub(super) fn may_join(before: char, next: char) -> bool {
    before == JOINER || SKIN_TONES.contains(&next) || matches!(next, EMOJI_STYLE | KEYCAP)
}

/// What is to be done with a character.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ClusterFit {
    /// It stands for itself, or is a mark that the emulator sets onto the cell before.
    Plain,
    /// It belongs to the cell before, where `base` stands.
    Part(ClusterPart),
    /// There is nothing that it could belong to, or too much already.
    Dropped,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClusterPart {
    base: char,
    ch: char,
    /// The base took one column so far, and takes two now.
    widens: bool,
}

/// The character that was drawn last, with what was added to it.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    text: String,
    width: usize,
    parts: usize,
}

impl Cluster {
    /// A control came: what follows would land on whatever cell it moved to.
    pub(super) fn end(&mut self) {
        self.text.clear();
    }

    /// The character and what was added to it; empty if nothing can be added any more.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// A character stands for itself, in `width` columns.
    pub(super) fn begin(&mut self, ch: char, width: usize) {
        self.text.clear();
        self.text.push(ch);
        self.width = width;
        self.parts = 0;
    }

    pub(super) fn add(&mut self, ch: char) -> ClusterFit {
        let width = ch.width();
        let is_mark = width == Some(0);
        let whole = self.width_with(ch);
        if !is_mark && whole.is_none() {
            self.begin(ch, width.unwrap_or(0));
            return ClusterFit::Plain;
        }
        let Some(base) = self.text.chars().next().filter(|_| self.parts < MAX_PARTS) else {
            return ClusterFit::Dropped;
        };
        self.text.push(ch);
        self.parts += 1;
        let widens = whole.is_some_and(|whole| whole > self.width);
        if is_mark && !widens {
            return ClusterFit::Plain;
        }
        self.width = whole.unwrap_or(self.width);
        ClusterFit::Part(ClusterPart { base, ch, widens })
    }

    /// How wide the emoji is that `ch` completes; `None` where the two don't become one.
    fn width_with(&self, ch: char) -> Option<usize> {
        let before = self.text.chars().next_back()?;
        if !may_join(before, ch) {
            return None;
        }
        let whole = match ch {
            KEYCAP => styled(&self.text),
            _ if before == JOINER && self.text.starts_with(is_emoji) && is_emoji(ch) => 2,
            _ => format!("{}{ch}", self.text).width(),
        };
        let apart = self.width + ch.width().unwrap_or(0);
        (whole == 2 && (whole < apart || whole > self.width)).then_some(whole)
    }
}

/// Whether a sign is drawn as an emoji, by itself or with a style, which may be left out beside a joiner.
fn is_emoji(c: char) -> bool {
    matches!(c, '\u{2000}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}') && styled(&c.to_string()) == 2
}

fn styled(text: &str) -> usize {
    format!("{text}{EMOJI_STYLE}").width()
}

/// The column of the character before the cursor.
pub(super) fn column_before_cursor(grid: &Grid<Cell>) -> usize {
    let (line, next) = (grid.cursor.point.line, grid.cursor.point.column.0);
    let col = next.saturating_sub(usize::from(!grid.cursor.input_needs_wrap));
    let is_second_half = grid[line][Column(col)]
        .flags
        .contains(Flags::WIDE_CHAR_SPACER);
    col.saturating_sub(usize::from(is_second_half))
}

/// Adds a part to the character before the cursor.
pub(super) fn attach<T>(term: &mut Term<T>, part: &ClusterPart) {
    let cols = term.columns();
    let grid = term.grid_mut();
    let (line, next) = (grid.cursor.point.line, grid.cursor.point.column.0);
    let col = column_before_cursor(grid);
    // Where the base did not fit it was not drawn.
    if grid[line][Column(col)].c != part.base {
        return;
    }
    grid[line][Column(col)].push_zerowidth(part.ch);
    if !part.widens || grid.cursor.input_needs_wrap {
        return;
    }
    let spacer = Cell {
        flags: Flags::WIDE_CHAR_SPACER,
        c: ' ',
        extra: None,
        ..grid[line][Column(col)].clone()
    };
    let covered = std::mem::replace(&mut grid[line][Column(next)], spacer);
    if covered.flags.contains(Flags::WIDE_CHAR) && next + 1 < cols {
        grid[line][Column(next + 1)]
            .flags
            .remove(Flags::WIDE_CHAR_SPACER);
    }
    grid[line][Column(col)].flags.insert(Flags::WIDE_CHAR);
    if next + 1 < cols {
        grid.cursor.point.column += 1;
    } else {
        grid.cursor.input_needs_wrap = true;
    }
}

#[cfg(test)]
mod tests {
    use crate::core::terminal::{At, Terminal};

    /// The column that Claude Code 2.1.325 goes on drawing in behind each of these.
    const MEASURED: [(&str, usize); 19] = [
        ("👩‍👩‍👧", 2),
        ("👍🏽", 2),
        ("❤️", 2),
        ("1️⃣", 2),
        ("🇩🇪", 2),
        ("🏳️‍🌈", 2),
        ("©️", 2),
        ("❤", 1),
        ("☎️", 2),
        ("👩‍⚕️", 2),
        ("👨🏽‍💻", 2),
        ("é", 1),
        ("1\u{20e3}", 2),
        ("🏳\u{200d}🌈", 2),
        ("👩\u{200d}⚕", 2),
        ("⌚︎", 2),
        ("#️⃣", 2),
        ("☝🏽", 2),
        ("⛹🏽‍♀️", 2),
    ];

    #[test]
    fn an_emoji_takes_the_columns_that_claude_code_counts() {
        for (emoji, width) in MEASURED {
            let mut terminal = Terminal::new(20, 3);
            terminal.feed(At::ZERO, emoji.as_bytes());
            let screen = terminal.screen();
            assert_eq!(
                (screen.cursor.row, screen.cursor.col),
                (0, width),
                "{emoji}"
            );
            assert_eq!(screen.lines[0].text, emoji);
        }
    }

    #[test]
    fn parts_apart_stay_apart() {
        for text in [
            "👩\u{200d}a",
            "漢\u{200d}字",
            "a🏽",
            "🏽🏽",
            "a\u{fe0f}b",
            "👩漢",
        ] {
            let mut terminal = Terminal::new(20, 3);
            terminal.feed(At::ZERO, text.as_bytes());
            let width: usize = text
                .chars()
                .filter_map(unicode_width::UnicodeWidthChar::width)
                .sum();
            assert_eq!(terminal.screen().cursor.col, width, "{text:?}");
        }
    }

    #[test]
    fn an_emoji_that_is_widened_covers_what_stood_behind_it() {
        let mut terminal = Terminal::new(6, 3);
        terminal.feed(At::ZERO, "a漢b\r❤\u{fe0f}".as_bytes());
        assert_eq!(terminal.screen().lines[0].text, "❤\u{fe0f} b");
        terminal.feed(At::ZERO, "\r\n12345❤\u{fe0f}x".as_bytes());
        let screen = terminal.screen();
        assert_eq!(screen.lines[1].text, "12345❤\u{fe0f}");
        assert_eq!(screen.lines[2].text, "x");
    }
}
