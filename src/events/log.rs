//! The event log: the events of all slots and of the daemon, one JSON line each, in two files of a bounded size.

use crate::core::model::{Event, EventKind};
use crate::os::files::{self, LinesFromEnd};
use crate::os::log_file::{Cap, LogFile};
use chrono::Utc;
use serde::Deserialize;
use serde_json::Value;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Lines};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Together 16 MiB: about the last 50,000 events. A client that was away for longer gets a gap.
const CAP: Cap = Cap {
    bytes: 8 << 20,
    files: 2,
};
/// A number of 64 bits in decimal digits, with leading zeros: overwriting it needs no more room on the disk.
const DIGITS: usize = 20;

#[derive(Debug)]
pub(super) struct EventLog {
    file: LogFile,
}

/// A file with the last used event number, for the case that the log could not be written: no number is used twice. The
/// file has its final size from the beginning, so that it can be overwritten on a full disk.
#[derive(Debug)]
pub(super) struct Position(File);

impl EventLog {
    /// Opens the log. The result has its position, and the number of the last event of all earlier daemons.
    pub fn open(path: &Path) -> io::Result<(EventLog, Position, u64)> {
        let position = open_position(&position_of(path))?;
        let last = match last_in(path)?.max(read_position(&position)) {
            0 => origin(),
            last => last,
        };
        let position = Position(position);
        position.keep(last)?;
        let file = LogFile::new(path, CAP);
        Ok((EventLog { file }, position, last))
    }

    /// Writes an event. When this returns, the kernel has it, so it survives this process.
    pub fn append(&mut self, json: &str) -> io::Result<()> {
        self.file.append(&format!("{json}\n"))
    }
}

impl Position {
    /// Marks all numbers up to this one as used.
    pub fn keep(&self, last: u64) -> io::Result<()> {
        self.0
            .write_all_at(format!("{last:0DIGITS$}\n").as_bytes(), 0)
    }
}

/// The number before the first one of a new log: the milliseconds since 1970. So no number is used twice even if a log
/// and its position were removed, since a daemon publishes fewer than a thousand events in a second.
fn origin() -> u64 {
    Utc::now().timestamp_millis().try_into().unwrap_or(0)
}

fn position_of(path: &Path) -> PathBuf {
    path.with_extension("position")
}

fn open_position(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(0o600);
    options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options.open(path).map_err(files::unfollowed)
}

fn read_position(file: &File) -> u64 {
    let mut digits = [0; DIGITS];
    let read = file.read_exact_at(&mut digits, 0);
    let text = read.ok().and_then(|()| std::str::from_utf8(&digits).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[derive(Deserialize)]
struct Numbered {
    seq: u64,
}

fn number(line: &str) -> Option<u64> {
    let numbered: Numbered = serde_json::from_str(line).ok()?;
    Some(numbered.seq)
}

/// The number in the last whole line of the newest file that has one.
fn last_in(path: &Path) -> io::Result<u64> {
    let files = match files::with_rotated(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        found => found?,
    };
    for mut file in files.into_iter().rev() {
        let line = files::last_line(&mut file)?;
        if let Some(number) = line.as_deref().and_then(number) {
            return Ok(number);
        }
    }
    Ok(0)
}

/// The kept events after a position, in order.
#[derive(Debug, Default)]
pub struct EventsSince {
    pub events: Vec<Value>,
    /// No event after the position is missing.
    pub is_whole: bool,
}

impl EventsSince {
    /// Reads from the end of the log, since these are its last events.
    pub(super) fn read(path: &Path, after: u64) -> io::Result<EventsSince> {
        let mut since = EventsSince::default();
        let mut first = None;
        let newest_first = files::with_rotated(path)?.into_iter().rev();
        for file in newest_first {
            for line in LinesFromEnd::new(file, CAP.bytes)? {
                match number(&line) {
                    Some(seq) if seq <= after => {
                        since.is_whole = true;
                        since.events.reverse();
                        return Ok(since);
                    }
                    Some(seq) => first = Some(seq),
                    None => continue,
                }
                since.events.extend(serde_json::from_str::<Value>(&line));
            }
        }
        since.is_whole = first == Some(after + 1);
        since.events.reverse();
        Ok(since)
    }
}

/// The kept events after a position, in order. Missing events among them are reported as an [`EventKind::Gap`].
pub struct EventReplay {
    files: VecDeque<File>,
    lines: Option<Lines<BufReader<File>>>,
    /// The last number that was returned; 0 for all kept events.
    at: u64,
    until: u64,
    /// An event that was read already, and is returned after a gap.
    next: Option<(u64, Value)>,
}

impl EventReplay {
    pub(super) fn new(path: Option<Arc<Path>>, after: u64, until: u64) -> EventReplay {
        // A file that can't be read is missing, and reported as a gap.
        let files = path.and_then(|path| files::with_rotated(&path).ok());
        EventReplay {
            files: files.unwrap_or_default().into(),
            lines: None,
            at: after,
            until,
            next: None,
        }
    }

    /// The next event in the log after the last one.
    fn read(&mut self) -> Option<(u64, Value)> {
        loop {
            let Some(lines) = &mut self.lines else {
                let file = self.files.pop_front()?;
                self.lines = Some(BufReader::new(file).lines());
                continue;
            };
            let Some(Ok(line)) = lines.next() else {
                self.lines = None;
                continue;
            };
            let Some(seq) = number(&line).filter(|seq| *seq > self.at) else {
                continue;
            };
            if seq > self.until {
                return None;
            }
            if let Ok(event) = serde_json::from_str(&line) {
                return Some((seq, event));
            }
        }
    }

    fn gap(&mut self, first: u64) -> Value {
        let gap = gap(self.at, first);
        self.at = first - 1;
        serde_json::to_value(gap).unwrap_or_default()
    }
}

/// The event for missing events between `after` and `first`. Its number is that of the last missing event.
pub fn gap(after: u64, first: u64) -> Event {
    Event {
        seq: first - 1,
        time: Utc::now(),
        slot: None,
        what: EventKind::Gap { after, first },
    }
}

impl Iterator for EventReplay {
    type Item = Value;

    fn next(&mut self) -> Option<Value> {
        // A position that this daemon has never reached belongs to a log that is gone.
        if self.at > self.until {
            return Some(self.gap(self.until + 1));
        }
        match self.next.take().or_else(|| self.read()) {
            Some((seq, event)) if seq == self.at + 1 || self.at == 0 => {
                self.at = seq;
                Some(event)
            }
            Some((seq, event)) => {
                self.next = Some((seq, event));
                Some(self.gap(seq))
            }
            None if self.at != 0 && self.at < self.until => Some(self.gap(self.until + 1)),
            None => None,
        }
    }
}
