//! What is known about a moment of a slot: its events around it, and the file of its recording.

use super::bands::events_file;
use crate::core::cast::{BrokenCast, Recording};
use crate::core::model::{Event, EventKind};
use crate::os::files::{self, LinesFromEnd};
use chrono::{DateTime, TimeDelta, Utc};
use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::path::Path;

/// What is shown before and after a moment.
pub const AROUND: TimeDelta = TimeDelta::minutes(5);
/// A person who names a minute means the dialog that came up in it.
const A_MINUTE: TimeDelta = TimeDelta::minutes(1);
/// Changes of state that are held against a recording.
const MOST_TOLD: usize = 100_000;
/// The longest line that is read: a dialog with everything that fits on a screen is much shorter.
pub const LONGEST_LINE: u64 = 1 << 20;
/// The events that come with each word of an answer: most lines of a log, and of no use here.
const TEXT_EVENT: &str = "\"event\":\"text\"";

/// The events of a slot, oldest first.
#[derive(Default)]
pub struct PastSlot {
    /// Starts and changes of state, as far back as the log goes.
    pub states: Vec<Event>,
    /// All around the moment but the words of answers, and the last dialog before, which may still be up.
    pub around: Vec<Event>,
    has_older: bool,
}

impl PastSlot {
    /// From the newest event to the oldest.
    pub fn read(directory: &Path, slot: &str, at: DateTime<Utc>) -> io::Result<PastSlot> {
        let mut told = PastSlot::default();
        let file = events_file(directory, slot);
        for file in files::with_rotated(&file)?.into_iter().rev() {
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

/// The newest file of the slot's recording that begins before the moment; or why there is none.
pub fn opened_before(
    directory: &Path,
    slot: &str,
    at: DateTime<Utc>,
) -> Result<Recording<BufReader<File>>, String> {
    let cast = directory.join(format!("{slot}.cast"));
    if cast.is_symlink() {
        return Err("the recording is a symbolic link, and none is followed".to_owned());
    }
    let none = || "no recording of that time is kept".to_owned();
    let files = files::with_rotated(&cast).map_err(|_| none())?;
    for mut file in files.into_iter().rev() {
        let began = opened(&file)
            .map_err(|error| error.to_string())?
            .header()
            .timestamp;
        let is_before = |began: u64| i64::try_from(began).is_ok_and(|it| it <= at.timestamp());
        if began.is_none_or(is_before) {
            file.rewind().map_err(|error| error.to_string())?;
            return opened(file).map_err(|error| error.to_string());
        }
    }
    Err(none())
}

fn opened<F: io::Read>(file: F) -> Result<Recording<BufReader<F>>, BrokenCast> {
    Recording::read(BufReader::new(file))
}
