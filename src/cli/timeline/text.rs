//! A timeline for a terminal: shapes, no colours. Pure.

use crate::cli::columns::Columns;
use crate::cli::sanitise;
use crate::cli::table::age;
use crate::cli::timeline::axis_format;
use crate::core::policy::Decision;
use crate::core::timeline::{
    Activity, ReasonCost, SlotHistory, TimelineReport, WaitingTime, Window,
};
use chrono::{DateTime, Local, TimeDelta, Utc};
use comfy_table::Row;
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands behind a band at most.
const NOTE: usize = 22;
/// The longest name that is shown whole.
const NAME: usize = 14;
/// The reasons that are listed; the others are summed up.
const MOST_REASONS: usize = 8;

/// The whole page, with a line end behind each line.
pub fn shown(report: &TimelineReport, width: usize, ascii: bool) -> String {
    let names = report.slots.iter().map(|slot| slot.slot.width());
    let name = names.max().unwrap_or(0).min(NAME);
    let cells = width.saturating_sub(name + NOTE + 5).max(10);
    let mut page = String::new();
    heading(&mut page, report.window, cells, ascii);
    for slot in &report.slots {
        let band = slot.band(report.window, cells);
        let band: String = band.into_iter().map(|cell| mark(cell, ascii)).collect();
        let line = format!(" {}  {band}  {}", padded(&slot.slot, name), note(slot));
        let _ = writeln!(page, "{}", line.trim_end());
    }
    let _ = writeln!(page, " {:name$}  {}\n", "", axis(report.window, cells));
    let _ = writeln!(page, "{}\n", totals(&report.slots, width));
    waiting(&mut page, &report.waiting, width);
    match ascii {
        true => page.replace(|c: char| !c.is_ascii(), "?"),
        false => page,
    }
}

fn mark(activity: Activity, ascii: bool) -> char {
    match (activity, ascii) {
        (Activity::Works, true) => '=',
        (Activity::Works, false) => '░',
        (Activity::Waits, true) => '#',
        (Activity::Waits, false) => '█',
        (Activity::Idle, true) => '.',
        (Activity::Idle, false) => '·',
        (Activity::Down, _) => 'x',
        (Activity::Unknown, _) => ' ',
    }
}

fn heading(page: &mut String, window: Window, cells: usize, ascii: bool) {
    let cells = i32::try_from(cells).unwrap_or(i32::MAX);
    let (length, cell) = (window.length(), window.length() / cells);
    let _ = writeln!(
        page,
        "Who waited for whom, {} to {} ({}, {} a mark)",
        time(window.since, "%Y-%m-%d %H:%M"),
        time(window.until, axis_format(window)),
        age(length.num_seconds()),
        age(cell.num_seconds()),
    );
    let marks = [
        (Activity::Works, "works"),
        (Activity::Waits, "waits for a person"),
        (Activity::Idle, "idle"),
        (Activity::Down, "down"),
    ];
    let marks = marks.map(|(activity, word)| format!("{} {word}", mark(activity, ascii)));
    let _ = writeln!(page, "{}  (blank: not known)\n", marks.join("   "));
}

/// What is worth knowing about a slot beside its band.
fn note(slot: &SlotHistory) -> String {
    let waited: TimeDelta = slot.waits.iter().map(|wait| wait.length()).sum();
    let asks = counted(slot.waits.len(), "ask");
    let denied = slot.waits.iter();
    let denied = denied.filter(|wait| wait.answer == Some(Decision::Deny));
    match (slot.waits.len(), denied.count(), &slot.trouble) {
        (0, _, Some((at, cause))) => fitted(&format!("{cause} {}", clock(*at)), NOTE),
        (0, _, None) if slot.by_rule > 0 => format!("{} by rule", slot.by_rule),
        (0, _, None) => String::new(),
        (_, 0, _) => format!("{asks}, {}", age(waited.num_seconds())),
        (_, no, _) => format!("{asks}, {}, {no} no", age(waited.num_seconds())),
    }
}

/// Times below the bands, as far apart as they need.
fn axis(window: Window, cells: usize) -> String {
    let format = axis_format(window);
    let apart = 2 * time(window.since, format).len() + 4;
    let parts = (cells / apart).max(1);
    let mut line = String::new();
    for part in 0..=parts {
        let at = cells * part / parts;
        let share = TimeDelta::milliseconds(
            window.length().num_milliseconds() / i64::try_from(parts).unwrap_or(1)
                * i64::try_from(part).unwrap_or(0),
        );
        let time = time(window.since + share, format);
        // The last one ends where the bands end.
        let begin = if part == parts {
            cells.saturating_sub(time.len())
        } else {
            at
        };
        line.push_str(&" ".repeat(begin.saturating_sub(line.len())));
        line.push_str(&time);
    }
    line
}

fn totals(slots: &[SlotHistory], width: usize) -> String {
    let columns = Columns {
        header: &[
            "SLOT", "WORKS", "WAITS", "IDLE", "DOWN", "ASKS", "BY RULE", "DENIED",
        ],
        right: &[1, 2, 3, 4, 5, 6, 7],
        gives_way: 0,
    };
    let rows = slots.iter().map(|slot| {
        let total = |activity| length(slot.total(activity));
        let count = |count: u64| match count {
            0 => "-".to_owned(),
            count => count.to_string(),
        };
        Row::from([
            slot.slot.clone(),
            total(Activity::Works),
            total(Activity::Waits),
            total(Activity::Idle),
            total(Activity::Down),
            count(slot.waits.len() as u64),
            count(slot.by_rule),
            count(slot.denied),
        ])
    });
    let table = columns.render(rows, u16::try_from(width).ok());
    anstream::adapter::strip_str(&table).to_string()
}

fn waiting(page: &mut String, waiting: &WaitingTime, width: usize) {
    let Some(longest) = &waiting.longest else {
        let _ = writeln!(page, "Nobody was waited for.");
        return;
    };
    let open = match waiting.open {
        0 => String::new(),
        open => format!(", {open} still open"),
    };
    let _ = writeln!(
        page,
        "People were waited for {} in {}{open}: p50 {}, p95 {}.",
        length(waiting.total),
        counted(waiting.asks, "ask"),
        length(waiting.p50),
        length(waiting.p95),
    );
    let about = sanitise::one_line(&longest.about);
    let (time, took) = (clock(longest.begin), length(longest.length));
    let line = format!("Longest: {took}, {} at {time}, {about}", longest.slot);
    let _ = writeln!(page, "{}\n", fitted(&line, width));
    for cost in waiting.by_reason.iter().take(MOST_REASONS) {
        let _ = writeln!(page, "{}", fitted(&reason(cost), width));
    }
    let others = waiting.by_reason.len().saturating_sub(MOST_REASONS);
    if others > 0 {
        let _ = writeln!(page, "  and {}", counted(others, "other reason"));
    }
    if waiting.by_reason.iter().any(|cost| cost.allowed > 0) {
        let _ = writeln!(
            page,
            "\nRules for what people have allowed: missiond policy suggest"
        );
    }
}

fn reason(cost: &ReasonCost) -> String {
    let answers = [(cost.allowed, "yes"), (cost.denied, "no")];
    let answers = answers.iter().filter(|(count, _)| *count > 0);
    let answers: Vec<String> = answers
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let answers = match answers.is_empty() {
        true => String::new(),
        false => format!("  ({})", answers.join(", ")),
    };
    let why = match &cost.reason.rule {
        Some(rule) => {
            let file = rule.file.file_name().unwrap_or(rule.file.as_os_str());
            format!("{}  {}:{}", rule.text, file.to_string_lossy(), rule.line)
        }
        None => cost.reason.why.clone(),
    };
    format!(
        "{:>7} in {:<7}  {}{answers}",
        length(cost.total),
        counted(cost.asks, "ask"),
        sanitise::one_line(&why),
    )
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

fn length(length: TimeDelta) -> String {
    match length.num_milliseconds() {
        0 => "-".to_owned(),
        1..1000 => "<1s".to_owned(),
        _ => age(length.num_seconds()),
    }
}

fn clock(at: DateTime<Utc>) -> String {
    time(at, "%H:%M")
}

fn time(at: DateTime<Utc>, format: &str) -> String {
    DateTime::<Local>::from(at).format(format).to_string()
}

/// The text in this many columns, cut if it is longer.
fn fitted(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut left = width.saturating_sub(2);
    for c in text.chars() {
        match left.checked_sub(c.width().unwrap_or(0)) {
            Some(rest) => left = rest,
            None => break,
        }
        shown.push(c);
    }
    shown + ".."
}

fn padded(text: &str, width: usize) -> String {
    let shown = fitted(text, width);
    let blanks = width.saturating_sub(shown.width());
    shown + &" ".repeat(blanks)
}
