//! The answer while it comes, as the screen shows it.

use super::composer::Box;
use super::page::{Page, indent};
use super::{activity, composer};
use crate::core::terminal::Screen;

/// What of an answer was on the screen when it was last looked at. Never more than a screen.
#[derive(Debug, Default)]
pub struct Stream {
    shown: Vec<String>,
}

impl Stream {
    /// Takes in what stands there now, and gives what is new of it. Rows that have left the screen since are not
    /// given again; where nothing is as it was, all of it is new.
    pub fn grow(&mut self, rows: Vec<String>) -> Option<String> {
        let overlap = (0..self.shown.len()).find_map(|from| rest_after(&self.shown[from..], &rows));
        let new = overlap.unwrap_or_else(|| rows.join("\n"));
        self.shown = rows;
        (!new.is_empty()).then_some(new)
    }
}

/// What `rows` have more than `shown`, which they begin with; the last row may have grown.
fn rest_after(shown: &[String], rows: &[String]) -> Option<String> {
    let (last, before) = shown.split_last()?;
    let grown = rows.get(before.len())?.strip_prefix(last.as_str())?;
    if rows[..before.len()] != *before {
        return None;
    }
    let more = &rows[shown.len()..];
    let rest = std::iter::once(grown).chain(more.iter().map(String::as_str));
    Some(rest.collect::<Vec<_>>().join("\n"))
}

/// The rows of the answer that is being written, as far as they are on the screen.
pub fn being_written(screen: &Screen) -> Option<Vec<String>> {
    let page = Page::new(screen);
    let found = Box::find(&page)?;
    let end = activity::spinner(&page, found.top()).unwrap_or(found.top());
    let head = activity::last_entry(&page, end).unwrap_or(0);
    Some(rows_of_entry(&page, head, end))
}

/// The rows of the entry of the conversation from `head` to `end`, without its bullet, its indentation and what Claude Code
/// says at the right margin below it.
pub(super) fn rows_of_entry(page: &Page, head: usize, end: usize) -> Vec<String> {
    let text = |row: usize| {
        let text = page.text(row);
        let indent = indent(text).min(composer::PROMPT_WIDTH);
        let text = text.trim_start_matches(activity::BULLETS);
        text.get(indent..).unwrap_or_default().trim_end().to_owned()
    };
    let belongs = |row: &usize| {
        let is_own = page.is_blank(*row) || page.row(*row).indent() >= composer::PROMPT_WIDTH;
        *row == head || is_own && !activity::is_notice(page, *row)
    };
    let mut rows: Vec<String> = (head..end).take_while(belongs).map(text).collect();
    if let Some(first) = rows.first_mut() {
        *first = first.trim_start().to_owned();
    }
    while rows.last().is_some_and(String::is_empty) {
        rows.pop();
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn only_what_is_new_is_told() {
        let mut stream = Stream::default();
        assert_eq!(stream.grow(rows("A first")), Some("A first".to_owned()));
        assert_eq!(
            stream.grow(rows("A first part.")),
            Some(" part.".to_owned())
        );
        assert_eq!(stream.grow(rows("A first part.")), None);
        let more = rows("A first part.\n\nA second");
        assert_eq!(stream.grow(more), Some("\n\nA second".to_owned()));
    }

    #[test]
    fn rows_that_scroll_away_are_not_told_again() {
        let mut stream = Stream::default();
        stream.grow(rows("one\ntwo\nthree"));
        assert_eq!(
            stream.grow(rows("two\nthree\nfour")),
            Some("\nfour".to_owned())
        );
        assert_eq!(stream.grow(rows("nine\nten")), Some("nine\nten".to_owned()));
        assert_eq!(stream.grow(Vec::new()), None);
    }
}
