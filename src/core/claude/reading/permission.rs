//! Which tool a permission dialog is about, and what it shows of the tool's input.

use super::activity;
use super::called::Called;
use super::dialog::{FoundDialog, is_cut_note};
use super::page::{Joint, Page, has_room, join, join_label, joints};
use super::values::{arguments, no_values, own_input, values};
use crate::core::claude::vocabulary::{
    CALLS, CELL_NOTES, DO_YOU_WANT_TO, GENERIC_TITLE, HIDE_EXPLANATION, OF_AGENT, OF_MCP,
    QUESTIONS, SEARCH, TITLES, UNSEEN_NOTES, USE_SKILL,
};
use serde_json::{Map, Value};
use std::ops::Range;
use unicode_width::UnicodeWidthStr;

pub(super) type Input = Option<Map<String, Value>>;

pub(super) fn tool_and_input(found: &FoundDialog) -> (Option<String>, Input) {
    if found.top().is_none() {
        return asked(found);
    }
    let title = own_title(found.title());
    let known = TITLES
        .iter()
        .filter(|(words, _)| title_is(title, words))
        .max_by_key(|(words, _)| words.len());
    let Some((words, tool)) = known else {
        return match skill(title) {
            Some(name) => (
                Some("Skill".to_owned()),
                one("skill", Some(name.to_owned())),
            ),
            None if title_is(title, GENERIC_TITLE) => called(found),
            None => (None, None),
        };
    };
    let input = match *tool {
        "Bash" | "PowerShell" => one("command", command(found)),
        "WebFetch" => one("url", url(found)),
        "Edit" | "Write" => one("file_path", file_path(found, title, words)),
        "NotebookEdit" => one("notebook_path", file_path(found, title, words)),
        _ => {
            let (named, input) = written_call(found);
            let titled = || input.is_none().then(|| (*tool).to_owned());
            return (named.or_else(titled), input);
        }
    };
    (Some((*tool).to_owned()), input)
}

/// What a dialog whose title is off the screen still tells: its question, or its own words about a command.
fn asked(found: &FoundDialog) -> (Option<String>, Input) {
    let question = found.asked();
    let goes_on = question.strip_prefix(DO_YOU_WANT_TO).unwrap_or_default();
    let known = QUESTIONS
        .iter()
        .find_map(|(words, tool)| Some((goes_on.strip_prefix(words)?, *tool)));
    match known {
        Some((_, "WebFetch")) => (Some("WebFetch".to_owned()), None),
        Some((file, tool)) => {
            let file = file.trim_end_matches('?');
            let (tool, key) = match file.ends_with(".ipynb") {
                true => ("NotebookEdit", "notebook_path"),
                false => (tool, "file_path"),
            };
            (Some(tool.to_owned()), one(key, Some(file.to_owned())))
        }
        None => asked_about_a_call(found),
    }
}

/// The call itself may still be there, or a label names it: `Yes, and don't ask again for demo - look commands in …`.
fn asked_about_a_call(found: &FoundDialog) -> (Option<String>, Input) {
    let block = join_label(indented_block(found).map(|row| found.page().text(row)));
    if let Some(tool) = mcp_tool(&block) {
        return (Some(tool), arguments(&block));
    }
    if dashed(found).is_some() && found.speaks_of_a_command() {
        return (Some("Bash".to_owned()), one("command", command(found)));
    }
    let (tool, input) = written_call(found);
    let labelled = || found.kind_of_commands().and_then(labelled_tool);
    let command = || found.speaks_of_a_command().then(|| "Bash".to_owned());
    (tool.or_else(labelled).or_else(command), input)
}

fn labelled_tool(name: &str) -> Option<String> {
    match name {
        "Web Search" => Some("WebSearch".to_owned()),
        "Task" | "Agent" | "Skill" => Some(name.to_owned()),
        _ => mcp_name(name),
    }
}

/// The skill in `Use skill "NAME"?`.
fn skill(title: &str) -> Option<&str> {
    title.strip_prefix(USE_SKILL)?.strip_suffix("\"?")
}

/// The title without the agent's name. A path that looks like one, behind the title, stays with it.
fn own_title(title: &str) -> &str {
    let is_whole = |own: &str| {
        let known = own == GENERIC_TITLE || TITLES.iter().any(|(words, _)| own == *words);
        known || skill(own).is_some()
    };
    match title.split_once(OF_AGENT) {
        Some((own, name)) if name.ends_with(" agent") && is_whole(own.trim_end()) => own.trim_end(),
        _ => title,
    }
}

/// Whether this is the title of a permission dialog.
pub(super) fn is_title(title: &str) -> bool {
    let title = own_title(title);
    skill(title).is_some()
        || title_is(title, GENERIC_TITLE)
        || TITLES.iter().any(|(words, _)| title_is(title, words))
}

fn title_is(title: &str, words: &str) -> bool {
    title
        .strip_prefix(words)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

fn one(key: &str, value: Option<String>) -> Input {
    value.map(|value| Map::from_iter([(key.to_owned(), Value::from(value))]))
}

/// The row after the values of a call to a tool that names itself: after the second dashed line, or after the name where
/// there are none.
pub(super) fn end_of_values(found: &FoundDialog) -> Option<usize> {
    let named = found
        .body()
        .find(|row| found.page().text(*row).contains(OF_MCP))?;
    let dashes = dashed(found).map_or(named, |rows| rows.end);
    title_is(found.title(), GENERIC_TITLE).then_some(dashes + 1)
}

/// The rows between the two dashed lines, where the dialog has them.
pub(super) fn dashed(found: &FoundDialog) -> Option<Range<usize>> {
    let body = found.body();
    let is_dashed = |row: &usize| found.page().text(*row).starts_with("╌╌╌");
    let mut dashes = body.filter(is_dashed);
    let first = dashes.next()?;
    let last = dashes.next_back()?;
    Some(first + 1..last)
}

/// The command: between the dashed lines, or, in older versions, the plain rows of the indented block
/// below the title, which ends with the description in another colour.
fn command(found: &FoundDialog) -> Option<String> {
    let (page, rows) = (found.page(), command_rows(found));
    let (texts, width) = unindented(page, &rows);
    let command = join(&texts, &command_joints(found, &texts, width));
    let shown = !command.trim().is_empty() && !is_cut_note(&command);
    shown.then(|| command.trim_end().to_owned())
}

/// Whether the rows of a command don't tell what the command is: where two of them meet, a sign in the place of one that
/// can't be shown, or a note that it has characters which are not drawn.
pub(super) fn is_command_doubtful(found: &FoundDialog) -> bool {
    let rows = command_rows(found);
    let (texts, width) = unindented(found.page(), &rows);
    let joints = command_joints(found, &texts, width);
    joints.contains(&Joint::Doubtful)
        || is_overdrawn(found, &rows)
        || texts.iter().any(|text| text.contains(NOT_SHOWN))
        || rows
            .last()
            .is_some_and(|last| has_unseen_note(found, *last))
}

/// Whether the description has been drawn over a row of the command, as some versions do after a resize: they go on
/// counting the rows that the command had before. It has a colour of its own, and a command has none.
fn is_overdrawn(found: &FoundDialog, rows: &[usize]) -> bool {
    let page = found.page();
    let begins_plain = rows.first().is_some_and(|row| !page.row(*row).is_muted());
    let is_drawn_over = |row: &usize| !page.is_blank(*row) && page.row(*row).is_muted();
    let told_by_colour = begins_plain && dashed(found).is_none() && !is_explained(found);
    told_by_colour && rows.iter().any(is_drawn_over)
}

/// Whether the dialog's own words below the command speak of characters that can't be seen.
fn has_unseen_note(found: &FoundDialog, last: usize) -> bool {
    let page = found.page();
    let is_own = |row: &usize| page.row(*row).indent() <= found.title_indent();
    let own = (last + 1..found.body().end).filter(is_own);
    let said = join_label(own.map(|row| page.text(row)));
    UNSEEN_NOTES.iter().any(|note| said.contains(note))
}

/// Stands in the place of a character that can't be shown.
const NOT_SHOWN: char = '\u{fffd}';

/// The joints of the rows of a command. The call stands above the dialog as well, wrapped at other places: what the rows
/// of the dialog don't tell for certain, those may.
fn command_joints(found: &FoundDialog, texts: &[&str], width: usize) -> Vec<Joint> {
    let called = Called::above(found);
    let barred = command_rows(found)
        .first()
        .is_some_and(|row| is_barred(found.page(), *row));
    let signs = |text: &str| text.chars().filter(|c| !c.is_whitespace()).count();
    let mut place = 0;
    let joints = joints(texts, width).into_iter().zip(texts.windows(2));
    joints
        .map(|(joint, pair)| {
            place += signs(pair[0]);
            // Versions with a bar beside the command never show the blank at which they wrap, and others only behind a row
            // that is full: any other row that begins with a blank is a line.
            let shows_blank = !barred && pair[0].width() >= width;
            let joint = match joint {
                Joint::Shown if !shows_blank => Joint::Line,
                joint => joint,
            };
            match has_room(pair[0], pair[1], width) && joint == Joint::Line {
                true => joint,
                false => called.joint_at(texts, place).unwrap_or(joint),
            }
        })
        .collect()
}

fn command_rows(found: &FoundDialog) -> Vec<usize> {
    match dashed(found) {
        Some(rows) => rows.collect(),
        None => command_block(found),
    }
}

/// Whether the command goes on below its first row.
pub(super) fn takes_several_rows(found: &FoundDialog) -> bool {
    command_rows(found).len() > 1
}

/// The rows of the command in the indented block; the description below it has a colour of its own.
fn command_block(found: &FoundDialog) -> Vec<usize> {
    let page = found.page();
    let mut block: Vec<usize> = indented_block(found).collect();
    if block.first().is_some_and(|row| is_barred(page, *row)) {
        block.retain(|row| is_barred(page, *row));
        return block;
    }
    if is_explained(found) {
        // The command is faint then, and what follows it may look like a part of it.
        block.truncate(rows_confirmed_above(found, &block));
        return block;
    }
    let is_description = |row: &usize| page.is_blank(*row) || page.row(*row).is_muted();
    let described = block
        .iter()
        .rev()
        .take_while(|row| is_description(row))
        .count();
    let rest = block.split_off(block.len() - described);
    let told_apart = rest.iter().any(|row| !page.is_blank(*row));
    if !told_apart && page.is_plain() {
        block.truncate(rows_confirmed_above(found, &block));
    }
    block
}

/// Whether an explanation stands below the command: some versions give one on ctrl+e.
fn is_explained(found: &FoundDialog) -> bool {
    let page = found.page();
    let below = found.body().end..page.len();
    below
        .rev()
        .take(3)
        .any(|row| page.text(row).contains(HIDE_EXPLANATION))
}

/// Without any colour the description can't be told from the command. The call stands above the dialog as well,
/// `⎿  $ mkfifo p` or `● Bash(mkfifo p)`: as many rows as it shows there are the command's. Where none of it is
/// found in the last entry nothing is known, and no row is taken.
fn rows_confirmed_above(found: &FoundDialog, block: &[usize]) -> usize {
    let page = found.page();
    let squeezed = |text: &str| -> String { text.chars().filter(|c| !c.is_whitespace()).collect() };
    let top = found.top().unwrap_or(0);
    let last = activity::last_entry(page, top).unwrap_or(top);
    let above: String = (last..top).map(|row| squeezed(page.text(row))).collect();
    let up_to = |count: usize| -> String {
        block[..count]
            .iter()
            .map(|row| squeezed(page.text(*row)))
            .collect()
    };
    let ends = |count: &usize| {
        let command = up_to(*count);
        let shell = above.ends_with(&format!("⎿${command}"));
        let called = above.contains(&format!("Bash({command})"));
        shell || called
    };
    (1..=block.len()).rev().find(ends).unwrap_or(0)
}

/// A value of several rows has a bar along its left side.
pub(super) fn is_barred(page: &Page, row: usize) -> bool {
    page.text(row).trim_start().starts_with('│')
}

/// The rows that are indented further than the title, from the first such row to the next blank one
/// that is followed by something less indented.
pub(super) fn indented_block<'f>(found: &'f FoundDialog) -> impl Iterator<Item = usize> + 'f {
    let page = found.page();
    let title = found.title_indent();
    let deep = move |row: usize| page.row(row).indent() > title;
    let body = found.body();
    let start = body.clone().find(|row| deep(*row)).unwrap_or(body.end);
    (start..body.end).take_while(move |row| deep(*row) || page.is_blank(*row))
}

/// The texts without the indent and the bar that they have in common, and how many columns they had.
fn unindented<'a>(page: &Page<'a>, rows: &[usize]) -> (Vec<&'a str>, usize) {
    let texts: Vec<&str> = rows.iter().map(|row| page.text(*row)).collect();
    if !rows.is_empty() && rows.iter().all(|row| is_barred(page, *row)) {
        let strip = |text: &&'a str| -> &'a str {
            let inner = text.trim_start().strip_prefix('│').unwrap_or_default();
            inner.strip_prefix(' ').unwrap_or(inner)
        };
        let indent = page.row(rows[0]).indent();
        // Below the title the block is set in on its right side too.
        let right = if indent > 1 { 3 } else { 1 };
        return (
            texts.iter().map(strip).collect(),
            page.cols().saturating_sub(indent + 2 + right),
        );
    }
    let filled = rows.iter().filter(|row| !page.is_blank(**row));
    let common = filled.map(|row| page.row(*row).indent()).min().unwrap_or(0);
    let texts = texts
        .iter()
        .map(|text| text.get(common..).unwrap_or_default())
        .collect();
    (texts, page.cols().saturating_sub(common + 3))
}

/// The path behind the title, or in the rows below it, over the lines that frame the change.
fn file_path(found: &FoundDialog, title: &str, words: &str) -> Option<String> {
    let behind = title.strip_prefix(words).unwrap_or_default().trim();
    if !behind.is_empty() {
        // An agent's name that goes on in the next row leaves no telling where the path begins.
        return (!behind.starts_with(OF_AGENT)).then(|| behind.to_owned());
    }
    let page = found.page();
    let body = found.body();
    let below_title = body.clone().filter(|row| !page.is_blank(*row)).nth(1)?;
    let is_border = |row: usize| page.text(row).starts_with(['╭', '╰', '╌']);
    if title != found.title() && is_border(below_title) {
        return None;
    }
    // Without them the change is not drawn yet, and what stands here may be anything.
    body.clone().find(|row| is_border(*row))?;
    let first = (below_title..body.end).find(|row| !is_border(*row))?;
    let goes_on = |row: &usize| {
        let full = page.text(row - 1).width() + MARGIN >= page.cols();
        let note = CELL_NOTES
            .iter()
            .any(|note| page.text(*row).trim().starts_with(note));
        full && !note && !is_border(*row) && !page.is_blank(*row)
    };
    let more = (first + 1..body.end).take_while(goes_on);
    let path: String = std::iter::once(first)
        .chain(more)
        .map(|row| page.text(row).trim())
        .collect();
    (!path.is_empty()).then_some(path)
}

/// Columns at the right side that a wrapped row may leave free.
const MARGIN: usize = 3;

/// The first address in the body, put together again where it was wrapped.
fn url(found: &FoundDialog) -> Option<String> {
    let page = found.page();
    let is_start =
        |row: &usize| page.text(*row).contains("http://") || page.text(*row).contains("https://");
    let row = found.body().find(is_start)?;
    let text = page.text(row);
    let mut address = text[text.find("http")?..].to_owned();
    for next in row + 1..found.body().end {
        let full = page.text(next - 1).width() + MARGIN >= page.cols();
        // A value of several rows has a bar along its left side.
        let text = page.text(next).trim_start_matches(['│', ' ']);
        let other = text.starts_with("Claude wants") || text.starts_with("prompt:");
        if !full || other || address.contains([' ', '"']) {
            break;
        }
        address.push_str(text);
    }
    let end = address.find([' ', '"']).unwrap_or(address.len());
    address.truncate(end);
    Some(address)
}

/// A call as it is written in the body: `Read(/etc/hosts)`, `Web Search("rust")`,
/// `demo - look (MCP)(what: "the sky")`, or, newer, `demo — Look Tool: (MCP)` with its values below.
fn called(found: &FoundDialog) -> (Option<String>, Input) {
    let named = first_paragraph(found);
    match mcp_tool(&named) {
        Some(tool) => {
            let input = arguments(&named).or_else(|| values(found));
            (Some(tool), input.or_else(|| no_values(found, &named)))
        }
        None => written_call(found),
    }
}

/// A call of one of Claude Code's own tools. Which tool searches, Grep or Glob, is not told in words, and often not at all.
fn written_call(found: &FoundDialog) -> (Option<String>, Input) {
    let page = found.page();
    let rows: Vec<usize> = match dashed(found) {
        Some(rows) => rows.collect(),
        None => indented_block(found).collect(),
    };
    let text = join_label(rows.into_iter().map(|row| page.text(row)));
    let Some((name, argument)) = call(&text) else {
        return (None, None);
    };
    let searched = matches!(name, "Grep" | "Glob")
        .then(|| arguments(&text))
        .flatten();
    let of_both = |input: &Map<String, Value>| input.keys().all(|key| OF_GLOB.contains(&&**key));
    let is_either = text.starts_with(SEARCH) && searched.as_ref().is_some_and(of_both);
    let input = searched.or_else(|| own_input(name, argument_name(name), argument));
    ((!is_either).then(|| name.to_owned()), input)
}

/// The parameters of Glob, which Grep has too.
const OF_GLOB: [&str; 2] = ["pattern", "path"];

/// The first rows of text below the title, joined.
fn first_paragraph(found: &FoundDialog) -> String {
    let page = found.page();
    let is_text = |row: &usize| !page.is_blank(*row) && !page.text(*row).starts_with("╌╌╌");
    let body = found.body();
    let start = body.clone().filter(is_text).nth(1).unwrap_or(body.end);
    let rows = (start..body.end).take_while(is_text);
    join_label(rows.map(|row| page.text(row)))
}

/// The name that Claude Code gives to a tool of an MCP server, from `demo - look (MCP)(what: "the sky")`, from
/// `demo - look(what: "the sky") (MCP)` or, newer, from `demo — Look Tool: (MCP)`.
fn mcp_tool(row: &str) -> Option<String> {
    row.contains(OF_MCP).then(|| mcp_name(row)).flatten()
}

fn mcp_name(text: &str) -> Option<String> {
    let (server, rest) = text.split_once(" - ").or_else(|| text.split_once(" — "))?;
    let named = rest.split('(').next().unwrap_or_default().trim();
    let words = named.trim_end_matches("Tool:").split_whitespace();
    let tool = words.map(uncapitalised).collect::<Vec<_>>().join("_");
    let is_name = |name: &str| !name.is_empty() && !name.contains([' ', ':', '"']);
    (is_name(server) && is_name(&tool)).then(|| format!("mcp__{server}__{tool}"))
}

/// `Look` as it was written, `look`; newer versions begin every word of a name with a capital.
fn uncapitalised(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().into_iter().flat_map(char::to_lowercase);
    first.chain(chars).collect()
}

fn call(text: &str) -> Option<(&'static str, &str)> {
    let (start, name) = CALLS.iter().find(|(start, _)| text.starts_with(start))?;
    let argument = text.strip_prefix(start)?.rsplit_once(')')?.0;
    Some((name, argument))
}

fn argument_name(tool: &str) -> &'static str {
    match tool {
        "Read" => "file_path",
        "WebSearch" => "query",
        "Grep" | "Glob" => "pattern",
        "LS" => "path",
        "Skill" => "skill",
        _ => "description",
    }
}
