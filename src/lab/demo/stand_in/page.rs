//! The screen of the stand-in, as rows of text. Pure.

use super::asked::StandInAsk;
use crate::lab::demo::text::{clipped, wrapped};
use unicode_width::UnicodeWidthStr;

/// One entry of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageEntry {
    /// A message of the person.
    Prompt(String),
    /// Text of the model.
    Text(String),
    Call {
        title: String,
        /// The result; `None` while the call runs.
        result: Option<String>,
    },
    /// A note of the program itself.
    Note(String),
}

/// The part below the conversation.
#[derive(Debug, Clone, Copy)]
pub enum Bottom<'a> {
    Input {
        draft: &'a str,
        /// The spinner's row while it works.
        work: Option<&'a str>,
    },
    Dialog(&'a StandInAsk),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrawnPage {
    pub rows: Vec<String>,
    /// Row and column, from 0.
    pub cursor: (usize, usize),
}

/// The maximum rows of a result on the screen; the transcript has all of it.
const RESULT_ROWS: usize = 4;
/// The maximum rows of a draft on the screen; a longer one is folded.
const DRAFT_ROWS: usize = 8;

/// Draws the whole screen: the end of the conversation, and the input box or dialog at the bottom.
pub fn draw(cols: usize, rows: usize, entries: &[PageEntry], bottom: Bottom) -> DrawnPage {
    let (below, (row, col)) = match bottom {
        Bottom::Input { draft, work } => input(cols, draft, work),
        Bottom::Dialog(asked) => asked.rows(cols),
    };
    let mut page: Vec<String> = entries.iter().flat_map(|e| entry(e, cols)).collect();
    let room = rows.saturating_sub(below.len());
    page.drain(..page.len().saturating_sub(room));
    page.resize(room, String::new());
    page.extend(below);
    page.truncate(rows);
    DrawnPage {
        rows: page,
        cursor: (room + row, col),
    }
}

/// A line across the screen.
pub fn rule(cols: usize) -> String {
    "─".repeat(cols)
}

fn input(cols: usize, draft: &str, work: Option<&str>) -> (Vec<String>, (usize, usize)) {
    let mut rows = vec![String::new()];
    rows.extend(
        work.map(|work| [work.to_owned(), String::new()])
            .into_iter()
            .flatten(),
    );
    rows.push(rule(cols));
    let first = rows.len();
    let text = folded(draft, cols);
    let marks = std::iter::once("❯ ").chain(std::iter::repeat("  "));
    rows.extend(
        text.iter()
            .zip(marks)
            .map(|(row, mark)| format!("{mark}{row}")),
    );
    let last = rows.len() - 1;
    let col = rows[last].width().max(2);
    rows.push(rule(cols));
    let offer = if work.is_some() {
        "esc to interrupt"
    } else {
        "? for shortcuts"
    };
    rows.push(format!("  ⏸ manual mode on · {offer}"));
    (rows, (last.max(first), col))
}

/// The rows of the draft, or a placeholder for a long one.
fn folded(draft: &str, cols: usize) -> Vec<String> {
    let rows = wrapped(draft, cols.saturating_sub(5));
    if rows.len() <= DRAFT_ROWS {
        return rows;
    }
    vec![format!(
        "[Pasted text #1 +{} lines]",
        draft.matches('\n').count()
    )]
}

fn entry(entry: &PageEntry, cols: usize) -> Vec<String> {
    let width = cols.saturating_sub(4);
    let mut rows = match entry {
        PageEntry::Prompt(text) => marked("❯ ", "  ", wrapped(text, width)),
        PageEntry::Text(text) => marked("● ", "  ", wrapped(text, width)),
        PageEntry::Note(text) => marked("  ⎿  ", "     ", wrapped(text, width.saturating_sub(3))),
        PageEntry::Call { title, result } => {
            let mut rows = marked("● ", "  ", vec![clipped(title, width)]);
            rows.extend(marked("  ⎿  ", "     ", shown(result.as_deref(), width)));
            rows
        }
    };
    rows.push(String::new());
    rows
}

fn shown(result: Option<&str>, width: usize) -> Vec<String> {
    let Some(result) = result else {
        return vec!["Running…".to_owned()];
    };
    let lines: Vec<&str> = result.trim_end().lines().collect();
    let mut rows: Vec<String> = lines
        .iter()
        .take(RESULT_ROWS)
        .map(|line| clipped(line, width.saturating_sub(3)))
        .collect();
    match lines.len() {
        0 => rows.push("(no output)".to_owned()),
        count if count > RESULT_ROWS => rows.push(format!("… +{} lines", count - RESULT_ROWS)),
        _ => {}
    }
    rows
}

fn marked(first: &str, other: &str, rows: Vec<String>) -> Vec<String> {
    let marks = std::iter::once(first).chain(std::iter::repeat(other));
    rows.iter()
        .zip(marks)
        .map(|(row, mark)| format!("{mark}{row}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::claude::reading::{Seen, read};
    use crate::core::terminal::{At, Screen, Terminal};

    const COLS: usize = 60;

    /// The page as the reader sees it.
    fn screen(entries: &[PageEntry], bottom: Bottom) -> Screen {
        let drawn = draw(COLS, 20, entries, bottom);
        let mut terminal = Terminal::new(COLS, 20);
        terminal.feed(At::ZERO, super::super::tty::BEGIN.as_bytes());
        let text = super::super::tty::frame(&drawn, "✳ stand-in");
        terminal.feed(At::ZERO, text.as_bytes());
        terminal.screen()
    }

    fn at_work(entries: &[PageEntry]) -> Seen {
        let (draft, work) = ("", Some("✻ Working… (2s)"));
        read(&screen(entries, Bottom::Input { draft, work })).seen
    }

    fn prompt() -> PageEntry {
        PageEntry::Prompt("Do it.".to_owned())
    }

    fn call(result: Option<&str>) -> PageEntry {
        let (title, result) = ("Bash(ls)".to_owned(), result.map(str::to_owned));
        PageEntry::Call { title, result }
    }

    #[test]
    fn work_is_read_as_what_it_is() {
        assert_eq!(at_work(&[prompt()]), Seen::Thinking);
        let text = PageEntry::Text("I begin with".to_owned());
        assert_eq!(at_work(&[prompt(), text]), Seen::Responding);
        assert_eq!(at_work(&[prompt(), call(None)]), Seen::ToolRunning);
        assert_eq!(at_work(&[prompt(), call(Some("a\nb"))]), Seen::Thinking);
    }

    #[test]
    fn a_draft_is_read_as_it_was_written() {
        let long = "word ".repeat(200);
        let lines = "one\n".repeat(30);
        for draft in [
            "",
            "Do it.",
            "two\nlines",
            long.trim_end(),
            lines.trim_end(),
        ] {
            let work = None;
            let reading = read(&screen(&[prompt()], Bottom::Input { draft, work }));
            assert_eq!(reading.seen, Seen::Idle);
            assert_eq!(reading.mode.as_deref(), Some("manual"));
            assert!(
                reading.composer.is_some_and(|box_| box_.holds(draft)),
                "{draft}"
            );
        }
    }

    #[test]
    fn what_was_printed_by_a_tool_does_not_act_on_the_terminal() {
        let rows = entry(&call(Some("\x1b[2Jgone\u{7}")), COLS);
        assert!(rows.concat().contains("[2Jgone"), "{rows:?}");
        assert!(!rows.concat().contains('\x1b'), "{rows:?}");
    }
}
