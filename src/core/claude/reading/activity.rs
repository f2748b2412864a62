//! What Claude Code is doing, from the conversation above the input box.

use super::Seen;
use super::page::{Page, join_label};
use crate::core::claude::vocabulary::{
    BEHIND_ERROR, COMPACTING, ERRORS, INTERRUPTED_CALL, NOT_LOGGED_IN, QUEUED, RETRYING, SEND_NOW,
    WAITING_FOR, WAITING_FOR_PERMISSION,
};

/// Signs that the spinner runs through. A finished turn leaves one of them standing too, with no `…`.
const SPINNER: [char; 10] = ['·', '✢', '✳', '✶', '✻', '✽', '*', '∗', '✺', '✱'];

/// Signs that an entry of the conversation begins with.
pub(super) const BULLETS: [char; 3] = ['●', '⏺', THOUGHT];

/// The sign of a thought that is shown as an entry: `∴ Thinking…`.
const THOUGHT: char = '∴';

/// The sign of a tool's output under its entry.
const OUTPUT: char = '⎿';

/// Rows that are looked through above the input box for the spinner: it stands over a list of tasks
/// or queued messages, which takes a screen at most.
const SPINNER_REACH: usize = 40;

/// Columns that no line of the conversation is indented by.
const ASIDE: usize = 8;

/// The row of the spinner above `end`.
pub(super) fn spinner(page: &Page, end: usize) -> Option<usize> {
    let row = lowest_at_edge(page, end)?;
    is_spinner(page.text(row)).then_some(row)
}

/// The lowest row above `end` that begins at the left edge and is no message.
fn lowest_at_edge(page: &Page, end: usize) -> Option<usize> {
    let from = end.saturating_sub(SPINNER_REACH);
    (from..end).rev().find(|row| {
        let text = page.text(*row);
        !page.is_blank(*row) && page.row(*row).indent() < 2 && !text.starts_with(['❯', '>'])
    })
}

fn is_spinner(text: &str) -> bool {
    let mut chars = text.chars();
    let sign = chars.next().is_some_and(|c| SPINNER.contains(&c)) && chars.next() == Some(' ');
    sign && (text.contains('…') || text.contains(RETRYING))
}

/// The row of the spinner above `end` where it does not move, as for people who want less motion: `● Baking…` in a colour,
/// where an entry of the conversation is plain. Only for a page that is known to be at work: what is said in the
/// conversation may look like it.
pub(super) fn still_spinner(page: &Page, end: usize) -> Option<usize> {
    let row = lowest_at_edge(page, end)?;
    let label = page.text(row).strip_prefix(['●', '⏺'])?.strip_prefix(' ')?;
    let (verb, told) = label.split_once('…')?;
    let only_figures = told.trim().is_empty() || told.starts_with(" (") && !told.contains("ctrl+");
    let coloured = page.row(row).is_coloured_at(2) || page.is_plain() && !verb.contains(' ');
    (only_figures && coloured).then_some(row)
}

/// The row where the queued messages above `end` begin, or `end` if there are none. They are drawn like a message that was
/// sent, but two blank rows part them from what is said before, or there is a hint below the last one.
fn above_queue(page: &Page, end: usize) -> usize {
    let is_parted = |row: usize| row > 1 && page.is_blank(row - 1) && page.is_blank(row - 2);
    let mut first = end;
    while let Some(row) = last_entry(page, first).filter(|row| is_prompt(page.text(*row))) {
        first = row;
        if is_parted(row) {
            return last_entry(page, row).map_or(end, |_| row);
        }
    }
    hinted_queue(page, end).unwrap_or(end)
}

/// The first row of the message with the hint below it.
fn hinted_queue(page: &Page, end: usize) -> Option<usize> {
    let hint = page.above(end, |row| !page.is_blank(row) && !is_notice(page, row))?;
    let first = page.above(hint, |row| row == 0 || page.is_blank(row - 1))?;
    let says = page.text(hint).trim().trim_start_matches(OUTPUT);
    let says = says.trim_start_matches([' ', '\u{a0}']);
    let is_hint = says == SEND_NOW || says.strip_prefix(QUEUED) == Some(SEND_NOW);
    (is_hint && is_prompt(page.text(first))).then_some(first)
}

/// Why a request is tried again, from the spinner in `row`: `✻ 401 invalid x-api-key · Retrying in 4s · attempt 3/10`.
pub(super) fn tried_again<'a>(page: &Page<'a>, row: usize) -> Option<&'a str> {
    let (why, _) = page.text(row).split_once("· Retrying in")?;
    Some(why.trim_start_matches(SPINNER).trim())
}

/// `✻ Baked for 8s · done 1:02 AM`, which stays where a turn was over.
fn ends_turn(text: &str) -> bool {
    text.starts_with(SPINNER) && text.contains(" for ") && !is_spinner(text)
}

/// What is being done, given that something is: told by the spinner in row `end`, or by the last entry above it.
pub(super) fn busy(page: &Page, end: usize) -> Seen {
    if says_thinking(page.text(end)) && !is_call_pending(page, end) {
        return Seen::Thinking;
    }
    let end = above_queue(page, end);
    let Some(head) = last_entry(page, end) else {
        return beyond_the_screen(page, end);
    };
    if is_prompt(page.text(head)) && is_call_pending(page, head) {
        // A message that waits until the call has run.
        return Seen::ToolRunning;
    }
    let output = (head..end)
        .rev()
        .find(|row| page.text(*row).trim_start().starts_with(OUTPUT));
    match output {
        // The next one has begun, and its message is not drawn yet.
        _ if (head..end).any(|row| ends_turn(page.text(row))) => Seen::Thinking,
        Some(output) if is_running(page, output, end) => Seen::ToolRunning,
        Some(_) => Seen::Thinking,
        None if is_prompt(page.text(head)) || page.text(head).starts_with(THOUGHT) => {
            Seen::Thinking
        }
        None if is_bullet(page.text(head)) && !is_call(page.text(head)) => Seen::Responding,
        None => Seen::ToolRunning,
    }
}

/// `✽ Crafting… (2s · thinking)`; what was thought before stands there as `thought for 2s`.
fn says_thinking(text: &str) -> bool {
    let told = text.split_once('(').map_or("", |(_, told)| told);
    is_spinner(text)
        && told
            .split(['(', ')', '·'])
            .any(|part| part.trim().starts_with("thinking"))
}

/// The last entry begins above the screen. Text is indented by its bullet, output and changes further.
fn beyond_the_screen(page: &Page, end: usize) -> Seen {
    let last = page.above(end, |row| !page.is_blank(row) && !is_notice(page, row));
    match last {
        Some(row) if page.row(row).indent() == 2 && !page.row(row).is_muted() => Seen::Responding,
        _ => Seen::Thinking,
    }
}

/// A notice stands at the right margin above the input box: `◐ medium · /effort`.
pub(super) fn is_notice(page: &Page, row: usize) -> bool {
    page.row(row).indent() > page.cols() / 2
}

/// Whether the entry in row `head` is a call, with what came of it right below.
pub(super) fn has_output(page: &Page, head: usize) -> bool {
    let next = (head + 1..page.len()).find(|row| is_output(page, *row) || page.is_blank(*row));
    next.is_some_and(|row| is_output(page, row))
}

pub(super) fn is_output(page: &Page, row: usize) -> bool {
    page.text(row).trim_start().starts_with(OUTPUT)
}

/// The first row of the last entry: the sign in the first column blinks for a running tool, so an entry
/// also begins after a blank row where a call is.
pub(super) fn last_entry(page: &Page, end: usize) -> Option<usize> {
    page.above(end, |row| {
        let text = page.text(row);
        is_bullet(text) || is_prompt(text) || is_call_without_bullet(page, row)
    })
}

pub(super) fn is_bullet(text: &str) -> bool {
    text.starts_with(BULLETS)
}

pub(super) fn is_prompt(text: &str) -> bool {
    text.starts_with(['❯', '>', '!', '#'])
}

/// `  Bash(sleep 5)` or `  Ran 1 shell command`, the sign in front of it being off.
fn is_call_without_bullet(page: &Page, row: usize) -> bool {
    let text = page.text(row);
    page.row(row).indent() == 2
        && row > 0
        && page.is_blank(row - 1)
        && page.text(row + 1).trim_start().starts_with(OUTPUT)
        && !text.trim_start().starts_with(OUTPUT)
}

/// `● Calling demo…`, `● Reading 3 files… (ctrl+o to expand)`, `● Fetch(https://…)`.
fn is_call(text: &str) -> bool {
    let entry = text.trim_start_matches(BULLETS).trim();
    let name = entry.split('(').next().unwrap_or_default();
    let named = !name.is_empty()
        && name.len() < entry.len()
        && name.starts_with(char::is_uppercase)
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || " _-".contains(c))
        && !name.ends_with(' ');
    named || entry.ends_with('…') || entry.contains("… (ctrl+")
}

/// Whether the last entry above row `end` is a call that has neither run nor been refused. For a moment
/// before its dialog comes up nothing else tells that work goes on.
pub(super) fn is_call_pending(page: &Page, end: usize) -> bool {
    let Some(head) = last_entry(page, end) else {
        return false;
    };
    let rows = || (head..end).rev();
    if rows().any(|row| page.text(row).trim() == WAITING_FOR_PERMISSION) {
        return true;
    }
    let output = rows().find(|row| page.text(*row).trim_start().starts_with(OUTPUT));
    // What a call shows stands right below it. A row of that look further down is a text that was written.
    let apart = output.is_some_and(|output| (head..output).any(|row| page.is_blank(row)));
    // Drawn again, a call that was refused shows its command last.
    let refused = rows().any(|row| output_text(page, row).starts_with(INTERRUPTED_CALL));
    let waits = output
        .map(|row| output_text(page, row))
        .is_some_and(|text| text.starts_with("$ ") || matches!(text, "Running…" | "Waiting…"));
    waits && !apart && !refused && !is_prompt(page.text(head))
}

fn output_text<'a>(page: &Page<'a>, row: usize) -> &'a str {
    page.text(row)
        .trim_start()
        .trim_start_matches([OUTPUT, ' ', '\u{a0}'])
}

/// A call whose output is not there yet: `Running…`, `$ the command`, `(ctrl+b to run in background)`.
fn is_running(page: &Page, output: usize, end: usize) -> bool {
    let text = output_text(page, output);
    let waiting = text.starts_with("$ ") || text.ends_with('…') || text.contains("… (");
    waiting || (output..end).any(|row| page.text(row).contains("ctrl+b"))
}

/// The error that the last entry above row `end` shows, its rows joined.
pub(super) fn last_error(page: &Page, end: usize) -> Option<String> {
    let start = page.above(end, |row| {
        is_bullet(page.text(row)) || is_prompt(page.text(row))
    })?;
    let strip = |row: usize| {
        page.text(row)
            .trim_start_matches([' ', '\u{a0}', OUTPUT])
            .trim_start_matches(BULLETS)
    };
    let first = (start..end).find(|row| is_error(strip(*row).trim()))?;
    let rows = (first..end)
        .take_while(|row| !page.is_blank(*row) && (*row == first || page.row(*row).indent() >= 2));
    Some(join_label(rows.map(strip)))
}

/// `Not logged in · Run /login` at the right margin, right above the input box in row `top`. Nothing that is said in
/// the conversation begins so far to the right.
pub(super) fn login_notice(page: &Page, top: usize) -> Option<String> {
    let row = top.checked_sub(1)?;
    let text = page.text(row).trim();
    let aside = page.row(row).indent() >= ASIDE;
    (aside && text.starts_with(NOT_LOGGED_IN)).then(|| text.to_owned())
}

fn is_error(text: &str) -> bool {
    ERRORS.iter().any(|error| text.starts_with(error)) || text.contains(BEHIND_ERROR)
}

/// Whether the spinner in `row` says that the conversation is being made shorter.
pub(super) fn is_compacting(page: &Page, row: usize) -> bool {
    page.text(row).to_lowercase().contains(COMPACTING)
}

/// How many agents the last entry above row `end` waits for: `✻ Waiting for 1 background agent to finish`.
pub(super) fn background(page: &Page, end: usize) -> u32 {
    let row = page.above(end, |row| !page.is_blank(row) && page.row(row).indent() < 2);
    let text = row.map_or("", |row| page.text(row));
    let waiting = text
        .trim_start_matches(SPINNER)
        .trim()
        .strip_prefix(WAITING_FOR);
    let count = waiting
        .filter(|rest| rest.contains("background"))
        .and_then(|rest| rest.split(' ').next());
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}
