//! The ask under the cursor, as rows of text. Pure.

use super::draw::columns::fit;
use crate::cli::columns::wrapped;
use crate::cli::{dialog, sanitise, table};
use crate::control::requests::{AlwaysEffect, EarlierAnswer, ExplainAnswer, ExplainedPart};
use crate::core::claude::reading::{Dialog, DialogKind};
use crate::core::model::{SlotStatus, WaitingCall};
use crate::core::policy::{Decision, RuleEffect, RuleRef};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use unicode_width::UnicodeWidthStr;

/// The width of the labels.
pub const INDENT: usize = 8;
/// The width of the line before each row of the request.
pub const GUTTER: usize = 2;

/// What a row is, for its colour. What comes from the slot has a line before it: no request can look like missiond's own
/// text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Request,
    Removed,
    Added,
    Doubt,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardRow {
    /// Stands before the first line of a part.
    pub label: &'static str,
    pub text: String,
    pub tone: Tone,
}

/// What is known of the ask beside its slot's status.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    /// What speaks for and against it, once the daemon has told.
    pub explained: Option<&'a ExplainAnswer>,
    pub now: DateTime<Utc>,
}

/// The width of a part of a command beside its verdict.
const PART_WIDTH: usize = 34;

/// A card: what is asked, whole, and what is said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    pub request: Vec<CardRow>,
    pub about: Vec<CardRow>,
}

impl Tone {
    pub fn is_from_slot(self) -> bool {
        matches!(self, Tone::Request | Tone::Removed | Tone::Added)
    }
}

impl Card {
    /// The card of a slot that asks something, for a panel of this width.
    pub fn of(status: &SlotStatus, arguments: Arguments, width: usize) -> Option<Card> {
        let dialog = status.dialog.as_ref();
        if dialog.is_none() && status.waiting_calls.is_empty() {
            return None;
        }
        let mut request = Rows::new(width);
        if let Some(why) = &status.doubtful {
            request.put("DOUBT", why, Tone::Doubt);
        }
        if let Some(dialog) = dialog {
            request.dialog(dialog);
        }
        for call in &status.waiting_calls {
            request.call(call);
        }
        let mut about = Rows::new(width);
        about.about(status, arguments);
        Some(Card {
            request: request.rows,
            about: about.rows,
        })
    }
}

/// Rows that are wrapped to a width.
struct Rows {
    width: usize,
    rows: Vec<CardRow>,
}

impl Rows {
    fn new(width: usize) -> Rows {
        let width = width.saturating_sub(INDENT + GUTTER).max(10);
        Rows {
            width,
            rows: Vec::new(),
        }
    }

    /// A part with its label; control characters become visible, so that the text can draw nothing itself.
    fn put(&mut self, label: &'static str, text: &str, tone: Tone) {
        let shown = sanitise::request(text);
        let mut label = Some(label);
        for line in shown.lines() {
            for text in wrapped(&line.replace('\t', "    "), self.width) {
                let label = label.take().unwrap_or_default();
                self.rows.push(CardRow { label, text, tone });
            }
        }
    }

    fn dialog(&mut self, dialog: &Dialog) {
        let tool = dialog.tool.as_deref().unwrap_or_default();
        match &dialog.input {
            Some(input) => self.input(tool, input),
            None => self.put("asks", &dialog::question(dialog), Tone::Request),
        }
        if !is_whole(dialog) {
            let text = "the screen shows only a part of it: attach to see all";
            self.put("", text, Tone::Doubt);
        }
        if dialog.kind == DialogKind::Permission {
            return;
        }
        for (index, option) in dialog.options.iter().enumerate() {
            let text = format!("{}  {}", index + 1, dialog::ticked(option));
            let part = if index == 0 { "options" } else { "" };
            self.put(part, &text, Tone::Request);
            if let Some(description) = &option.description {
                self.put("", &format!("   {description}"), Tone::Request);
            }
        }
    }

    fn call(&mut self, call: &WaitingCall) {
        let text = format!(
            "{} waits at the gate, not the one on the screen:",
            call.tool
        );
        self.put("gate", &text, Tone::Doubt);
        if let Some(input) = call.input.as_object() {
            self.input(&call.tool, input);
        }
    }

    /// An edit as what goes and what comes; anything else by the names of its parts.
    fn input(&mut self, tool: &str, input: &Map<String, Value>) {
        self.put("tool", tool, Tone::Plain);
        for (key, value) in input {
            let text = value.as_str().map_or(value.to_string(), str::to_owned);
            match key.as_str() {
                "command" => self.put("runs", &text, Tone::Request),
                "file_path" | "path" => self.put("file", &text, Tone::Request),
                "url" => self.put("url", &text, Tone::Request),
                "old_string" => self.put("", &prefixed("- ", &text), Tone::Removed),
                "new_string" | "content" => self.put("", &prefixed("+ ", &text), Tone::Added),
                _ => self.put("", &format!("{key}: {text}"), Tone::Request),
            }
        }
    }

    fn about(&mut self, status: &SlotStatus, arguments: Arguments) {
        self.put("in", &status.cwd.display().to_string(), Tone::Plain);
        if let Some(why) = &status.waits_because {
            self.put("policy", why, Tone::Plain);
        }
        if let Some(explained) = arguments.explained {
            // A single part says no more than the policy's reason, unless a rule speaks of it.
            let is_worth = |parts: &[ExplainedPart]| match parts {
                [] => false,
                [only] => only.rule.is_some(),
                _ => true,
            };
            if is_worth(&explained.parts) {
                self.parts(&explained.parts);
            }
            self.earlier(explained, arguments.now);
        }
        let is_call = |dialog: &Dialog| dialog.kind == DialogKind::Permission;
        if !status.dialog.as_ref().is_some_and(is_call) {
            return;
        }
        let effect = arguments.explained.and_then(|one| one.always.as_ref());
        self.always(status, effect);
        if let Some(why) = arguments.explained.and_then(|one| one.incomplete.as_ref()) {
            self.put("", why, Tone::Plain);
        }
    }

    /// The verdict stands first in its row: no text of a part can stand in its place.
    fn parts(&mut self, parts: &[ExplainedPart]) {
        for (index, part) in parts.iter().enumerate() {
            let label = if index == 0 { "parts" } else { "" };
            let why = match &part.rule {
                Some(rule) => rule_place(rule),
                None => part.why.clone(),
            };
            let shown = column(&sanitise::one_line(&part.part), PART_WIDTH);
            let text = format!("{:<5}  {shown}  {why}", part.verdict.word());
            self.put(label, &text, Tone::Plain);
        }
    }

    /// How people answered the same request: the newest with its reason, the others in a word each.
    fn earlier(&mut self, explained: &ExplainAnswer, now: DateTime<Utc>) {
        let [newest, older @ ..] = &explained.earlier[..] else {
            return;
        };
        let word = |answer: &EarlierAnswer| {
            let yes = if answer.verdict == Decision::Deny {
                "no"
            } else {
                "yes"
            };
            let age = table::age(now.signed_duration_since(answer.time).num_seconds());
            format!("{yes} {age} ago")
        };
        let via = newest.via.as_deref().unwrap_or("a person");
        let times = match explained.answered {
            1 => "once".to_owned(),
            many => format!("{many} times"),
        };
        let days = explained.days;
        let text = format!(
            "answered {times} in {days} days: {} in {} by {via}: {}",
            word(newest),
            newest.slot,
            newest.why
        );
        self.put("same", &text, Tone::Plain);
        if !older.is_empty() {
            let older: Vec<String> = older.iter().map(word).collect();
            self.put(
                "",
                &format!("before that: {}", older.join(", ")),
                Tone::Plain,
            );
        }
    }

    fn always(&mut self, status: &SlotStatus, effect: Option<&AlwaysEffect>) {
        let always = status.always.as_ref();
        match always.map(|always| (&always.rule, &always.why_not)) {
            Some((Some(rule), _)) => {
                let text = format!("would add to {}.toml: allow {rule}", status.role);
                self.put("always", &text, Tone::Plain);
                if let Some(effect) = effect.and_then(|effect| effect.effect) {
                    self.put("", &with_that(effect), Tone::Plain);
                }
            }
            Some((None, Some(why_not))) => {
                let text = format!("is not possible: {why_not}");
                self.put("always", &text, Tone::Plain);
            }
            _ => {}
        }
    }
}

fn with_that(effect: RuleEffect) -> String {
    format!("with that, {}", effect.shown())
}

/// A rule with its place, such as `Bash(make *)  coder.toml:7`.
fn rule_place(rule: &RuleRef) -> String {
    let file = rule.file.file_name().unwrap_or(rule.file.as_os_str());
    format!("{}  {}:{}", rule.text, file.display(), rule.line)
}

/// A text in a column of this width.
fn column(text: &str, width: usize) -> String {
    let text = fit(text, width);
    let pad = width.saturating_sub(text.width());
    text + &" ".repeat(pad)
}

/// Whether all of it is known: the screen shows it, or the gate does.
pub fn is_whole(dialog: &Dialog) -> bool {
    dialog.complete || dialog.request.is_some()
}

fn prefixed(mark: &str, text: &str) -> String {
    let lines = text.lines().map(|line| format!("{mark}{line}\n"));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    const NOTHING: Arguments = Arguments {
        explained: None,
        now: DateTime::UNIX_EPOCH,
    };

    fn shown(rows: &[CardRow]) -> String {
        let line = |row: &CardRow| format!("{:<8}{}|\n", row.label, row.text);
        rows.iter().map(line).collect()
    }

    #[test]
    fn no_character_of_a_request_is_left_out() {
        let command = "echo 'a very long line' \u{1b}[2J && rm -r target\nsecond";
        let card = Card::of(&sample::asks("coder", command), NOTHING, 30).unwrap();
        insta::assert_snapshot!(shown(&card.request), @r"
        tool    Bash|
        runs    echo 'a very long |
                line' \x1b[2J && rm |
                -r target|
                second|
        ");
    }

    #[test]
    fn a_slot_that_asks_nothing_has_no_card() {
        assert_eq!(Card::of(&sample::idle("coder"), NOTHING, 80), None);
    }
}
