//! What is known about a moment of a slot: its recording, its events, and the audit.

use crate::audit::{self, AuditEntry};
use crate::cli::failure::Failure;
use crate::cli::follow::unreadable;
use crate::cli::logs;
use crate::core::claude::reading::Dialog;
use crate::core::model::{Event, EventKind};
use crate::core::timeline::{SlotHistory, Wait, Window};
use crate::lookback::{self, AROUND, LONGEST_LINE, PastScreen, PastSlot, screens_at};
use crate::os::files::{self, LinesFromEnd};
use chrono::{DateTime, TimeDelta, Utc};
use std::path::Path;

/// A person who names a minute means the dialog that came up in it.
const A_MINUTE: TimeDelta = TimeDelta::minutes(1);
/// A dialog is drawn after it is known: the screen is taken so much later.
const DRAWN: TimeDelta = TimeDelta::seconds(1);
/// Screens that a page has at most: each may have 50 kB.
const MOST_FRAMES: usize = 40;
/// Events, or entries, that a page has at most.
pub const MOST: usize = 300;

/// A moment of a slot.
pub struct Incident {
    pub slot: String,
    pub at: DateTime<Utc>,
    /// The screens around it in order, or why there are none.
    pub frames: Result<Vec<PastFrame>, String>,
    pub dialog: Option<Dialog>,
    /// Why it was asked, and how it was answered.
    pub wait: Option<Wait>,
    pub events: Vec<Event>,
    pub audit: Vec<AuditEntry>,
    /// What a check of the audit's chain says, and whether it is good.
    pub chain: (String, bool),
}

/// The screen at one moment, and what had happened just before.
pub struct PastFrame {
    pub at: DateTime<Utc>,
    pub what: String,
    pub screen: PastScreen,
    /// It is the moment that the page is about.
    pub is_moment: bool,
}

pub fn incident(
    logs: &Path,
    states: &Path,
    slot: &str,
    at: DateTime<Utc>,
) -> Result<Incident, Failure> {
    let file = logs::file_of(logs, slot, "events.jsonl")?;
    let told = PastSlot::read(logs, slot, at).map_err(|error| unreadable(&file, &error))?;
    let (at, dialog) = moment(&told.around, at);
    let audit = logs.join(audit::FILE);
    Ok(Incident {
        slot: slot.to_owned(),
        at,
        frames: frames(logs, slot, &told, at),
        wait: dialog.as_ref().and_then(|_| wait(slot, &told.around, at)),
        dialog,
        events: around(told.around, at),
        audit: entries(&audit, slot, at),
        chain: chain(states, &audit),
    })
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
    nearest(events, |event| event.time, at, MOST)
}

/// At most `most` of them, those nearest to the moment.
fn nearest<T>(
    mut all: Vec<T>,
    time: impl Fn(&T) -> DateTime<Utc>,
    at: DateTime<Utc>,
    most: usize,
) -> Vec<T> {
    let later = all.iter().position(|one| time(one) > at);
    let begin = later.unwrap_or(all.len()).saturating_sub(most / 2);
    all.drain(..begin.min(all.len().saturating_sub(1)));
    all.truncate(most);
    all
}

/// The screen at the moment, and after each thing that happened around it and may be seen there.
fn frames(
    logs: &Path,
    slot: &str,
    told: &PastSlot,
    at: DateTime<Utc>,
) -> Result<Vec<PastFrame>, String> {
    let recording = lookback::opened_before(logs, slot, at)?;
    let steps = steps(&told.around, at);
    let times: Vec<DateTime<Utc>> = steps.iter().map(|step| step.screen).collect();
    let screens = screens_at(recording, &told.states, &times).map_err(|error| error.to_string())?;
    let frames = steps.into_iter().zip(screens).filter_map(|(step, screen)| {
        Some(PastFrame {
            at: step.at,
            what: step.what,
            screen: screen?,
            is_moment: step.is_moment,
        })
    });
    let frames: Vec<PastFrame> = frames.collect();
    match frames.iter().any(|frame| frame.is_moment) {
        true => Ok(frames),
        false => Err("no recording of that time is kept".to_owned()),
    }
}

/// A moment whose screen is wanted.
struct ScreenStep {
    at: DateTime<Utc>,
    /// When its effect is drawn.
    screen: DateTime<Utc>,
    what: String,
    is_moment: bool,
}

fn steps(events: &[Event], at: DateTime<Utc>) -> Vec<ScreenStep> {
    let near = events
        .iter()
        .filter(|event| (event.time - at).abs() <= AROUND);
    let seen = near.filter_map(|event| Some((event.time, seen_as(&event.what)?)));
    let seen = nearest(seen.collect(), |(time, _)| *time, at, MOST_FRAMES - 1);
    let mut steps: Vec<ScreenStep> = seen
        .into_iter()
        .map(|(time, what)| ScreenStep {
            at: time,
            screen: time + DRAWN,
            what,
            is_moment: false,
        })
        .collect();
    let later = steps.iter().position(|step| step.at > at);
    let moment = ScreenStep {
        at,
        screen: at,
        what: "the moment".to_owned(),
        is_moment: true,
    };
    steps.insert(later.unwrap_or(steps.len()), moment);
    // What comes next may have drawn over it, and times are in order.
    for index in (0..steps.len().saturating_sub(1)).rev() {
        steps[index].screen = steps[index].screen.min(steps[index + 1].screen);
    }
    steps
}

/// What changes the screen, in a few words.
fn seen_as(what: &EventKind) -> Option<String> {
    Some(match what {
        EventKind::State { to, .. } => to.name().to_owned(),
        EventKind::Dialog { dialog } => {
            format!("asks {}", dialog.tool.as_deref().unwrap_or("something"))
        }
        EventKind::DialogGone { .. } => "dialog gone".to_owned(),
        EventKind::Message { .. } => "message".to_owned(),
        EventKind::Key { key, .. } => format!("key {key}"),
        EventKind::Ran { tool, .. } => format!("ran {tool}"),
        EventKind::Interrupted => "interrupted".to_owned(),
        EventKind::Exit { .. } => "exit".to_owned(),
        EventKind::Spawned { .. } => "started".to_owned(),
        _ => return None,
    })
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
    nearest(found, |entry| entry.time, at, MOST)
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
    fn there_is_a_step_for_each_thing_that_is_seen() {
        let log = [up(100, "a"), gone(100, "a"), up(160, "b"), gone(170, "b")];
        let steps = steps(&log, at(165));
        let told: Vec<(i64, i64, &str)> = steps
            .iter()
            .map(|step| {
                let second = |time: DateTime<Utc>| (time - at(0)).num_seconds();
                (second(step.at), second(step.screen), step.what.as_str())
            })
            .collect();
        assert_eq!(
            told,
            [
                (100, 101, "asks something"),
                (100, 101, "dialog gone"),
                (160, 161, "asks something"),
                (165, 165, "the moment"),
                (170, 171, "dialog gone"),
            ]
        );
        let many: Vec<Event> = (0..500).map(|second| up(second, "a")).collect();
        let steps = super::steps(&many, at(200));
        assert_eq!(steps.len(), MOST_FRAMES);
        assert!(steps.is_sorted_by_key(|step| (step.at, step.screen)));
        assert!(steps.iter().any(|step| step.is_moment));
    }

    #[test]
    fn a_page_has_what_is_nearest() {
        let seconds = |from: i64, to: i64| (from..to).map(at).collect::<Vec<_>>();
        let of = |all: Vec<DateTime<Utc>>| nearest(all, |time| *time, at(1000), MOST);
        let found = of(seconds(0, 5000));
        assert_eq!((found.len(), found[0]), (MOST, at(851)));
        assert_eq!(of(seconds(990, 1010)).len(), 20);
        assert!(of(Vec::new()).is_empty());
    }
}
