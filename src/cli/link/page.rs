//! The page of an incident: one HTML file with nothing active in it. Pure.

use super::gather::Incident;
use crate::audit::AuditEntry;
use crate::cli::svg::{escaped, picture};
use crate::cli::table::age;
use crate::cli::{audit, sanitise};
use crate::core::claude::reading::Dialog;
use crate::core::model::{Event, EventKind};
use crate::core::text::{base64, secrets};
use crate::core::timeline::Wait;
use crate::slot::journal::log_lines;
use chrono::{DateTime, Local, Utc};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write;

const STYLE: &str = "\
:root{color-scheme:light dark;--text:#1f2328;--soft:#59636e;--line:#d0d7de;--back:#fff;--card:#f6f8fa;--mark:#9a3412}
@media(prefers-color-scheme:dark){:root{--text:#e6edf3;--soft:#9198a1;--line:#3d444d;--back:#0d1117;--card:#161b22;--mark:#f0883e}}
body{margin:0 auto;max-width:70rem;padding:1.5rem;background:var(--back);color:var(--text);font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.4rem;margin:0}h2{font-size:1.05rem;margin:1.8rem 0 .5rem}p{margin:.3rem 0}.soft{color:var(--soft)}.bad{color:var(--mark);font-weight:600}
svg{max-width:100%;height:auto}
pre,.row{font:13px/1.45 ui-monospace,monospace;white-space:pre-wrap;overflow-wrap:anywhere;margin:0}
pre{background:var(--card);border:1px solid var(--line);border-radius:6px;padding:.7rem}
.frames{display:flex;flex-wrap:wrap;align-items:center;gap:.2rem .3rem}.frames label{font-size:13px;margin-right:.5rem}
.frames input:checked+label{color:var(--mark);font-weight:600}.frames>div{display:none;order:1;width:100%;margin-top:.5rem}
.frames input:checked+label+div{display:block}
.row{border-top:1px solid var(--line);padding:.3rem 0}.near{border-left:4px solid var(--mark);padding-left:.5rem}
";

pub fn html(incident: &Incident) -> String {
    let Incident { slot, at, .. } = incident;
    let title = text(&format!("{slot} at {}", when(*at)));
    let hash = base64::encode(&Sha256::digest(STYLE.as_bytes()));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{hash}'; \
         base-uri 'none'; form-action 'none'\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<h1>{title}</h1>\n<p class=\"soft\">{}. Secrets are masked as far as they are known as such.</p>\n",
        at.format("%Y-%m-%dT%H:%M:%SZ"),
    );
    screen(&mut page, incident);
    asked(&mut page, incident.dialog.as_ref());
    if let Some(wait) = &incident.wait {
        let _ = writeln!(page, "<p>{}</p>", text(&decided(wait)));
    }
    audited(&mut page, incident);
    told(&mut page, &incident.events, *at);
    page + "</body>\n</html>\n"
}

/// Any text as text: without secrets and without characters that can't be seen.
fn text(any: &str) -> String {
    escaped(&sanitise::one_line(&secrets::mask(any)))
}

/// The same with its lines.
fn lines(any: &str) -> String {
    escaped(&sanitise::request(&secrets::mask(any)))
}

fn when(time: DateTime<Utc>) -> String {
    let time = DateTime::<Local>::from(time);
    time.format("%Y-%m-%d %H:%M:%S %:z").to_string()
}

fn heading(page: &mut String, words: &str) {
    let _ = writeln!(page, "<h2>{words}</h2>");
}

/// One screen at a time, chosen by a mark: with the arrow keys one steps through them. No script is needed for that.
fn screen(page: &mut String, incident: &Incident) {
    heading(page, "The screen");
    let frames = match &incident.frames {
        Ok(frames) => frames,
        Err(why) => {
            let _ = writeln!(page, "<p class=\"soft\">{}</p>", text(why));
            return;
        }
    };
    page.push_str("<div class=\"frames\" role=\"radiogroup\" aria-label=\"moments\">\n");
    for (number, frame) in frames.iter().enumerate() {
        let time = DateTime::<Local>::from(frame.at).format("%H:%M:%S");
        let checked = if frame.is_moment { " checked" } else { "" };
        let _ = writeln!(
            page,
            "<input type=\"radio\" name=\"frame\" id=\"f{number}\"{checked}><label for=\"f{number}\">{time} {}</label>\
             <div>{}</div>",
            text(&frame.what),
            picture(&frame.screen.lines, frame.screen.cols, frame.screen.rows)
        );
    }
    page.push_str(
        "</div>\n<p class=\"soft\">Choose a moment, then step with the arrow keys.</p>\n",
    );
}

fn asked(page: &mut String, dialog: Option<&Dialog>) {
    heading(page, "What was asked");
    let Some(dialog) = dialog else {
        page.push_str("<p class=\"soft\">No dialog was up.</p>\n");
        return;
    };
    let tool = dialog.tool.as_deref().unwrap_or("a dialog");
    let _ = writeln!(page, "<p>{}</p>", text(tool));
    for (name, value) in dialog.input.iter().flatten() {
        let value = match value {
            Value::String(value) => value.clone(),
            other => other.to_string(),
        };
        let (name, value) = (text(name), lines(&value));
        let _ = writeln!(page, "<p class=\"soft\">{name}</p><pre>{value}</pre>");
    }
    let labels: Vec<String> = dialog
        .options
        .iter()
        .map(|choice| text(&choice.label))
        .collect();
    let _ = writeln!(page, "<p class=\"soft\">{}</p>", labels.join(" | "));
    if !dialog.complete {
        page.push_str("<p class=\"bad\">Only a part of it was on the screen.</p>\n");
    }
}

/// Why a person was asked, and what became of it.
fn decided(wait: &Wait) -> String {
    let why = match &wait.reason.rule {
        Some(rule) => format!("{} in {}:{}", rule.text, rule.file.display(), rule.line),
        None => wait.reason.why.clone(),
    };
    let after = age(wait.length().num_seconds());
    let answer = match (wait.answer, wait.open) {
        (Some(answer), _) => format!("Answered with {} after {after}", answer.word()),
        (None, true) => format!("Not answered within {after}"),
        (None, false) => format!("Gone after {after} without an answer"),
    };
    format!("Asked because of: {why}. {answer}.")
}

fn audited(page: &mut String, incident: &Incident) {
    heading(page, "What was decided, from the audit");
    for entry in &incident.audit {
        let entered = format!("{}\n{}", audit::shown(entry), head(entry));
        page.push_str(&row(&entered, entry.time, incident.at));
    }
    if incident.audit.is_empty() {
        page.push_str("<p class=\"soft\">Nothing within five minutes.</p>\n");
    }
    let (chain, is_good) = &incident.chain;
    let class = if *is_good { "soft" } else { "bad" };
    let _ = writeln!(page, "<p class=\"{class}\">{}.</p>", text(chain));
    page.push_str(
        "<p class=\"soft\">On the machine: missiond audit verify --head NUMBER:HASH says whether an entry stands in the audit.</p>\n",
    );
}

/// As `audit verify --head` takes it.
fn head(entry: &AuditEntry) -> String {
    format!("{}:{}", entry.seq, entry.hash)
}

fn told(page: &mut String, events: &[Event], at: DateTime<Utc>) {
    heading(page, "What happened around it");
    let shown = events.iter();
    for event in shown.filter(|event| !matches!(event.what, EventKind::Cost { .. })) {
        page.push_str(&row(&log_lines(event), event.time, at));
    }
    if events.is_empty() {
        page.push_str("<p class=\"soft\">Nothing within five minutes.</p>\n");
    }
}

/// A row of a list; those of the moment itself are marked.
fn row(any: &str, time: DateTime<Utc>, at: DateTime<Utc>) -> String {
    let is_near = (time - at).abs().num_seconds() <= 2;
    let class = if is_near { "row near" } else { "row" };
    format!("<p class=\"{class}\">{}</p>\n", lines(any.trim_end()))
}
