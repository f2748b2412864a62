//! Bytes in, [`Screen`] and replies out. The only module that names alacritty_terminal.
//!
//! Pure: no IO and no clock. Time comes in as the recorded time of the bytes, so that a replay of a
//! recording goes through exactly the moments that the live slot went through.

mod cluster;
mod emulator;
mod frames;
mod marks;
mod outdated;
mod passage;
mod picture;
mod plain;
mod replies;
mod rows;
mod scan;
pub mod sequences;
mod snapshot;
#[cfg(test)]
mod tests;
mod unseen;

pub use emulator::Terminal;
pub use marks::{FoundMark, Mark, PromptMarks};
pub use passage::{Passage, Passed};
pub use picture::Picture;
pub use plain::plain;

use std::sync::Arc;
use std::time::Duration;

/// Recorded time: since the beginning of the slot's recording.
pub type At = Duration;

/// A frame that is not marked by the program (mode 2026) is over after this much silence.
pub const FRAME_SILENCE: Duration = Duration::from_millis(20);

/// A marked frame that is not ended by then is given up, as terminals do: its program may have died.
pub const FRAME_TIMEOUT: Duration = Duration::from_millis(150);

/// What a person would see, as a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screen {
    pub cols: usize,
    pub rows: usize,
    /// The visible rows from top to bottom, `rows` of them. Frames share those that did not change.
    pub lines: Vec<Arc<Line>>,
    pub cursor: Cursor,
    /// The title set with OSC 0 or 2; empty when none was set or it was reset.
    pub title: String,
    pub modes: Modes,
}

/// One row of the screen.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// The text with trailing blanks removed; a wide character stands once.
    pub text: String,
    /// Styles of the non-default cells, as runs over display columns, in order.
    pub runs: Vec<Run>,
    /// Whether the terminal wrapped this row into the next one.
    pub wrapped: bool,
}

impl Line {
    /// The style of the cell in display column `col`.
    pub fn style_at(&self, col: usize) -> Style {
        let run = self
            .runs
            .iter()
            .find(|run| (run.from..run.to).contains(&col));
        run.map(|run| run.style).unwrap_or_default()
    }
}

/// A run of cells with one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub from: usize,
    pub to: usize,
    pub style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub inverse: bool,
    pub coloured: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    pub row: usize,
    pub col: usize,
    pub visible: bool,
}

/// The modes that tell whether a program is drawing on this terminal and listening to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Modes {
    pub alt_screen: bool,
    pub bracketed_paste: bool,
    pub focus_reporting: bool,
}

/// A moment at which the screen is whole and may be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub at: At,
    /// When the last of it was drawn: after this it has stood still.
    pub drawn: At,
    pub screen: Screen,
    /// When the terminal last got another size, if ever.
    pub resized: Option<At>,
    /// When the program first drew its whole screen after that.
    pub redrawn: Option<At>,
    /// The program has not drawn its whole screen since the size changed: what stands here may be cut.
    pub outdated: bool,
}

impl Frame {
    /// Whether the program has drawn nothing at all since the terminal has another size: what stands here is what stood
    /// there before, cut or wrapped.
    pub fn is_as_resized(&self) -> bool {
        self.outdated && self.resized.is_some_and(|resized| self.drawn <= resized)
    }
}
