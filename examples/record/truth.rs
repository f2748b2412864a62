//! The labels of a recording. They come from the scene, from what the scripted endpoint sent and from the text of the screen,
//! never from the reader that they are there to check.

use crate::scenes::{Mark, Scene};
use anyhow::Result;
use missiond::core::terminal::At;
use missiond::lab::rehearsal::ToolCall;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// What the dialog of a call shows of its input, by key; all else stands in no field of it.
const SHOWN_KEYS: [&str; 10] = [
    "command",
    "file_path",
    "notebook_path",
    "url",
    "query",
    "allowed_domains",
    "blocked_domains",
    "path",
    "pattern",
    "skill",
];

/// The part of a file that a call reads. Newer versions show it beside the path.
const PART_KEYS: [&str; 2] = ["offset", "limit"];
const PART_WORDS: [&str; 2] = [" · lines ", " · from line "];

/// A moment, and what a person sees then.
pub struct Moment {
    pub t: f64,
    pub scene: String,
    pub screen: String,
    truth: Map<String, Value>,
}

impl Moment {
    /// `calls` are the tool calls that the endpoint was given for the turn.
    pub fn new(scene: &Scene, mark: &Mark, now: At, calls: &[ToolCall], screen: String) -> Moment {
        let t = (now.as_secs_f64() * 1000.0).floor() / 1000.0;
        let told = [
            ("t", json!(t)),
            ("note", json!(scene.name)),
            ("state", json!(mark.state)),
            ("draft", json!(mark.draft)),
            ("menu", json!(mark.menu)),
            ("mode", json!(mark.mode)),
            ("background", json!(mark.background)),
            ("error", json!(mark.error)),
        ];
        let told = told.into_iter().filter(|(_, value)| !value.is_null());
        let mut truth: Map<String, Value> =
            told.map(|(key, value)| (key.to_owned(), value)).collect();
        truth.insert("dialog".to_owned(), dialog(mark, calls, &screen));
        Moment {
            t,
            scene: scene.name.clone(),
            screen,
            truth,
        }
    }
}

fn dialog(mark: &Mark, calls: &[ToolCall], screen: &str) -> Value {
    let Some(kind) = &mark.kind else {
        return Value::Null;
    };
    let call = call(mark, calls);
    let tool = mark.tool.as_ref().or(call.map(|call| &call.tool));
    let mut dialog = Map::new();
    dialog.insert("kind".to_owned(), json!(kind));
    if kind == "other" {
        return Value::from(dialog);
    }
    dialog.insert("tool".to_owned(), json!(tool));
    if let Some(target) = mark.target.as_ref().filter(|_| !mark.cut) {
        dialog.insert("target".to_owned(), json!(target));
    }
    if let Some(call) = call {
        dialog.insert("input".to_owned(), shown_input(call, screen));
    }
    let whole = match () {
        () if mark.doubtful => "unknown",
        () if mark.cut => "no",
        () => "yes",
    };
    dialog.insert("whole".to_owned(), json!(whole));
    let (rows, marked) = numbered_rows(screen);
    if !rows.is_empty() {
        dialog.insert("rows".to_owned(), json!(rows));
        dialog.insert("marked".to_owned(), json!(marked));
    }
    Value::from(dialog)
}

/// The call that the dialog asks about: the one with the target of the mark, else the last of its tool.
fn call<'a>(mark: &Mark, calls: &'a [ToolCall]) -> Option<&'a ToolCall> {
    let asks = mark.kind.as_deref() == Some("permission");
    let of_tool = |call: &&ToolCall| mark.tool.as_ref().is_none_or(|tool| *tool == call.tool);
    let mut named = calls.iter().rev().filter(of_tool).filter(|_| asks);
    let target = json!(mark.target);
    let has_target = |call: &&ToolCall| {
        SHOWN_KEYS
            .iter()
            .any(|key| call.input.get(key) == Some(&target))
    };
    named.clone().find(has_target).or_else(|| named.next())
}

fn shown_input(call: &ToolCall, screen: &str) -> Value {
    let all = call.tool.starts_with("mcp__");
    let input = call.input.as_object().cloned().unwrap_or_default();
    let has_part = PART_WORDS.iter().any(|words| screen.contains(words));
    let shown =
        |key: &str| all || SHOWN_KEYS.contains(&key) || has_part && PART_KEYS.contains(&key);
    let kept: Map<String, Value> = input.into_iter().filter(|(key, _)| shown(key)).collect();
    Value::from(kept)
}

/// The texts of the last rows that are numbered from 1 on, and the number of the row with the marker.
fn numbered_rows(screen: &str) -> (Vec<String>, Option<usize>) {
    let (mut rows, mut marked) = (Vec::new(), None);
    for line in screen.lines() {
        let text = line.trim_start_matches([' ', '│', '❯', '>']);
        // Some versions leave out the blank behind the number where a label has no room.
        let numbered = text.split_once('.');
        let is_label = |label: &str| {
            !label.trim().is_empty() && !label.starts_with(|c: char| c.is_ascii_digit())
        };
        let Some((number, label)) = numbered.filter(|(_, label)| is_label(label)) else {
            continue;
        };
        let Ok(number) = number.parse::<usize>() else {
            continue;
        };
        if number == 1 {
            (rows, marked) = (Vec::new(), None);
        }
        if number != rows.len() + 1 {
            continue;
        }
        rows.push(label.trim().to_owned());
        if line.trim_start_matches([' ', '│']).starts_with(['❯', '>']) {
            marked = Some(number);
        }
    }
    (rows, marked)
}

pub fn json(moments: &[Moment]) -> Result<String> {
    let lines: Result<Vec<String>, _> = moments
        .iter()
        .map(|moment| serde_json::to_string(&moment.truth))
        .collect();
    Ok(format!("{{\"moments\": [\n{}\n]}}\n", lines?.join(",\n")))
}

pub fn screens(moments: &[Moment]) -> String {
    let mut text = String::new();
    for moment in moments {
        let truth = Value::from(moment.truth.clone());
        let _ = writeln!(
            text,
            "======== {} {truth}\n{}\n",
            moment.scene, moment.screen
        );
    }
    text
}

/// The recording up to a second after the last moment.
pub fn cut(cast: &str, last: f64) -> String {
    let mut lines = cast.lines();
    let header = lines.next().unwrap_or_default();
    let early = |line: &&str| {
        let event: Option<(f64, Value, Value)> = serde_json::from_str(line).ok();
        event.is_some_and(|(t, code, _)| t <= last + 1.0 && (code == "o" || code == "r"))
    };
    let kept: Vec<&str> = std::iter::once(header).chain(lines.filter(early)).collect();
    kept.join("\n") + "\n"
}
