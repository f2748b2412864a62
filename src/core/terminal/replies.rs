//! What the terminal answers to the program's questions.

use super::At;
use alacritty_terminal::event::{Event, EventListener, WindowSize};
use alacritty_terminal::vte::ansi::Rgb;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Reply bytes for each second of recorded time. All questions that a program asks when it starts are
/// answered with less than 200 bytes; a flood of questions must not become a flood of keys.
const MAX_REPLY_BYTES: usize = 2048;
const WINDOW: Duration = Duration::from_secs(1);

/// A cell in pixels, for programs that ask for the size in pixels.
const CELL: (u16, u16) = (8, 16);

const WHITE: Rgb = Rgb {
    r: 229,
    g: 229,
    b: 229,
};
const BLACK: Rgb = Rgb { r: 0, g: 0, b: 0 };

/// The place where the emulator leaves its answers and the title. The emulator gets a shared handle,
/// since it tells them through a shared reference.
#[derive(Clone, Default)]
pub(super) struct TerminalReplies(Arc<Mutex<WaitingReplies>>);

#[derive(Default)]
struct WaitingReplies {
    replies: Vec<u8>,
    window_began: At,
    written_in_window: usize,
    title: String,
    cols: u16,
    rows: u16,
}

impl TerminalReplies {
    pub(super) fn set_size(&self, cols: usize, rows: usize) {
        self.with(|inner| {
            inner.cols = u16::try_from(cols).unwrap_or(u16::MAX);
            inner.rows = u16::try_from(rows).unwrap_or(u16::MAX);
        });
    }

    pub(super) fn set_time(&self, at: At) {
        self.with(|inner| {
            if at.saturating_sub(inner.window_began) >= WINDOW {
                inner.window_began = at;
                inner.written_in_window = 0;
            }
        });
    }

    pub(super) fn reply(&self, text: &str) {
        self.with(|inner| inner.reply(text));
    }

    pub(super) fn take_replies(&self) -> Vec<u8> {
        self.with(|inner| std::mem::take(&mut inner.replies))
    }

    pub(super) fn title(&self) -> String {
        self.with(|inner| inner.title.clone())
    }

    pub(super) fn set_title(&self, title: String) {
        self.with(|inner| inner.title = title);
    }

    fn with<T>(&self, act: impl FnOnce(&mut WaitingReplies) -> T) -> T {
        // A panic of the emulator is caught and its screen thrown away; the desk holds plain values.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl WaitingReplies {
    fn reply(&mut self, text: &str) {
        if self.written_in_window + text.len() <= MAX_REPLY_BYTES {
            self.written_in_window += text.len();
            self.replies.extend_from_slice(text.as_bytes());
        }
    }

    fn window_size(&self) -> WindowSize {
        WindowSize {
            num_lines: self.rows,
            num_cols: self.cols,
            cell_width: CELL.0,
            cell_height: CELL.1,
        }
    }
}

impl EventListener for TerminalReplies {
    fn send_event(&self, event: Event) {
        match event {
            Event::PtyWrite(text) => self.reply(&text),
            Event::ColorRequest(index, format) => self.reply(&format(colour(index))),
            Event::TextAreaSizeRequest(format) => {
                let size = self.with(|inner| inner.window_size());
                self.reply(&format(size));
            }
            Event::Title(title) => self.set_title(title),
            Event::ResetTitle => self.set_title(String::new()),
            // The clipboard is never answered, nor written; the rest is for a window.
            _ => {}
        }
    }
}

/// A dark terminal: black ground, everything else light. Only the ground decides anything (themes).
fn colour(index: usize) -> Rgb {
    const BACKGROUND: usize = 257;
    match index {
        0 | BACKGROUND => BLACK,
        _ => WHITE,
    }
}
