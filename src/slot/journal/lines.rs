//! Events as lines for people.

use crate::core::machine::about;
use crate::core::model::{Event, EventKind, NO_ANSWER};
use crate::core::policy::{Decision, RuleRef};
use crate::core::text::secrets;
use chrono::{DateTime, Local, SecondsFormat, Utc};
use std::time::Duration;

/// The event for a person: a timestamp and a line; what has more lines is indented below it.
pub fn log_lines(event: &Event) -> String {
    let time: DateTime<Local> = event.time.into();
    let stamp = time.to_rfc3339_opts(SecondsFormat::Millis, false);
    let (word, text) = words(&event.what);
    let text = secrets::mask(&plain(&text));
    let mut lines = text.trim_end().lines();
    let mut out = format!("{stamp}  {word:<9} {}", lines.next().unwrap_or_default());
    out.truncate(out.trim_end().len());
    out.push('\n');
    for line in lines {
        out.push_str(format!("{:width$}{line}", "", width = INDENT).trim_end());
        out.push('\n');
    }
    out
}

/// The lines of the event in the log for people, if it has any.
pub fn log_lines_of(event: &Event) -> Option<String> {
    match event.what {
        // The answer is logged when it is whole; what it has cost is for programs.
        EventKind::Text { .. } | EventKind::Cost { .. } => None,
        _ => Some(log_lines(event)),
    }
}

/// What happened, and where, in one line for a person who looks on.
pub fn log_summary(event: &Event) -> String {
    let (word, text) = words(&event.what);
    let text = secrets::mask(&plain(&text));
    let first = text.lines().next().unwrap_or_default();
    let time: DateTime<Local> = event.time.into();
    let slot = event.slot.as_deref().unwrap_or("daemon");
    format!("{} {slot}: {word} {first}", time.format("%H:%M:%S"))
}

/// The width of a timestamp and a word, so that further lines stand under the first.
pub(super) const INDENT: usize = 41;

/// No control characters: a log is read on terminals.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\n' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

fn words(what: &EventKind) -> (&'static str, String) {
    match what {
        EventKind::Snapshot { status } => ("snapshot", status.state.name().to_owned()),
        EventKind::Spawned {
            pid,
            session_id,
            resumed,
        } => ("started", spawned(*pid, session_id.as_deref(), *resumed)),
        EventKind::Adopted { pid } => ("adopted", format!("pid {pid}, of an earlier daemon")),
        EventKind::State { from, to } => ("state", format!("{} -> {}", from.name(), to.name())),
        EventKind::Dialog { dialog } => ("dialog", dialog_text(dialog)),
        EventKind::DialogGone { id } => ("dialog", format!("{id} is gone")),
        EventKind::Message { text } => ("message", text.clone()),
        EventKind::Text { text, .. } => ("text", text.clone()),
        EventKind::Answer { text, duration_ms } => ("answer", answered(text, *duration_ms)),
        EventKind::Verdict { .. } => ("verdict", verdict(what)),
        EventKind::Ran { .. } => ("ran", ran(what)),
        EventKind::Key { key, reason } => ("key", format!("{key} — {reason}")),
        EventKind::Failed { text } => ("no answer", text.clone()),
        EventKind::Attached { .. } => ("attached", attached(what)),
        EventKind::Detached { uid } => ("detached", format!("uid {uid}")),
        EventKind::Typing { uid } => ("keyboard", typing(*uid)),
        EventKind::TypingOver => ("keyboard", "free again".to_owned()),
        EventKind::KeyboardTaken { uid, via } => {
            ("keyboard", format!("{via} has taken it (uid {uid})"))
        }
        EventKind::KeyboardLost { via, why, .. } => {
            ("keyboard", format!("{via} has it no more: {why}"))
        }
        EventKind::Interrupted => ("interrupt", "the turn was stopped".to_owned()),
        EventKind::Exit {
            cause, ended_at, ..
        } => ("exit", exit(cause, *ended_at)),
        EventKind::Data { text, .. } => ("data", text.clone()),
        EventKind::Closed { why } => ("closed", why.clone()),
        EventKind::BufferOverflow { kept } => {
            ("overflow", format!("the last {kept} bytes are kept"))
        }
        EventKind::Restart { attempt, delay_ms } => ("restart", restarts(*attempt, *delay_ms)),
        EventKind::Stopped { by } => ("stopped", stopped(by)),
        EventKind::Trouble { cause, text } => ("TROUBLE", format!("{cause}: {text}")),
        EventKind::Cost { dollars, total } => ("cost", cost(*dollars, *total)),
        EventKind::Mode { mode } => ("mode", format!("{mode} again")),
        EventKind::GaveUp { reason } => ("gave up", reason.clone()),
        EventKind::Session { session_id } => ("session", session_id.clone()),
        EventKind::Task { id, state, .. } => ("task", format!("{id} is {}", state.name())),
        EventKind::Config { ok, text } => (if *ok { "config" } else { "BAD CONF" }, text.clone()),
        EventKind::Doubtful { why } => ("DOUBTFUL", why.clone()),
        EventKind::DoubtGone => ("doubt", "the witnesses agree again".to_owned()),
        EventKind::Gap { after, first } => ("GAP", format!("between {after} and {first}")),
        EventKind::Warning { text } => ("WARNING", text.clone()),
    }
}

fn cost(dollars: f64, total: f64) -> String {
    format!("${dollars:.2}, ${total:.2} since its start")
}

fn verdict(what: &EventKind) -> String {
    let EventKind::Verdict {
        tool,
        target,
        verdict,
        rule,
        why,
        by,
        answer,
        agent,
        ..
    } = what
    else {
        return String::new();
    };
    let (word, by) = decided(*verdict, by, answer.as_deref());
    let end = grounds(rule.as_ref(), by, agent.as_deref());
    format!("{word} {tool}: {target} — {why}{end}")
}

fn ran(what: &EventKind) -> String {
    let EventKind::Ran {
        tool,
        target,
        error,
        ..
    } = what
    else {
        return String::new();
    };
    let call = match target.as_str() {
        "" => tool.clone(),
        target => format!("{tool}: {target}"),
    };
    match error {
        Some(error) => format!("{call} — failed: {error}"),
        None => call,
    }
}

fn stopped(by: &str) -> String {
    match by {
        "removal" => "since it is no longer in the config".to_owned(),
        by => format!("by a {by}"),
    }
}

/// What was decided, and by whom. What was left to Claude Code was decided by nobody here, unless the rules allow it: then
/// Claude Code checks it too.
fn decided<'a>(
    verdict: Decision,
    by: &'a str,
    answer: Option<&str>,
) -> (&'static str, Option<&'a str>) {
    match answer {
        Some(NO_ANSWER) if verdict != Decision::Allow => (NO_ANSWER, None),
        _ => (verdict.word(), Some(by)),
    }
}

/// The rule and where it stands, who decided, and for whom.
fn grounds(rule: Option<&RuleRef>, by: Option<&str>, agent: Option<&str>) -> String {
    let place = |rule: &RuleRef| format!(" [{} {}:{}]", rule.text, rule.file.display(), rule.line);
    let by = by.map(|by| format!("by {by}"));
    let agent = agent.map(|agent| format!("for agent {agent}"));
    let who: Vec<String> = by.into_iter().chain(agent).collect();
    let place = rule.map(place).unwrap_or_default();
    match who.is_empty() {
        true => place,
        false => format!("{place} ({})", who.join(", ")),
    }
}

fn answered(text: &str, duration_ms: u64) -> String {
    format!("({}) {text}", seconds(duration_ms))
}

fn restarts(attempt: u32, delay_ms: u64) -> String {
    format!("number {attempt} in {}", seconds(delay_ms))
}

fn attached(what: &EventKind) -> String {
    let EventKind::Attached {
        uid,
        read_only,
        cols,
        rows,
    } = what
    else {
        return String::new();
    };
    let how = if *read_only { ", read-only" } else { "" };
    format!("uid {uid}, {cols}x{rows}{how}")
}

fn typing(uid: u32) -> String {
    format!("uid {uid} types: answers by rule and messages wait")
}

fn spawned(pid: u32, session: Option<&str>, resumed: bool) -> String {
    let how = if resumed { "resumed" } else { "new" };
    match session {
        Some(session) => format!("pid {pid}, {how} session {session}"),
        None => format!("pid {pid}"),
    }
}

fn dialog_text(dialog: &crate::core::claude::reading::Dialog) -> String {
    let labels: Vec<&str> = dialog
        .options
        .iter()
        .map(|choice| choice.label.as_str())
        .collect();
    let cut = if dialog.complete {
        ""
    } else {
        " (not whole on the screen)"
    };
    format!(
        "{}{cut} [{}]\n{}",
        about(dialog),
        dialog.id,
        labels.join(" | ")
    )
}

fn exit(cause: &str, ended_at: Option<DateTime<Utc>>) -> String {
    match ended_at {
        Some(at) => {
            let at = DateTime::<Local>::from(at).to_rfc3339_opts(SecondsFormat::Secs, false);
            format!("{cause} (at {at}, while no daemon ran)")
        }
        None => cause.to_owned(),
    }
}

fn seconds(ms: u64) -> String {
    let whole = Duration::from_secs(ms / 1000);
    match whole.as_secs() {
        0..60 => format!("{:.1}s", ms as f64 / 1000.0),
        _ => humantime::format_duration(whole).to_string(),
    }
}
