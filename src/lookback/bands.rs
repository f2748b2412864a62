//! The events that a timeline is made of, from the end of each log as far back as they are needed.

use super::LONGEST_LINE;
use crate::config::LOG_LOCK;
use crate::core::model::Event;
use crate::core::settings;
use crate::core::timeline::{Activity, SlotHistory, TimelineReport, Window, needed};
use crate::os::daemon_lock::Holder;
use crate::os::files::{self, LinesFromEnd};
use chrono::{DateTime, Utc};
use std::io;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// The most events of one slot that are kept, about 60 MB: what is older is not known.
const MOST_EVENTS: usize = 200_000;
/// The events that come with each word of an answer: most lines of a log, and of no use here.
const TEXT_EVENT: &str = "\"event\":\"text\"";

/// A log that can't be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}: {error}", file.display())]
pub struct UnreadLog {
    pub file: PathBuf,
    pub error: io::Error,
}

/// What the named slots did, or all that ran in that time.
pub fn report(
    directory: &Path,
    named: &[String],
    since: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Result<TimelineReport, UnreadLog> {
    let mut window = Window {
        since,
        until,
        known: until,
    };
    let slots = match named {
        [] => slots_in(directory),
        named => named.to_vec(),
    };
    let mut logs = Vec::new();
    for slot in slots {
        let events = events_of(directory, &slot, window)?;
        logs.push((slot, events));
    }
    if Holder::living(&directory.join(LOG_LOCK)).is_none() {
        window.known = last_event(directory).unwrap_or(since).clamp(since, until);
    }
    let histories = logs
        .iter()
        .map(|(slot, events)| SlotHistory::of(slot, events, window))
        .filter(|history| !named.is_empty() || ran(history));
    Ok(TimelineReport::of(histories.collect(), window))
}

fn ran(history: &SlotHistory) -> bool {
    let mut spans = history.spans.iter();
    spans.any(|span| !matches!(span.activity, Activity::Down | Activity::Unknown))
}

/// The time of the last event of any slot: a daemon ran then.
fn last_event(directory: &Path) -> Option<DateTime<Utc>> {
    let time = |slot: String| {
        let file = events_file(directory, &slot);
        let line = files::last_line(&mut files::open(&file).ok()?).ok()??;
        Some(serde_json::from_str::<Event>(&line).ok()?.time)
    };
    logged(directory).into_iter().filter_map(time).max()
}

/// The names of all slots and sessions that have a log.
pub fn logged(directory: &Path) -> Vec<String> {
    directory
        .read_dir()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".events.jsonl")?.to_string()))
        .collect()
}

/// The name of a slot has no characters that mean anything in a path.
pub(super) fn events_file(directory: &Path, slot: &str) -> PathBuf {
    directory.join(format!("{slot}.events.jsonl"))
}

/// All slots that have a log; sessions without a name of their own are not looked back at, unless they are named.
fn slots_in(directory: &Path) -> Vec<String> {
    let mut slots = logged(directory);
    slots.retain(|slot| settings::is_name(slot) && Uuid::parse_str(slot).is_err());
    slots.sort();
    slots
}

fn events_of(directory: &Path, slot: &str, window: Window) -> Result<Vec<Event>, UnreadLog> {
    let file = events_file(directory, slot);
    read(&file, window).map_err(|error| UnreadLog { file, error })
}

/// In the order in which they happened.
fn read(file: &Path, window: Window) -> io::Result<Vec<Event>> {
    let mut events = Vec::new();
    'files: for file in files::with_rotated(file)?.into_iter().rev() {
        let lines = LinesFromEnd::new(file, LONGEST_LINE)?;
        for line in lines.filter(|line| !line.contains(TEXT_EVENT)) {
            // A line that is no event is passed over: the log may have been cut.
            let event = serde_json::from_str::<Event>(&line).ok();
            let Some(event) = event.and_then(needed) else {
                continue;
            };
            let is_first = window.begins_after(&event) || events.len() == MOST_EVENTS;
            events.push(event);
            if is_first {
                break 'files;
            }
        }
    }
    events.reverse();
    Ok(events)
}
