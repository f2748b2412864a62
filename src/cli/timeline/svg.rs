//! A timeline as a picture: one self-contained SVG that reads well on a light and on a dark page. What a slot did is told by the
//! height and the pattern of a bar too, not by its colour alone. Pure.

use crate::cli::sanitise;
use crate::cli::svg::escaped;
use crate::cli::table::age;
use crate::cli::timeline::axis_format;
use crate::core::timeline::{Activity, SlotHistory, TimelineReport, Window};
use chrono::{DateTime, Local, TimeDelta, Utc};
use std::fmt::Write;

/// The width of the names, of the bands and of the notes, in pixels.
const NAMES: usize = 130;
const BAND: usize = 900;
const NOTES: usize = 170;
const ROW: usize = 30;
const TOP: usize = 64;

const STYLE: &str = "\
svg{--text:#1f2328;--soft:#656d76;--line:#d0d7de;--back:#ffffff;--works:#54aeff;--waits:#bc4c00;--idle:#8c959f;--down:#8c959f}
@media(prefers-color-scheme:dark){svg{--text:#e6edf3;--soft:#9198a1;--line:#3d444d;--back:#0d1117;--works:#1f6feb;--waits:#f0883e;--idle:#656c76;--down:#656c76}}
.back{fill:var(--back)}text{fill:var(--text);font:13px ui-sans-serif,system-ui,sans-serif}.soft{fill:var(--soft);font-size:12px}
.grid{stroke:var(--line)}.works{fill:var(--works)}.waits{fill:var(--waits)}.idle{fill:var(--idle)}.down{fill:url(#down)}.stripe{stroke:var(--down);stroke-width:2}
";

pub fn picture(report: &TimelineReport) -> String {
    let width = NAMES + BAND + NOTES;
    let height = TOP + report.slots.len() * ROW + 40;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"{}\">\n<style>{STYLE}</style>\n\
         <defs><pattern id=\"down\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
         <line class=\"stripe\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\"/></pattern></defs>\n\
         <rect class=\"back\" width=\"100%\" height=\"100%\"/>\n",
        title(report),
    );
    let _ = writeln!(svg, "<text x=\"12\" y=\"22\">{}</text>", title(report));
    legend(&mut svg);
    axis(&mut svg, report.window, height - 40);
    for (row, slot) in report.slots.iter().enumerate() {
        draw_slot(&mut svg, slot, report.window, TOP + row * ROW);
    }
    svg + "</svg>\n"
}

fn title(report: &TimelineReport) -> String {
    let waiting = &report.waiting;
    format!(
        "{} to {}: people were waited for {} in {} asks",
        time(report.window.since, "%Y-%m-%d %H:%M"),
        time(report.window.until, axis_format(report.window)),
        age(waiting.total.num_seconds()),
        waiting.asks
    )
}

fn time(time: DateTime<Utc>, format: &str) -> String {
    DateTime::<Local>::from(time).format(format).to_string()
}

fn legend(svg: &mut String) {
    let entries = [
        (Activity::Works, "works"),
        (Activity::Waits, "waits for a person"),
        (Activity::Idle, "idle"),
        (Activity::Down, "down"),
    ];
    for (place, (activity, word)) in entries.into_iter().enumerate() {
        let x = NAMES + place * 150;
        bar(svg, activity, (x, 26), 12, word);
        let _ = writeln!(
            svg,
            "<text class=\"soft\" x=\"{}\" y=\"46\">{word}</text>",
            x + 18
        );
    }
}

fn axis(svg: &mut String, window: Window, bottom: usize) {
    const PARTS: usize = 8;
    for part in 0..=PARTS {
        let x = NAMES + BAND * part / PARTS;
        let share = window.length() / 8 * i32::try_from(part).unwrap_or(0);
        let shown = time(window.since + share, axis_format(window));
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x}\" y1=\"{TOP}\" x2=\"{x}\" y2=\"{bottom}\"/>\
             <text class=\"soft\" x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{shown}</text>",
            bottom + 18
        );
    }
}

fn draw_slot(svg: &mut String, slot: &SlotHistory, window: Window, y: usize) {
    let name = escaped(&sanitise::one_line(&slot.slot));
    let _ = writeln!(svg, "<text x=\"12\" y=\"{}\">{name}</text>", y + 20);
    // A cell for each pixel: a log of any length makes a picture of the same size.
    let band = slot.band(window, BAND);
    let mut begin = 0;
    for run in band.chunk_by(|one, other| one == other) {
        let shown = hint(slot, run[0], window, (begin, begin + run.len()));
        bar(svg, run[0], (NAMES + begin, y), run.len(), &shown);
        begin += run.len();
    }
    let waited: TimeDelta = slot.waits.iter().map(|wait| wait.length()).sum();
    let note = match slot.waits.len() {
        0 => String::new(),
        1 => format!("1 ask, {}", age(waited.num_seconds())),
        asks => format!("{asks} asks, {}", age(waited.num_seconds())),
    };
    let (x, y) = (NAMES + BAND + 12, y + 20);
    let _ = writeln!(
        svg,
        "<text class=\"soft\" x=\"{x}\" y=\"{y}\">{note}</text>"
    );
}

/// The words that a browser shows over a part of a band.
fn hint(slot: &SlotHistory, activity: Activity, window: Window, cells: (usize, usize)) -> String {
    let at = |cell: usize| {
        let share = window.length().num_milliseconds() * i64::try_from(cell).unwrap_or(0);
        window.since + TimeDelta::milliseconds(share / i64::try_from(BAND).unwrap_or(1))
    };
    let (begin, end) = (at(cells.0), at(cells.1));
    let mut waits = slot.waits.iter();
    let wait = waits.find(|wait| wait.begin < end && wait.end > begin);
    let about = wait.filter(|_| activity == Activity::Waits);
    let about = about.map_or_else(String::new, |wait| format!(": {}", wait.about));
    let (from, to) = (time(begin, "%H:%M:%S"), time(end, "%H:%M:%S"));
    let words = format!("{} {from} to {to}{about}", activity.name());
    escaped(&sanitise::one_line(&words))
}

/// A part of a band: its height tells what it is.
fn bar(svg: &mut String, activity: Activity, (x, y): (usize, usize), width: usize, hint: &str) {
    let (below, height) = match activity {
        Activity::Waits => (4, 22),
        Activity::Works => (9, 12),
        Activity::Down => (9, 12),
        Activity::Idle => (14, 2),
        Activity::Unknown => return,
    };
    let (class, y) = (activity.name(), y + below);
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"><title>{hint}</title></rect>"
    );
}
