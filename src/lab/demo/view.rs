//! The display: redrawn in place on a terminal, otherwise line by line, or as JSON.

use super::DemoError;
use super::text::hanging;
use super::told::{self, Weight};
use crate::core::claude::reading::State;
use crate::core::model::{Event, EventKind};
use crate::core::text::redraw;
use anstyle::{AnsiColor, Style};
use serde_json::json;
use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemoMode {
    /// A terminal, at which a person may answer.
    Live,
    Plain,
    Json,
}

impl DemoMode {
    /// The mode that fits the standard input and output of this process.
    pub fn of_process(json: bool) -> DemoMode {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        match io::stdout().is_terminal() && io::stdin().is_terminal() && !dumb {
            _ if json => DemoMode::Json,
            true => DemoMode::Live,
            false => DemoMode::Plain,
        }
    }
}

/// Columns and rows of a terminal that does not report its size.
const USUAL_SIZE: (u16, u16) = (80, 24);

/// All lines of the demo: some hundred.
pub struct View {
    mode: DemoMode,
    coloured: bool,
    shown: RefCell<ShownView>,
}

#[derive(Default)]
struct ShownView {
    slots: Vec<(String, State)>,
    lines: Vec<(Weight, String)>,
    /// The present question to the person.
    prompt: Option<String>,
    /// The number of rows of the frame on the terminal.
    drawn: usize,
}

impl View {
    pub fn new(mode: DemoMode) -> View {
        let choice = anstream::AutoStream::choice(&io::stdout());
        View {
            mode,
            coloured: choice != anstream::ColorChoice::Never,
            shown: RefCell::default(),
        }
    }

    /// Shows a line of the demo.
    pub fn say(&self, text: &str) -> Result<(), DemoError> {
        self.tell(Weight::Plain, text)
    }

    /// Shows a heading for what follows.
    pub fn act(&self, title: &str) -> Result<(), DemoError> {
        self.tell(Weight::Plain, "")?;
        self.tell(Weight::Plain, &format!("── {title} ──"))
    }

    /// Shows the command that does the same by hand.
    pub fn by_hand(&self, command: &str) -> Result<(), DemoError> {
        self.tell(Weight::Aside, &format!("by hand:  {command}"))
    }

    /// Shows an event; the slots work below this directory.
    pub fn heard(&self, event: &Event, work: &Path) -> Result<(), DemoError> {
        if self.mode == DemoMode::Json {
            return self.json(&json!(event));
        }
        if let Some(slot) = &event.slot {
            match &event.what {
                EventKind::Snapshot { status } => self.set_state(slot, status.state),
                EventKind::State { to, .. } => self.set_state(slot, *to),
                _ => {}
            }
        }
        match told::line(event, work) {
            // The table shows it already.
            Some((Weight::Aside, _)) if self.mode == DemoMode::Live => self.redraw(),
            Some((weight, text)) => self.tell(weight, &text),
            None => self.redraw(),
        }
    }

    /// Shows the question to the person, until it is `None`.
    pub fn prompt(&self, prompt: Option<String>) -> Result<(), DemoError> {
        self.shown.borrow_mut().prompt = prompt;
        self.redraw()
    }

    fn set_state(&self, slot: &str, state: State) {
        let slots = &mut self.shown.borrow_mut().slots;
        match slots.iter_mut().find(|(name, _)| name == slot) {
            Some((_, known)) => *known = state,
            None => slots.push((slot.to_owned(), state)),
        }
    }

    fn tell(&self, weight: Weight, text: &str) -> Result<(), DemoError> {
        self.shown
            .borrow_mut()
            .lines
            .push((weight, text.to_owned()));
        match self.mode {
            DemoMode::Live => self.redraw(),
            DemoMode::Plain => {
                let rows = rows_of(weight, text, usize::MAX, self.coloured);
                write(&(rows.join("\n") + "\n"))
            }
            DemoMode::Json if text.is_empty() => Ok(()),
            DemoMode::Json => self.json(&json!({"told": text})),
        }
    }

    fn json(&self, value: &serde_json::Value) -> Result<(), DemoError> {
        write(&format!("{value}\n"))
    }

    /// Draws the states at the top, and below them as many of the last lines as there is room for.
    fn redraw(&self) -> Result<(), DemoError> {
        if self.mode != DemoMode::Live {
            return Ok(());
        }
        let (cols, rows) = crossterm::terminal::size().unwrap_or(USUAL_SIZE);
        let (cols, rows) = (usize::from(cols), usize::from(rows));
        let mut shown = self.shown.borrow_mut();
        let mut frame: Vec<String> = shown.slots.iter().map(|slot| self.slot_row(slot)).collect();
        frame.push("─".repeat(cols.saturating_sub(1)));
        let prompt = shown
            .prompt
            .iter()
            .flat_map(|prompt| rows_of(Weight::Asks, prompt, cols, self.coloured));
        let prompt: Vec<String> = prompt.collect();
        let mut story: Vec<String> = shown
            .lines
            .iter()
            .flat_map(|(weight, text)| rows_of(*weight, text, cols, self.coloured))
            .collect();
        // The last row is for the cursor.
        let room = rows.saturating_sub(frame.len() + prompt.len() + 1);
        story.drain(..story.len().saturating_sub(room));
        frame.extend(story.into_iter().chain(prompt));
        let drawn = std::mem::replace(&mut shown.drawn, frame.len());
        write(&redraw::over(drawn, &frame))
    }

    fn slot_row(&self, (slot, state): &(String, State)) -> String {
        let colour = match state {
            State::Confirming => AnsiColor::Yellow,
            State::Error | State::Exited => AnsiColor::Red,
            State::Idle | State::Starting => AnsiColor::White,
            State::Thinking | State::Responding | State::ToolRunning => AnsiColor::Cyan,
        };
        let style = Style::new().bold().fg_color(Some(colour.into()));
        let name = state.name();
        if self.coloured {
            format!("{slot:<9} {style}{name}{style:#}")
        } else {
            format!("{slot:<9} {name}")
        }
    }

    /// Leaves all lines on the terminal, so that they can be read again.
    pub fn close(&self) -> Result<(), DemoError> {
        if self.mode != DemoMode::Live {
            return Ok(());
        }
        let shown = self.shown.borrow();
        let (cols, _) = crossterm::terminal::size().unwrap_or(USUAL_SIZE);
        let told = shown.lines.iter();
        let rows: Vec<String> = told
            .flat_map(|(weight, text)| rows_of(*weight, text, cols.into(), self.coloured))
            .collect();
        write(&redraw::over(shown.drawn, &rows))
    }
}

/// The indent of a line's rows after the first.
const INDENT: usize = 10;

fn rows_of(weight: Weight, text: &str, width: usize, coloured: bool) -> Vec<String> {
    let rows = hanging(text, width.saturating_sub(1), INDENT);
    let style = style_of(weight);
    let styled = rows.into_iter().map(|row| {
        if coloured && !row.is_empty() {
            format!("{style}{row}{style:#}")
        } else {
            row
        }
    });
    styled.collect()
}

fn style_of(weight: Weight) -> Style {
    let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
    match weight {
        Weight::Aside => Style::new().dimmed(),
        Weight::Plain => Style::new(),
        Weight::Good => colour(AnsiColor::Green),
        Weight::Bad => colour(AnsiColor::Red),
        Weight::Asks => colour(AnsiColor::Yellow),
    }
}

fn write(text: &str) -> Result<(), DemoError> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => DemoError::ReaderGone,
        _ => DemoError::Output(error),
    })
}
