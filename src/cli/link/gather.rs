//! What is known about a moment of a slot: its recording, its events, and the audit.

use super::recorded::{PastScreen, screen_at};
use crate::audit::{self, AuditEntry};
use crate::cli::failure::Failure;
use crate::cli::follow::unreadable;
use crate::cli::logs;
use crate::core::cast::Recording;
use crate::core::claude::reading::Dialog;
use crate::core::model::{Event, EventKind};
use crate::core::timeline::{SlotHistory, Wait, Window};
use crate::os::files::{self, LinesFromEnd};
use chrono::{DateTime, TimeDelta, Utc};
use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::path::Path;

/// What is shown before and after the moment.
const AROUND: TimeDelta = TimeDelta::minutes(5);
/// A person who names a minute means the dialog that came up in it.
const A_MINUTE: TimeDelta = TimeDelta::minutes(1);
/// A dialog is drawn after it is known: the screen is taken so much later.
const DRAWN: TimeDelta = TimeDelta::seconds(1);
/// Events, or entries, that a page has at most.
pub const MOST: usize = 300;
/// Changes of state that are held against a recording.
const MOST_TOLD: usize = 100_000;
const LONGEST_LINE: u64 = 1 << 20;
const TEXT_EVENT: &str = "\"event\":\"text\"";

/// A moment of a slot.
pub struct Incident {
    pub slot: String,
    pub at: DateTime<Utc>,
    /// Or why there is none.
    pub screen: Result<PastScreen, String>,
    pub dialog: Option<Dialog>,
    /// Why it was asked, and how it was answered.
    pub wait: Option<Wait>,
    pub events: Vec<Event>,
    pub audit: Vec<AuditEntry>,
    /// What a check of the audit's chain says, and whether it is good.
    pub chain: (String, bool),
}

pub fn incident(
    logs: &Path,
    states: &Path,
    slot: &str,
    at: DateTime<Utc>,
) -> Result<Incident, Failure> {
    let file = logs::file_of(logs, slot, "events.jsonl")?;
    let told = ToldOf::read(&file, at).map_err(|error| unreadable(&file, &error))?;
    let (at, dialog) = moment(&told.around, at);
    let audit = logs.join(audit::FILE);
    Ok(Incident {
        slot: slot.to_owned(),
        at,
        screen: screen(&logs.join(format!("{slot}.cast")), &told.states, at),
        wait: dialog.as_ref().and_then(|_| wait(slot, &told.around, at)),
        dialog,
        events: around(told.around, at),
        audit: entries(&audit, slot, at),
        chain: chain(states, &audit),
    })
}

/// The events of a slot, oldest first.
#[derive(Default)]
struct ToldOf {
    /// Starts and changes of state, as far back as the log goes.
    states: Vec<Event>,
    /// All around the moment but the words of answers, and the last dialog before, which may still be up.
    around: Vec<Event>,
    has_older: bool,
}

impl ToldOf {
    /// From the newest event to the oldest.
    fn read(file: &Path, at: DateTime<Utc>) -> io::Result<ToldOf> {
        let mut told = ToldOf::default();
        for file in files::with_rotated(file)?.into_iter().rev() {
            let lines = LinesFromEnd::new(file, LONGEST_LINE)?;
            let lines = lines.filter(|line| !line.contains(TEXT_EVENT));
            let events = lines.filter_map(|line| serde_json::from_str::<Event>(&line).ok());
            // Later ones do not matter.
            let near = |event: &Event| event.time <= at + AROUND + A_MINUTE;
            events.filter(near).for_each(|event| told.add(event, at));
        }
        told.states.reverse();
        told.around.reverse();
        Ok(told)
    }

    fn add(&mut self, event: Event, at: DateTime<Utc>) {
        let what = &event.what;
        let is_state = matches!(what, EventKind::State { .. } | EventKind::Spawned { .. });
        let of_dialog = matches!(
            what,
            EventKind::Dialog { .. } | EventKind::DialogGone { .. }
        );
        let is_older = event.time < at - AROUND;
        if is_state && self.states.len() < MOST_TOLD {
            self.states.push(event.clone());
        }
        if !is_older || of_dialog && !self.has_older {
            self.has_older |= is_older;
            self.around.push(event);
        }
    }
}

/// The moment that is meant, and the dialog that was up then.
fn moment(events: &[Event], at: DateTime<Utc>) -> (DateTime<Utc>, Option<Dialog>) {
    let mut up: Option<(&Event, &Dialog)> = None;
    for event in events {
        match &event.what {
            _ if event.time > at && up.is_some() => break,
            EventKind::Dialog { dialog } if event.time <= at + A_MINUTE => {
                up = Some((event, dialog))
            }
            EventKind::DialogGone { id } if up.is_some_and(|(_, dialog)| dialog.id == *id) => {
                up = None;
            }
            _ => {}
        }
    }
    let Some((event, dialog)) = up else {
        return (at, None);
    };
    let is_gone =
        |other: &&Event| matches!(&other.what, EventKind::DialogGone { id } if *id == dialog.id);
    let gone = events.iter().find(is_gone).map(|event| event.time);
    let drawn = event.time + DRAWN;
    let shown = at.max(gone.map_or(drawn, |gone| drawn.min(gone)));
    (shown, Some(dialog.clone()))
}

fn wait(slot: &str, events: &[Event], at: DateTime<Utc>) -> Option<Wait> {
    let until = at + AROUND;
    let known = events
        .last()
        .map_or(at, |event| event.time)
        .clamp(at, until);
    // All of a wait counts, also one that began long before.
    let since = events.first()?.time.min(at - AROUND);
    let window = Window {
        since,
        until,
        known,
    };
    let history = SlotHistory::of(slot, events, window);
    let mut waits = history.waits.into_iter();
    waits.find(|wait| wait.begin <= at && wait.end >= at)
}

fn around(mut events: Vec<Event>, at: DateTime<Utc>) -> Vec<Event> {
    events.retain(|event| (event.time - at).abs() <= AROUND);
    nearest(events, |event| event.time, at)
}

/// At most [`MOST`] of them, those nearest to the moment.
fn nearest<T>(mut all: Vec<T>, time: impl Fn(&T) -> DateTime<Utc>, at: DateTime<Utc>) -> Vec<T> {
    let later = all.iter().position(|one| time(one) > at);
    let begin = later.unwrap_or(all.len()).saturating_sub(MOST / 2);
    all.drain(..begin.min(all.len().saturating_sub(1)));
    all.truncate(MOST);
    all
}

/// From the newest file of the recording that begins before the moment.
fn screen(cast: &Path, told: &[Event], at: DateTime<Utc>) -> Result<PastScreen, String> {
    if cast.is_symlink() {
        return Err("the recording is a symbolic link, and none is followed".to_owned());
    }
    let none = || "no recording of that time is kept".to_owned();
    let files = files::with_rotated(cast).map_err(|_| none())?;
    for mut file in files.into_iter().rev() {
        let recording = opened(&file).map_err(|error| error.to_string())?;
        let began = recording.header().timestamp;
        let is_before = |began: u64| i64::try_from(began).is_ok_and(|it| it <= at.timestamp());
        if !began.is_none_or(is_before) {
            continue;
        }
        file.rewind().map_err(|error| error.to_string())?;
        let recording = opened(&file).map_err(|error| error.to_string())?;
        let screen = screen_at(recording, told, at).map_err(|error| error.to_string())?;
        return screen.ok_or_else(none);
    }
    Err(none())
}

fn opened(file: &File) -> Result<Recording<BufReader<&File>>, crate::core::cast::BrokenCast> {
    Recording::read(BufReader::new(file))
}

/// The entries of the slot around the moment; none if there is no audit.
fn entries(audit: &Path, slot: &str, at: DateTime<Utc>) -> Vec<AuditEntry> {
    let files = files::with_rotated(audit).unwrap_or_default();
    let lines = files.into_iter().rev().flat_map(|file| {
        let lines = LinesFromEnd::new(file, LONGEST_LINE);
        lines.into_iter().flatten()
    });
    let entries = lines.filter_map(|line| serde_json::from_str::<AuditEntry>(&line).ok());
    let mut found: Vec<AuditEntry> = entries
        .take_while(|entry| entry.time >= at - AROUND)
        .filter(|entry| entry.time <= at + AROUND && entry.record.slot == slot)
        .collect();
    found.reverse();
    nearest(found, |entry| entry.time, at)
}

fn chain(states: &Path, audit: &Path) -> (String, bool) {
    let heads = audit::KeptHead::heads(states, audit).unwrap_or_default();
    match audit::verify_files(audit, &heads) {
        Err(error) => (format!("The audit can't be read: {error}"), false),
        Ok(Err(broken)) => (format!("The chain of the audit is broken: {broken}"), false),
        Ok(Ok(verified)) => {
            let text = format!(
                "The chain of the audit is unbroken; its head is {}",
                verified.head
            );
            (text, true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::claude::reading::DialogKind;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_225_600 + second, 0).unwrap()
    }

    fn up(second: i64, id: &str) -> Event {
        let dialog = Dialog::new(id, DialogKind::Permission);
        Event {
            time: at(second),
            ..Event::sample(EventKind::Dialog { dialog })
        }
    }

    fn gone(second: i64, id: &str) -> Event {
        let id = id.to_owned();
        Event {
            time: at(second),
            ..Event::sample(EventKind::DialogGone { id })
        }
    }

    #[test]
    fn a_minute_means_the_dialog_that_came_up_in_it() {
        let log = [up(100, "a"), gone(130, "a"), up(200, "b"), up(400, "c")];
        for (asked, shown, dialog) in [
            (110, 110, Some("a")),
            (100, 101, Some("a")),
            (60, 101, Some("a")),
            (30, 30, None),
            (150, 201, Some("b")),
            (300, 300, Some("b")),
            (500, 500, Some("c")),
        ] {
            let (moment, found) = moment(&log, at(asked));
            let found = found.map(|dialog| dialog.id);
            assert_eq!((moment, found.as_deref()), (at(shown), dialog), "{asked}");
        }
        assert_eq!(moment(&[], at(0)), (at(0), None));
    }

    #[test]
    fn a_page_has_what_is_nearest() {
        let seconds = |from: i64, to: i64| (from..to).map(at).collect::<Vec<_>>();
        let of = |all: Vec<DateTime<Utc>>| nearest(all, |time| *time, at(1000));
        let found = of(seconds(0, 5000));
        assert_eq!((found.len(), found[0]), (MOST, at(851)));
        assert_eq!(of(seconds(990, 1010)).len(), 20);
        assert!(of(Vec::new()).is_empty());
    }
}
