//! The screen at a time of the day, from a recording. Recorded time stands still while nothing is recorded, so it is held against
//! the log of the slot, which has the time of the day of each start and of each change of state. Pure.

use crate::core::cast::{BrokenCast, CastKind, Recording};
use crate::core::model::{Event, EventKind};
use crate::core::terminal::{At, FRAME_TIMEOUT, Terminal};
use crate::core::text::secrets;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use std::io::BufRead;

/// The marks of a recording may lack a few states, such as one that was over at once.
const LOOK_AHEAD: usize = 8;

/// A screen, with colours as escape sequences and without secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PastScreen {
    pub cols: usize,
    pub rows: usize,
    pub lines: Vec<String>,
}

/// Says what time of the day a recorded time was.
struct DayClock<'a> {
    /// Starts and changes of state, in order.
    told: &'a [Event],
    /// What of these is behind.
    next: usize,
    offset: Option<TimeDelta>,
}

impl DayClock<'_> {
    fn time(&self, at: At) -> Option<DateTime<Utc>> {
        let at = TimeDelta::from_std(at).ok()?;
        Some(DateTime::UNIX_EPOCH + self.offset? + at)
    }

    fn set(&mut self, at: At, time: DateTime<Utc>) {
        let at = TimeDelta::from_std(at).ok();
        self.offset = at.map(|at| time - DateTime::UNIX_EPOCH - at);
    }

    /// The recording has this mark: `start PID`, or the name of a state.
    fn mark(&mut self, at: At, mark: &str) {
        let rest = &self.told[self.next..];
        let found = match mark.strip_prefix("start ") {
            Some(pid) => rest.iter().position(|event| {
                matches!(&event.what, EventKind::Spawned { pid: found, .. } if found.to_string() == pid)
            }),
            None => rest.iter().take(LOOK_AHEAD).position(|event| {
                matches!(&event.what, EventKind::State { to, .. } if to.name() == mark)
            }),
        };
        if let Some(place) = found {
            self.set(at, rest[place].time);
            self.next += place + 1;
        }
    }
}

/// The screens at these times, in order; `None` for one before the recording. The times are in order.
pub fn screens_at<R: BufRead>(
    recording: Recording<R>,
    told: &[Event],
    times: &[DateTime<Utc>],
) -> Result<Vec<Option<PastScreen>>, BrokenCast> {
    let header = recording.header().clone();
    let begin = header.timestamp.and_then(|secs| i64::try_from(secs).ok());
    let begin = begin.and_then(|secs| DateTime::from_timestamp(secs, 0));
    let is_later = |event: &Event| begin.is_none_or(|begin| event.time >= begin);
    let mut clock = DayClock {
        told,
        next: told.iter().position(is_later).unwrap_or(told.len()),
        offset: None,
    };
    let mut terminal = Terminal::new(header.cols, header.rows);
    let (mut last, mut is_drawn) = (At::ZERO, false);
    let mut screens = Vec::new();
    for event in recording {
        let event = event?;
        if let (None, Some(begin)) = (clock.offset, begin) {
            clock.set(event.at, begin);
        }
        if let CastKind::Marker(mark) = &event.what {
            clock.mark(event.at, mark);
        }
        let now = clock.time(event.at);
        while now.is_some_and(|now| times.get(screens.len()).is_some_and(|time| now > *time)) {
            // What was drawn is whole if nothing came soon after it.
            terminal.quiet(last.saturating_add(FRAME_TIMEOUT).min(event.at));
            screens.push(is_drawn.then(|| shown(&terminal)));
        }
        if screens.len() == times.len() {
            return Ok(screens);
        }
        last = event.at;
        is_drawn = true;
        match &event.what {
            CastKind::Resize { cols, rows } => drop(terminal.resize(event.at, *cols, *rows)),
            what if what.begins_a_run() => {
                let (cols, rows) = terminal.size();
                terminal = Terminal::new(cols, rows);
            }
            _ => terminal.skim(event.at, event.written()),
        }
    }
    terminal.quiet(last.saturating_add(FRAME_TIMEOUT));
    while screens.len() < times.len() {
        screens.push(is_drawn.then(|| shown(&terminal)));
    }
    Ok(screens)
}

/// A row with a secret in it has no colours.
fn shown(terminal: &Terminal) -> PastScreen {
    let (cols, rows) = terminal.size();
    let lines = terminal.styled_lines();
    let plain: Vec<String> = lines
        .iter()
        .map(|line| anstream::adapter::strip_str(line).to_string())
        .collect();
    let masked = secrets::mask_rows(&plain);
    let lines = lines.into_iter().zip(plain).zip(masked);
    let lines = lines.map(|((styled, plain), masked)| match plain == masked {
        true => styled,
        false => masked,
    });
    PastScreen {
        cols,
        rows,
        lines: lines.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::cast::{event_line, header_line};
    use serde_json::{Value, json};
    use std::time::Duration;

    const BEGIN: i64 = 1_767_225_600;

    fn time(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(BEGIN + second, 0).unwrap()
    }

    fn told(second: i64, what: &Value) -> Event {
        let mut event = json!({"seq": 1, "time": time(second), "slot": "a"});
        let fields = event.as_object_mut().unwrap();
        fields.extend(what.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    fn state(second: i64, to: &str) -> Event {
        told(second, &json!({"event": "state", "from": "idle", "to": to}))
    }

    fn spawned(second: i64, pid: u32) -> Event {
        let what = json!({"event": "spawned", "pid": pid, "session_id": null, "resumed": false});
        told(second, &what)
    }

    fn cast(events: &[(u64, char, &str)]) -> String {
        let lines = events
            .iter()
            .map(|(at, code, data)| event_line(Duration::from_secs(*at), *code, data));
        let header = header_line(60, 2, BEGIN.unsigned_abs(), "a");
        header + &lines.collect::<String>()
    }

    fn first_line(cast: &str, told: &[Event], second: i64) -> Option<String> {
        let recording = Recording::read(cast.as_bytes()).unwrap();
        let screens = screens_at(recording, told, &[time(second)]).unwrap();
        let screen = screens.into_iter().next().unwrap()?;
        Some(screen.lines[0].trim_end().to_owned())
    }

    #[test]
    fn recorded_time_is_held_against_the_log() {
        // A night lies between the runs, and an hour of standstill in the second one; the recording has neither.
        let cast = cast(&[
            (0, 'm', "start 7"),
            (1, 'o', "one"),
            (2, 'm', "start 8"),
            (3, 'o', "two"),
            (4, 'm', "idle"),
            (5, 'm', "thinking"),
            (6, 'o', "\r\u{1b}[Kthree"),
            (7, 'm', "idle"),
            (8, 'o', "\r\u{1b}[Kfour"),
        ]);
        let log = [
            spawned(0, 7),
            state(2, "exited"),
            spawned(30_000, 8),
            state(30_002, "idle"),
            state(33_600, "thinking"),
            state(33_601, "tool_running"),
            state(33_700, "idle"),
        ];
        let at = |second| first_line(&cast, &log, second).unwrap();
        assert_eq!((at(1), at(29_999)), ("one".to_owned(), "one".to_owned()));
        assert_eq!(
            (at(30_001), at(33_500)),
            ("two".to_owned(), "two".to_owned())
        );
        assert_eq!(
            (at(33_601), at(33_699)),
            ("three".to_owned(), "three".to_owned())
        );
        assert_eq!(at(40_000), "four");
        assert_eq!(first_line(&cast, &log, -1), None, "before the recording");
        // Without a log the recording's own time is all that is known.
        assert_eq!(first_line(&cast, &[], 6).as_deref(), Some("three"));
    }

    #[test]
    fn several_screens_come_from_one_reading() {
        let cast = cast(&[
            (1, 'o', "one"),
            (3, 'o', "\r\u{1b}[Ktwo"),
            // A frame that comes in two parts.
            (5, 'o', "\u{1b}[?2026h\r\u{1b}[Kthr"),
            (6, 'o', "ee\u{1b}[?2026l"),
        ]);
        // The first event is the beginning, at second 0.
        let times = [-1, 0, 1, 1, 2, 3, 5, 60].map(time);
        let recording = Recording::read(cast.as_bytes()).unwrap();
        let screens = screens_at(recording, &[], &times).unwrap();
        let lines = screens.iter().map(|screen| {
            let screen = screen.as_ref()?;
            Some(screen.lines[0].trim_end())
        });
        let lines: Vec<Option<&str>> = lines.collect();
        let [one, two, three] = ["one", "two", "three"].map(Some);
        assert_eq!(lines, [None, one, one, one, two, two, three, three]);
    }

    #[test]
    fn secrets_are_masked_and_the_rest_keeps_its_colours() {
        let cast = cast(&[(
            1,
            'o',
            "\u{1b}[31mred\u{1b}[m\r\nkey \u{1b}[1mghp_abcdefghijklmnopqrstuvwxyz0123456789",
        )]);
        let recording = Recording::read(cast.as_bytes()).unwrap();
        let screens = screens_at(recording, &[], &[time(9)]).unwrap();
        let screen = screens[0].clone().unwrap();
        assert!(screen.lines[0].contains("\u{1b}["), "{screen:?}");
        assert!(
            !screen.lines.concat().contains("efghijklmnop"),
            "{screen:?}"
        );
    }
}
