//! The input box: two rules from edge to edge with a prompt between them, and the footer below.

use super::Composer;
use super::dialog::has_key_hint;
use super::page::{MARKER, Page, join_wrapped};
use crate::core::claude::vocabulary::{HINTS, MORE_ABOVE, SHORTCUTS};

/// The prompt: `❯` or `>` for a message, `!` for a shell command, `#` for a note to remember.
const PROMPTS: [char; 4] = [MARKER, '>', '!', '#'];

/// The prompts that stand for a typed first character: what follows is no message.
const MODE_SIGNS: [char; 2] = ['!', '#'];

/// Columns of a row that a draft is never wrapped into: the prompt, the cursor and the margin.
const UNUSED_WIDTH: usize = 5;

/// Columns that the prompt takes, and the indent of the rows that follow it.
pub(super) const PROMPT_WIDTH: usize = 2;

/// Rows below a box whose draft is longer than the screen.
const MAX_FOOTER: usize = 3;

/// The rows of the input box.
pub(super) struct Box {
    /// The upper and the lower rule.
    top: usize,
    bottom: usize,
}

impl Box {
    pub(super) fn top(&self) -> usize {
        self.top
    }

    pub(super) fn bottom(&self) -> usize {
        self.bottom
    }

    /// The lowest one on the page. Nothing but the footer may stand below it: another rule further
    /// down belongs to a dialog, and then what looks like a box above is a part of that.
    pub(super) fn find(page: &Page) -> Option<Box> {
        let bottom = page.above(page.len(), |row| page.is_rule(row))?;
        let top = page.above(bottom, |row| page.is_rule(row))?;
        let found = Box { top, bottom };
        (bottom > top + 1 && found.has_prompt(page)).then_some(found)
    }

    /// A box whose upper rule is off the screen, and the conversation with it: older versions let it grow with its
    /// draft, and a list below it pushes it up. What is left is text that is indented as a draft is, the cursor drawn
    /// into it, and the lower rule with nothing below that offers keys.
    pub(super) fn outgrown(page: &Page) -> Option<Composer> {
        let bottom = page.above(page.len(), |row| page.is_rule(row))?;
        let begins = bottom > 0 && begins_with_prompt(page.text(0));
        let in_draft = |row: usize| {
            let text = page.row(row);
            page.is_blank(row) || text.indent() >= PROMPT_WIDTH && !text.is_boxed()
        };
        let below = page.len() - bottom - 1;
        let grown = (usize::from(begins)..bottom).all(in_draft)
            && page.drawn_cursors().count() == 1
            && page.drawn_cursors().all(|row| row < bottom)
            && (begins || below <= MAX_FOOTER)
            && !has_key_hint(page, page.len().saturating_sub(MAX_FOOTER).max(bottom + 1));
        let rows = (0..bottom).map(|row| skip_columns(page.text(row), PROMPT_WIDTH));
        grown.then(|| Composer {
            draft: rows.collect::<Vec<_>>().join("\n").trim_end().to_owned(),
            menu: below > MAX_FOOTER,
        })
    }

    /// A box whose lower rule is off the screen, which is too low for its draft: the last rule, a prompt right below it, and
    /// the cursor in the text. A dialog with its marker there has the cursor on the marker.
    pub(super) fn cut_below(page: &Page) -> Option<Composer> {
        let top = page.above(page.len(), |row| page.is_rule(row))?;
        let found = Box {
            top,
            bottom: page.len(),
        };
        let cursor = page.screen().cursor;
        let is_in_text = cursor.row > top && cursor.col >= PROMPT_WIDTH;
        let is_drawn_in_text = || page.drawn_cursors().any(|row| row > top);
        (found.has_prompt(page) && (is_in_text || is_drawn_in_text())).then(|| Composer {
            draft: found.draft(page),
            menu: false,
        })
    }

    fn has_prompt(&self, page: &Page) -> bool {
        let mut rows = self.top + 1..self.bottom;
        let first = rows.next().map_or("", |row| page.text(row));
        let is_draft = |row| page.is_blank(row) || page.row(row).indent() >= PROMPT_WIDTH;
        (begins_with_prompt(first) || self.is_scrolled(page)) && rows.all(is_draft)
    }

    /// Whether the first rows of the draft are not shown, and the prompt with them. The rule above says so, and the cursor
    /// is in the text and on no marker: no view has both.
    fn is_scrolled(&self, page: &Page) -> bool {
        let label = page.text(self.top).trim_matches('─');
        let is_count = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
        let counts = label.strip_prefix(MORE_ABOVE).is_some_and(is_count);
        let cursor = page.screen().cursor;
        let in_text = (self.top + 1..self.bottom).contains(&cursor.row)
            && cursor.col >= PROMPT_WIDTH
            && !page.text(cursor.row).trim_start().starts_with(MARKER);
        counts && in_text && page.row(self.top + 1).indent() >= PROMPT_WIDTH
    }

    pub(super) fn composer(&self, page: &Page) -> Composer {
        let draft = if self.shows_hint(page) {
            String::new()
        } else {
            self.draft(page)
        };
        let menu = !draft.is_empty()
            && (self.menu_above(page) || self.menu_below(page) || self.files_below(page, &draft));
        Composer {
            draft,
            menu: menu || self.is_left(page),
        }
    }

    /// The prompt of a message is greyed while Claude Code works, in every version.
    pub(super) fn is_prompt_muted(&self, page: &Page) -> bool {
        let row = page.row(self.top + 1);
        row.text().starts_with([MARKER, '>']) && row.is_muted()
    }

    /// What an empty box says instead: faint, or coloured with the cursor still in front of it.
    fn shows_hint(&self, page: &Page) -> bool {
        let row = page.row(self.top + 1);
        let cursor = page.screen().cursor;
        let untouched = (cursor.row, cursor.col) == (self.top + 1, PROMPT_WIDTH);
        let text = skip_columns(row.text(), PROMPT_WIDTH);
        let hint = HINTS.iter().any(|hint| text.starts_with(hint));
        row.is_faint_from(PROMPT_WIDTH) || untouched && (hint || row.is_muted_from(PROMPT_WIDTH))
    }

    /// The full-screen versions park the cursor where the keys go: somewhere else, say on a task in the
    /// footer, and Enter would open that.
    fn is_left(&self, page: &Page) -> bool {
        let inside = (self.top + 1..self.bottom).contains(&page.screen().cursor.row);
        page.screen().modes.alt_screen && !inside
    }

    /// Whether what is typed goes into a field below the box, such as the search through earlier prompts: the cursor
    /// is drawn there, and none in the box. (The full-screen versions draw none, and a status line may.)
    pub(super) fn types_below(&self, page: &Page) -> bool {
        let below = |row: usize| row > self.bottom;
        !page.screen().modes.alt_screen
            && page.drawn_cursors().any(below)
            && page.drawn_cursors().all(below)
    }

    fn draft(&self, page: &Page) -> String {
        let rows = (self.top + 1..self.bottom)
            .map(|row| skip_columns(page.row(row).typed(), PROMPT_WIDTH));
        let text = join_wrapped(rows, page.cols().saturating_sub(UNUSED_WIDTH));
        let sign = page
            .text(self.top + 1)
            .chars()
            .next()
            .filter(|sign| MODE_SIGNS.contains(sign));
        sign.into_iter().chain(text.trim_end().chars()).collect()
    }

    /// Newer versions list what could be meant above the box.
    fn menu_above(&self, page: &Page) -> bool {
        let first = page
            .above(self.top, |row| page.is_blank(row))
            .map_or(0, |row| row + 1);
        (first..self.top).any(|row| is_menu_row(page.text(row)))
    }

    /// Older versions list it in place of the footer. The panel that `?` opens there names keys and commands, and picks
    /// none.
    fn menu_below(&self, page: &Page) -> bool {
        let mut below = (self.bottom + 1..page.len()).skip_while(|row| page.is_blank(*row));
        let is_panel = |row: usize| page.text(row).trim_start().starts_with(SHORTCUTS);
        below.next().is_some_and(|first| {
            !is_panel(first) && (first..page.len()).any(|row| is_menu_row(page.text(row)))
        })
    }

    /// The oldest versions list files by their bare names.
    fn files_below(&self, page: &Page, draft: &str) -> bool {
        let names_file = draft
            .split_whitespace()
            .next_back()
            .is_some_and(|word| word.starts_with('@'));
        let mut below = (self.bottom + 1..page.len()).filter(|row| !page.is_blank(*row));
        names_file && below.next().is_some_and(|row| is_bare_name(page, row))
    }

    pub(super) fn footer<'a>(&self, page: &Page<'a>) -> Vec<&'a str> {
        (self.bottom + 1..page.len())
            .map(|row| page.text(row))
            .collect()
    }
}

fn begins_with_prompt(text: &str) -> bool {
    let mut chars = text.chars();
    let prompt = chars.next().is_some_and(|c| PROMPTS.contains(&c));
    prompt && chars.next().is_none_or(|c| c.is_whitespace())
}

/// A command (`/model`), a file (`+ src/`) or an agent (`* Plan`), not deeper than a list is indented.
fn is_menu_row(text: &str) -> bool {
    let entry = text.trim_start().trim_start_matches([MARKER, ' ']);
    let command = entry
        .strip_prefix('/')
        .is_some_and(|name| name.starts_with(|c: char| c.is_alphanumeric()));
    let listed = entry.starts_with("+ ") || entry.starts_with("* ");
    text.len() - entry.len() <= 8 && (command || listed)
}

/// One word and nothing else, as no line of the footer is.
fn is_bare_name(page: &Page, row: usize) -> bool {
    page.row(row).indent() == PROMPT_WIDTH && page.text(row).split_whitespace().count() == 1
}

fn skip_columns(text: &str, columns: usize) -> &str {
    let from = text
        .char_indices()
        .nth(columns)
        .map_or(text.len(), |(at, _)| at);
    &text[from..]
}
