//! Dialogs, menus and views that hold the keyboard.

use super::options::{DialogOptions, goes_on};
use super::page::{Page, join_label};
use super::permission;
use super::values;
use super::{Dialog, DialogKind};
use crate::core::claude::vocabulary::{
    ABOUT_TOOL, API_KEY, CUT_NOTES, DO_YOU_WANT, ENTER_TO_SELECT, KEY_HINTS, MORE_LINES,
    NO_API_KEY, NO_TRUST, OF_COMMANDS, PLAN_TITLES, PROCEED, TRUST_TITLES,
};
use serde_json::{Map, Value};
use unicode_width::UnicodeWidthStr;

/// Columns at the right side that a pane leaves free.
const EDGE: usize = 4;

/// A dialog as it stands on the page.
pub(super) struct FoundDialog<'a, 'p> {
    page: &'p Page<'a>,
    /// The row of its head; `None` if it has scrolled off.
    top: Option<usize>,
    options: Option<DialogOptions>,
}

impl<'a, 'p> FoundDialog<'a, 'p> {
    pub(super) fn page(&self) -> &'p Page<'a> {
        self.page
    }

    pub(super) fn top(&self) -> Option<usize> {
        self.top
    }

    /// What holds the keyboard on a page that has no input box, where that can be told.
    pub(super) fn find(page: &'p Page<'a>) -> Option<FoundDialog<'a, 'p>> {
        let found = FoundDialog::view(page);
        let panel = found.top.is_some_and(|top| page.is_lid(top));
        let takes_keys = panel || has_key_hint(page, page.len().saturating_sub(3));
        (found.options.is_some() || takes_keys).then_some(found)
    }

    /// The page as a dialog, menu or view, given that it is one.
    pub(super) fn view(page: &'p Page<'a>) -> FoundDialog<'a, 'p> {
        let options = DialogOptions::find(page).filter(|options| is_alive(page, options));
        let top = head(page, options.as_ref());
        let found = FoundDialog { page, top, options };
        FoundDialog {
            top: found.whole_head(),
            ..found
        }
    }

    /// The page as a view of which nothing is known but that it takes the keys.
    pub(super) fn unknown(page: &'p Page<'a>) -> FoundDialog<'a, 'p> {
        let view = FoundDialog::view(page);
        let below =
            || DialogOptions::find_below_prompts(page).filter(|options| is_alive(page, options));
        match view.options {
            Some(_) => view,
            None => FoundDialog {
                options: below(),
                ..view
            },
        }
    }

    /// The page as a question that is asked before the program is up. Nothing but the program draws then, so that a list
    /// needs no further sign.
    pub(super) fn at_start(page: &'p Page<'a>) -> FoundDialog<'a, 'p> {
        let view = FoundDialog::unknown(page);
        let options = view.options.or_else(|| DialogOptions::find(page));
        FoundDialog { options, ..view }
    }

    /// Whether the cursor is parked on the marker.
    pub(super) fn has_the_cursor(&self) -> bool {
        let cursor = self.page.screen().cursor;
        let at = (cursor.row, cursor.col);
        self.options
            .as_ref()
            .is_some_and(|options| options.marker() == at)
    }

    /// A rule may stand between a plan and its choices: then the plan's own head is further up, or off the page.
    fn whole_head(&self) -> Option<usize> {
        let is_plan = |top: usize| {
            let title = self.title_row_below(top);
            title.is_some_and(|row| is_plan_title(self.page.text(row).trim()))
        };
        let top = self.top?;
        if !self.asks_about_a_plan() || is_plan(top) {
            return Some(top);
        }
        let is_its_head = |row| self.page.is_head(row) && is_plan(row);
        self.page.above(top, is_its_head)
    }

    /// The rows between the head and the choices.
    pub(super) fn body(&self) -> std::ops::Range<usize> {
        let start = self.top.map_or(0, |top| top + 1);
        let end = self
            .options
            .as_ref()
            .map_or(self.page.len(), |options| options.first());
        start.min(end)..end
    }

    pub(super) fn dialog(&self) -> Dialog {
        let body_text = join_label(self.body().map(|row| self.page.text(row)));
        let kind = self.kind();
        let (tool, input) = self.tool_and_input(kind);
        let is_command = input
            .as_ref()
            .is_some_and(|input| input.contains_key("command"));
        // A call whose input could not be read is not known, whatever its title says.
        let unread = kind == DialogKind::Permission && tool.is_some() && input.is_none();
        let doubtful =
            is_command && permission::is_command_doubtful(self) || values::has_wrapped_value(self);
        Dialog {
            tool,
            input,
            text: self.text(),
            options: self
                .options
                .as_ref()
                .map(|options| options.choices().to_vec())
                .unwrap_or_default(),
            selected: self.options.as_ref().and_then(|options| options.selected()),
            complete: !unread && !doubtful && self.is_complete(kind, &body_text),
            several_rows: is_command && permission::takes_several_rows(self),
            digits: self
                .options
                .as_ref()
                .map(|options| options.digits())
                .unwrap_or_default(),
            ..Dialog::new("", kind)
        }
    }

    /// Told by the title and the labels, which are Claude Code's own words. The body quotes the model,
    /// and may say anything.
    fn kind(&self) -> DialogKind {
        let Some(options) = &self.options else {
            return DialogKind::Other;
        };
        let has = |label: &str| options.choices().iter().any(|choice| choice.label == label);
        let title = self.title();
        match () {
            () if self.is_question() => DialogKind::Question,
            () if permission::is_title(title) && self.asks_permission() => DialogKind::Permission,
            () if title.contains(API_KEY) && has(NO_API_KEY) => DialogKind::ApiKey,
            () if is_trust_title(title) && has(NO_TRUST) => DialogKind::Trust,
            () if is_plan_title(title) => DialogKind::Plan,
            () if has("Yes") && self.asks_permission() => DialogKind::Permission,
            () if self.asks_about_a_plan() => DialogKind::Plan,
            () => DialogKind::Other,
        }
    }

    /// The first row of text below the head.
    pub(super) fn title(&self) -> &'a str {
        self.title_row()
            .map_or("", |row| self.page.text(row).trim())
    }

    /// How far the title is indented, and everything that the dialog says in its own words.
    pub(super) fn title_indent(&self) -> usize {
        self.title_row()
            .map_or(1, |row| self.page.row(row).indent())
    }

    /// A panel may have a line of its own first.
    fn title_row(&self) -> Option<usize> {
        self.title_row_below(self.top?)
    }

    fn title_row_below(&self, top: usize) -> Option<usize> {
        let is_text = |row: &usize| self.page.text(*row).trim().contains(|c| c != '─');
        (top + 1..self.page.len()).find(is_text)
    }

    /// A question of the model: chips with the headers below the head, and choices in the first column,
    /// where no other dialog has them.
    fn is_question(&self) -> bool {
        let chips = has_chips(self.title());
        let first_column = self
            .options
            .as_ref()
            .is_some_and(|options| options.marker().1 == 0);
        first_column
            && (chips
                || has_text(
                    self.page,
                    self.page.len().saturating_sub(3),
                    ENTER_TO_SELECT,
                ))
    }

    /// The row above the choices asks for leave, in the dialog's own words and indent.
    fn asks_permission(&self) -> bool {
        let Some(options) = &self.options else {
            return false;
        };
        let question = self
            .page
            .above(options.first(), |row| !self.page.is_blank(row));
        let text = question.map_or("", |row| self.page.text(row).trim());
        options.marker().1 > 0 && (text.starts_with(DO_YOU_WANT) || text.ends_with('?'))
    }

    /// Whether the paragraph above the choices ends as that of a plan does.
    fn asks_about_a_plan(&self) -> bool {
        let Some(options) = &self.options else {
            return false;
        };
        let page = self.page;
        let blank = |row: usize| page.is_blank(row);
        let last = page.above(options.first(), |row| !blank(row)).unwrap_or(0);
        let start = page.above(last, blank).map_or(0, |row| row + 1);
        let question = join_label((start..=last).map(|row| page.text(row)));
        options.marker().1 > 0 && question.ends_with(PROCEED)
    }

    /// The question above the choices, its rows joined.
    pub(super) fn asked(&self) -> String {
        let page = self.page;
        let end = self.body().end;
        let begins = |row| page.text(row).trim_start().starts_with(DO_YOU_WANT);
        let start = page.above(end, begins).unwrap_or(end);
        join_label((start..end).map(|row| page.text(row)))
    }

    /// Whether the words of the dialog itself, which stand below what it shows, or a label name a command.
    pub(super) fn speaks_of_a_command(&self) -> bool {
        let Some(options) = &self.options else {
            return false;
        };
        let page = self.page;
        let shown = |row: usize| {
            page.text(row).starts_with("╌╌╌") || page.row(row).indent() > options.marker().1
        };
        let own = page.above(options.first(), shown).map_or(0, |row| row + 1);
        let told = (own..options.first()).any(|row| page.text(row).contains("command"));
        let mut labels = options.choices().iter().map(|choice| choice.label.as_str());
        told || labels.any(|label| OF_COMMANDS.iter().any(|text| label.contains(text)))
    }

    /// Which commands a label would allow from now on: `Yes, and don't ask again for Web Search commands in …`.
    pub(super) fn kind_of_commands(&self) -> Option<&str> {
        let choices = self.options.as_ref()?.choices();
        choices.iter().find_map(|choice| {
            let (_, rest) = choice.label.split_once("ask again for ")?;
            Some(rest.split_once(" commands in ")?.0)
        })
    }

    fn tool_and_input(&self, kind: DialogKind) -> (Option<String>, Option<Map<String, Value>>) {
        match kind {
            DialogKind::Question => (Some("AskUserQuestion".to_owned()), self.question()),
            DialogKind::Plan => (Some("ExitPlanMode".to_owned()), None),
            DialogKind::Permission => permission::tool_and_input(self),
            DialogKind::Trust | DialogKind::ApiKey | DialogKind::Other => (None, None),
        }
    }

    /// The question itself: what stands between the chips and the choices.
    fn question(&self) -> Option<Map<String, Value>> {
        let body = self.body();
        let first = body.clone().find(|row| !self.page.is_blank(*row))?;
        let whole = self.top.is_some() || has_chips(self.page.text(first));
        let start = first + usize::from(whole);
        let rows = (start..body.end).map(|row| self.page.text(row).trim_start_matches(['│', ' ']));
        let question = join_label(rows);
        (!question.is_empty())
            .then(|| Map::from_iter([("question".to_owned(), Value::from(question))]))
    }

    fn text(&self) -> String {
        let start = self.top.map_or(0, |top| top + 1);
        let rows: Vec<&str> = (start..self.page.len())
            .map(|row| self.page.text(row).trim_end())
            .collect();
        rows.join("\n").trim_matches('\n').to_owned()
    }

    fn is_complete(&self, kind: DialogKind, body: &str) -> bool {
        let whole_list = self.options.as_ref().is_none_or(|options| {
            let marked = options.selected().is_some() || options.choices().is_empty();
            options.is_whole() && marked
        });
        let cut = is_cut_note(body)
            || self.is_drawn_for_another_size()
            || self.scrolls()
            || self.has_more(kind)
            || kind == DialogKind::Permission && self.is_cut();
        self.top.is_some() && whole_list && !cut
    }

    /// Whether a list or view goes on beyond what is shown. What a dialog quotes above its choices is no note of it.
    fn has_more(&self, kind: DialogKind) -> bool {
        let options = self.options.as_ref();
        let from = match (kind, options) {
            (DialogKind::Other, _) | (_, None) => self.top.unwrap_or(0),
            (_, Some(options)) => options.first(),
        };
        let col = options.map(|options| options.marker().1);
        let shown = options.map_or(0, |options| options.choices().len());
        let counts_more = kind == DialogKind::Other && counted(self.title()) > Some(shown);
        counts_more || (from..self.page.len()).any(|row| goes_on(self.page.text(row), col))
    }

    /// Whether the terminal had to wrap a row above the choices. Claude Code wraps its rows by itself: this one was drawn for
    /// a terminal with more columns.
    fn is_drawn_for_another_size(&self) -> bool {
        let from = self.top.unwrap_or(0);
        (from..self.body().end).any(|row| self.page.is_wrapped(row))
    }

    /// A pane that holds more than it shows has an arrow at its right edge.
    fn scrolls(&self) -> bool {
        self.body().any(|row| {
            let text = self.page.text(row);
            let arrow = text.ends_with(" ↓") || text.ends_with(" ↑");
            arrow && text.width() + EDGE >= self.page.cols()
        })
    }

    /// The row below the values of a call where what is said about its tool begins, which is often cut: it is no part of
    /// what is asked.
    fn said_about_tool(&self) -> Option<usize> {
        let below_values = permission::end_of_values(self)?;
        let page = self.page;
        // Beside the values, which the model has written, it is known by the bar along what is said; the last such row is
        // Claude Code's own.
        let is_apart = |row: usize| page.is_blank(row - 1) && permission::is_barred(page, row + 1);
        (below_values..self.body().end).rev().find(|row| {
            let text = page.text(*row);
            let deeper = page.row(*row).indent().checked_sub(self.title_indent());
            let own_words = deeper == Some(0) || deeper == Some(2) && is_apart(*row);
            own_words && text.trim().starts_with(ABOUT_TOOL) && text.ends_with("Tool:")
        })
    }

    /// `… +12 lines`, or a row that was cut at its end.
    fn is_cut(&self) -> bool {
        let body = self.body();
        let end = self.said_about_tool().unwrap_or(body.end);
        (body.start..end).any(|row| {
            let text = self.page.text(row).trim();
            text.starts_with('…') || text.ends_with('…') || text.contains(MORE_LINES)
        })
    }
}

/// The number of all in `Resume session (1 of 17)`.
fn counted(title: &str) -> Option<usize> {
    let (_, count) = title.rsplit_once(" of ")?;
    count.strip_suffix(')')?.parse().ok()
}

/// The rule or lid over the choices; in a box, the box's own.
fn head(page: &Page, options: Option<&DialogOptions>) -> Option<usize> {
    let (from, boxed) = match options {
        Some(options) => (options.first(), page.row(options.first()).is_boxed()),
        // With nothing below it, a rule is the head of nothing.
        None => (page.len().saturating_sub(1), false),
    };
    page.above(from, |row| {
        if boxed {
            page.is_lid(row)
        } else {
            page.is_head(row)
        }
    })
}

/// Choices that take keys: at the end of the page, but for a few rows that say what the keys do.
fn is_alive(page: &Page, options: &DialogOptions) -> bool {
    let below = (options.end()..page.len())
        .filter(|row| !page.is_blank(*row))
        .count();
    let conversation =
        (options.end()..page.len()).any(|row| page.text(row).starts_with(['●', '⏺']));
    !conversation && (below <= 3 || has_key_hint(page, page.len().saturating_sub(3)))
}

pub(super) fn has_key_hint(page: &Page, from: usize) -> bool {
    (from..page.len()).any(|row| {
        let text = page.text(row).to_lowercase();
        KEY_HINTS.iter().any(|hint| text.contains(hint))
    })
}

fn has_text(page: &Page, from: usize, text: &str) -> bool {
    (from..page.len()).any(|row| page.text(row).contains(text))
}

/// Whether a text says that something could not be shown.
pub(super) fn is_cut_note(text: &str) -> bool {
    CUT_NOTES.iter().any(|note| text.contains(note))
}

/// The headers of the model's questions, each with a tick.
fn has_chips(text: &str) -> bool {
    text.trim_start_matches(['←', ' '])
        .starts_with(['☐', '☒', '✔'])
}

fn is_trust_title(title: &str) -> bool {
    TRUST_TITLES.iter().any(|known| title.starts_with(known))
}

fn is_plan_title(title: &str) -> bool {
    PLAN_TITLES.iter().any(|known| title.starts_with(known))
}
