//! Another thread writes the slots' own files behind the event log, so a kill of the daemon leaves them some events behind. The
//! next daemon adds those from the event log, before any slot begins.

use super::{SlotPaths, log_lines_of};
use crate::core::model::Event;
use crate::events::Bus;
use crate::os::files;
use crate::os::log_file::{Cap, LogFile};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// How the name of a slot's file of events ends.
const EVENTS: &str = ".events.jsonl";

/// Adds the events that are missing at the end of the slots' files. `caps` has the slots of the config, whose files are made
/// if they are not there; of others, such as sessions, only what has a file is completed.
///
/// A slot whose files can't be written is left as it is: the slot tells that itself.
pub fn catch_up(
    logs: &Path,
    bus: &Bus,
    caps: &BTreeMap<String, Cap>,
    other: Cap,
) -> io::Result<()> {
    let mut files = BTreeMap::new();
    for entry in logs.read_dir()?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        let slot = name.strip_suffix(EVENTS).filter(|_| is_file);
        if let Some(slot) = slot {
            let cap = caps.get(slot).copied().unwrap_or(other);
            files.extend(SlotFiles::open(logs, slot, cap).map(|files| (slot.to_owned(), files)));
        }
    }
    // One thread writes the events of all slots in their order, so all files lack the same events.
    let Some(last) = files.values().filter_map(|files| files.last).max() else {
        return Ok(());
    };
    files.retain(|_, files| files.complete_log().is_ok());
    let left = match bus.since(last) {
        Ok(left) => left,
        // The logs are older than the state directory.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for event in left.events {
        let Some(slot) = event["slot"].as_str() else {
            continue;
        };
        if let Some(cap) = caps.get(slot).filter(|_| is_missing(logs, slot)) {
            files.extend(SlotFiles::open(logs, slot, *cap).map(|files| (slot.to_owned(), files)));
        }
        let slot = slot.to_owned();
        if files
            .get_mut(&slot)
            .is_some_and(|files| files.add(event).is_err())
        {
            files.remove(&slot);
        }
    }
    Ok(())
}

/// Whether the slot has no file of events yet.
fn is_missing(logs: &Path, slot: &str) -> bool {
    let found = SlotPaths::new(logs, slot).events.symlink_metadata();
    found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// The files of a slot, and what is last in them.
struct SlotFiles {
    paths: SlotPaths,
    log: LogFile,
    events: LogFile,
    last: Option<u64>,
    last_event: Option<Event>,
}

impl SlotFiles {
    fn open(logs: &Path, slot: &str, cap: Cap) -> io::Result<SlotFiles> {
        let paths = SlotPaths::new(logs, slot);
        let line = last_line(&paths.events)?;
        let value = line.and_then(|line| serde_json::from_str::<serde_json::Value>(&line).ok());
        Ok(SlotFiles {
            log: LogFile::new(&paths.log, cap),
            events: LogFile::new(&paths.events, cap),
            paths,
            last: value.as_ref().and_then(|value| value["seq"].as_u64()),
            last_event: value.and_then(|value| serde_json::from_value(value).ok()),
        })
    }

    fn add(&mut self, event: serde_json::Value) -> io::Result<()> {
        self.events.append(&format!("{event}\n"))?;
        // An event of a newer missiond has no line for people.
        let known = serde_json::from_value::<Event>(event);
        let lines = known.ok().and_then(|event| log_lines_of(&event));
        lines.map_or(Ok(()), |lines| self.log.append(&lines))
    }

    /// The line for people is written behind that for programs: it may be missing alone.
    fn complete_log(&mut self) -> io::Result<()> {
        let lines = self.last_event.as_ref().and_then(log_lines_of);
        let Some(lines) = lines else { return Ok(()) };
        // A text of several lines is indented under its first.
        let first = lines.lines().next().unwrap_or_default();
        let there = last_entry(&self.paths.log)?;
        match there.is_some_and(|there| there == first) {
            true => Ok(()),
            false => self.log.append(&lines),
        }
    }
}

fn last_line(path: &Path) -> io::Result<Option<String>> {
    match files::open(path) {
        Ok(mut file) => files::last_line(&mut file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The first line of the last entry of a log for people.
fn last_entry(path: &Path) -> io::Result<Option<String>> {
    const LONGEST: u64 = 1 << 20;
    let file = match files::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut lines = files::LinesFromEnd::new(file, LONGEST)?;
    Ok(lines.find(|line| !line.starts_with(' ')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::model::EventKind;
    use crate::core::settings::Supervision;
    use crate::slot::journal::{Journal, cap_of};
    use std::fs;

    /// Cuts the last lines off.
    fn cut(path: &Path, lines: usize) {
        let text = fs::read_to_string(path).expect("a file");
        let kept = text.lines().count() - lines;
        let kept: String = text.split_inclusive('\n').take(kept).collect();
        fs::write(path, kept).expect("a file");
    }

    fn event(number: usize) -> EventKind {
        match number % 3 {
            0 => EventKind::Text {
                text: format!("text {number}"),
                source: "screen".into(),
            },
            1 => EventKind::Message {
                text: format!("one {number}\ntwo"),
            },
            _ => EventKind::Interrupted,
        }
    }

    /// Wherever the thread stood when the daemon was killed: what is missing is added, and nothing twice.
    #[tokio::test]
    async fn what_a_kill_left_out_of_the_slots_files_is_added() {
        let directory = tempfile::tempdir().expect("a directory");
        let logs = directory.path().join("logs");
        fs::create_dir(&logs).expect("a directory");
        let bus = Bus::open(&directory.path().join("events.jsonl")).expect("a log");
        let cap = cap_of(&Supervision::default());
        let slots = ["a", "b"];
        let caps = BTreeMap::from(slots.map(|slot| (slot.to_owned(), cap)));
        let paths = slots.map(|slot| SlotPaths::new(&logs, slot));
        let journals = paths.clone().map(|paths| Journal::new(&paths, cap));
        for number in 0..24 {
            let at = usize::from(number % 5 == 0);
            let files = journals[at].files();
            bus.publish_to(Some(slots[at]), event(number), Some(files));
        }
        // Of the daemon itself, and of a session that is gone.
        bus.publish(None, EventKind::Interrupted);
        bus.publish(Some("gone"), EventKind::Interrupted);
        bus.settled().await;
        let read = || {
            let all = paths.iter().flat_map(|paths| [&paths.events, &paths.log]);
            all.map(|path| fs::read_to_string(path).expect("a file"))
                .collect::<Vec<_>>()
        };
        let whole = read();
        // The file for programs is ahead of that for people by one line at most.
        for (behind, log_behind) in [
            (0, 0),
            (0, 1),
            (1, 0),
            (1, 1),
            (3, 0),
            (3, 1),
            (9, 0),
            (24, 0),
        ] {
            cut_at(&paths, behind, log_behind);
            catch_up(&logs, &bus, &caps, cap).expect("it can be completed");
            if behind < 24 {
                assert_eq!(read(), whole, "{behind} {log_behind}");
                continue;
            }
            // No slot has a file: somebody removed them, and nothing is made again.
            assert!(!paths[0].events.exists());
        }
        // A state directory that is newer than the logs has no event log yet.
        let begun = Bus::open(&directory.path().join("new.jsonl")).expect("a log");
        fs::write(
            &paths[0].events,
            "{\"event\":\"interrupted\",\"seq\":3,\"slot\":\"a\"}\n",
        )
        .expect("a file");
        catch_up(&logs, &begun, &caps, cap).expect("there is nothing to add");
    }

    /// Leaves the files as a thread does that is so many events behind, with the last line for people missing or not.
    fn cut_at(paths: &[SlotPaths; 2], behind: usize, log_behind: usize) {
        let mut seqs: Vec<(u64, usize)> = Vec::new();
        for (at, paths) in paths.iter().enumerate() {
            let text = fs::read_to_string(&paths.events).expect("a file");
            let seq = |line: &str| {
                let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
                value["seq"].as_u64().expect("a number")
            };
            seqs.extend(text.lines().map(|line| (seq(line), at)));
        }
        seqs.sort_unstable();
        if behind == seqs.len() {
            for path in paths.iter().flat_map(|paths| [&paths.events, &paths.log]) {
                fs::remove_file(path).expect("a file");
            }
            return;
        }
        let log_lines = |line: &str| {
            let event: Event = serde_json::from_str(line).expect("an event");
            log_lines_of(&event).map_or(0, |lines| lines.lines().count())
        };
        let last_line = |at: usize| {
            let text = fs::read_to_string(&paths[at].events).expect("a file");
            text.lines().last().expect("a line").to_owned()
        };
        for (_, at) in seqs.iter().rev().take(behind) {
            cut(&paths[*at].log, log_lines(&last_line(*at)));
            cut(&paths[*at].events, 1);
        }
        if log_behind == 1 {
            let (_, at) = seqs[seqs.len() - behind - 1];
            cut(&paths[at].log, log_lines(&last_line(at)));
        }
    }
}
