//! Reads the lines of a log that grows and is rotated by renaming, each of them once.

use crate::cli::duration;
use crate::os::files;
use chrono::{DateTime, Local, NaiveTime, TimeZone, Utc};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How much is read at a time; also the longest line that is kept whole.
const CHUNK: usize = 1024 * 1024;

#[derive(Debug)]
pub struct Tail {
    path: PathBuf,
    file: File,
    /// The files that follow it, which exist already.
    newer: VecDeque<File>,
    position: u64,
    /// The beginning of a line whose end is not written yet.
    partial: Vec<u8>,
}

impl Tail {
    /// Begins with the oldest of the files that the log was rotated to.
    pub fn open(path: &Path) -> io::Result<Tail> {
        let mut files: VecDeque<File> = files::with_rotated(path)?.into();
        let oldest = files.pop_front();
        Ok(Tail {
            file: oldest.ok_or(io::ErrorKind::NotFound)?,
            newer: files,
            path: path.to_path_buf(),
            position: 0,
            partial: Vec::new(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Some more whole lines; none when all that is written was returned.
    pub fn lines(&mut self) -> io::Result<Vec<String>> {
        // The writer renames, then creates: once there is a new file, nothing is added to the old one, so
        // looking for a new one *before* the last read of the old one misses nothing.
        if self.newer.is_empty() {
            self.newer = self.successors()?;
        }
        self.notice_truncation()?;
        let mut chunk = Vec::new();
        let read = (&self.file).take(CHUNK as u64).read_to_end(&mut chunk)?;
        self.position += read as u64;
        if read > 0 {
            return Ok(self.split(&chunk));
        }
        let Some(next) = self.newer.pop_front() else {
            return Ok(Vec::new());
        };
        let unfinished = std::mem::take(&mut self.partial);
        (self.file, self.position) = (next, 0);
        let mut lines = self.lines()?;
        if !unfinished.is_empty() {
            lines.insert(0, text(&unfinished));
        }
        Ok(lines)
    }

    /// The files that have come after the one that is read.
    fn successors(&self) -> io::Result<VecDeque<File>> {
        let own = files::identity(&self.file)?;
        let mut all: VecDeque<File> = match files::with_rotated(&self.path) {
            Ok(all) => all.into(),
            // Between renaming and creating.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(VecDeque::new()),
            Err(error) => return Err(error),
        };
        let is_own = |file: &File| files::identity(file).is_ok_and(|found| found == own);
        // One that is no longer kept is older than all of them.
        let own_place = all.iter().position(is_own);
        Ok(all.split_off(own_place.map_or(0, |place| place + 1)))
    }

    /// Somebody emptied the file (`> coder.log`): what is in it now is new.
    fn notice_truncation(&mut self) -> io::Result<()> {
        if self.file.metadata()?.len() < self.position {
            io::Seek::rewind(&mut self.file)?;
            self.position = 0;
            self.partial.clear();
        }
        Ok(())
    }

    fn split(&mut self, chunk: &[u8]) -> Vec<String> {
        self.partial.extend_from_slice(chunk);
        let whole = self
            .partial
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        let rest = self.partial.split_off(whole);
        let mut lines: Vec<String> = std::mem::replace(&mut self.partial, rest)
            .split_inclusive(|b| *b == b'\n')
            .map(|line| text(&line[..line.len() - 1]))
            .collect();
        if self.partial.len() > CHUNK {
            lines.push(text(&std::mem::take(&mut self.partial)));
        }
        lines
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Keeps lines from a moment on; a line without a time goes with the one before it.
#[derive(Debug)]
pub struct Since {
    begin: Option<DateTime<Utc>>,
    begun: bool,
}

impl Since {
    pub fn new(begin: Option<DateTime<Utc>>) -> Since {
        Since {
            begin,
            begun: begin.is_none(),
        }
    }

    pub fn keeps(&mut self, line: &str) -> bool {
        if let (false, Some(begin), Some(time)) = (self.begun, self.begin, time_of(line)) {
            self.begun = time >= begin;
        }
        self.begun
    }
}

/// A log line begins with its time, an event has it in `time`.
pub fn time_of(line: &str) -> Option<DateTime<Utc>> {
    let event = || serde_json::from_str::<serde_json::Value>(line).ok();
    let word = match line.starts_with('{') {
        true => event()?.get("time")?.as_str()?.to_string(),
        false => line.split_whitespace().next()?.to_string(),
    };
    Some(DateTime::parse_from_rfc3339(&word).ok()?.to_utc())
}

/// A moment as people write it: a time, the time on the clock when it was last that time, or how long ago.
pub fn parse_since(text: &str) -> Result<DateTime<Utc>, String> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.to_utc());
    }
    if let Some(time) = on_the_clock(text, Local::now()) {
        return Ok(time.to_utc());
    }
    let ago = duration::parse(text)?;
    chrono::Duration::from_std(ago)
        .ok()
        .and_then(|ago| Utc::now().checked_sub_signed(ago))
        .ok_or_else(|| "too long ago".to_string())
}

/// `9:37` or `09:37:12`, today or, if that is still to come, yesterday.
fn on_the_clock<Z: TimeZone>(text: &str, now: DateTime<Z>) -> Option<DateTime<Z>> {
    let time = ["%H:%M", "%H:%M:%S"]
        .iter()
        .find_map(|format| NaiveTime::parse_from_str(text, format).ok())?;
    let days = [now.date_naive(), now.date_naive().pred_opt()?];
    let times = days.map(|day| now.timezone().from_local_datetime(&day.and_time(time)));
    let times = times.into_iter().filter_map(|time| time.earliest());
    times.into_iter().find(|time| *time <= now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;

    fn append(path: &Path, text: &str) {
        let mut file = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn every_line_comes_once_through_growth_and_rotation() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("coder.log");
        append(&path, "one\ntw");
        let mut tail = Tail::open(&path).unwrap();
        assert_eq!(tail.lines().unwrap(), ["one"]);
        append(&path, "o\nthree\n");
        let old = directory.path().join("coder.log.1");
        fs::rename(&path, &old).unwrap();
        assert_eq!(tail.lines().unwrap(), ["two", "three"]);
        assert!(
            tail.lines().unwrap().is_empty(),
            "renamed, and not yet created"
        );
        append(&old, "four\nunfinished");
        append(&path, "five\n");
        assert_eq!(tail.lines().unwrap(), ["four"]);
        assert_eq!(tail.lines().unwrap(), ["unfinished", "five"]);
        append(&path, "six\n");
        assert_eq!(tail.lines().unwrap(), ["six"]);
        assert!(tail.lines().unwrap().is_empty());
    }

    #[test]
    fn several_rotations_between_two_looks_lose_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("coder.log");
        let rotate = |keep| {
            files::make_room(&path, keep).unwrap();
            fs::rename(&path, files::rotated(&path, 1)).unwrap();
        };
        append(&path, "1\n");
        rotate(4);
        append(&path, "2\n");
        let mut tail = Tail::open(&path).unwrap();
        let all = |tail: &mut Tail| {
            let next = || Some(tail.lines().unwrap()).filter(|lines| !lines.is_empty());
            std::iter::from_fn(next).flatten().collect::<Vec<_>>()
        };
        assert_eq!(all(&mut tail), ["1", "2"]);
        append(&path, "3\n");
        rotate(4);
        append(&path, "4\n");
        rotate(4);
        append(&path, "5\n");
        assert_eq!(all(&mut tail), ["3", "4", "5"]);
        rotate(2);
        append(&path, "6\n");
        rotate(2);
        append(&path, "7\n");
        assert_eq!(all(&mut tail), ["6", "7"]);
    }

    #[test]
    fn an_emptied_file_is_read_from_its_beginning() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("coder.log");
        append(&path, "one\ntwo\n");
        let mut tail = Tail::open(&path).unwrap();
        assert_eq!(tail.lines().unwrap().len(), 2);
        fs::write(&path, "new\n").unwrap();
        assert_eq!(tail.lines().unwrap(), ["new"]);
    }

    #[test]
    fn since_keeps_what_follows_a_moment() {
        let mut since = Since::new(Some("2026-01-01T10:00:00Z".parse().unwrap()));
        let lines = [
            "2026-01-01T09:59:59.999+00:00 too old",
            "  and what belongs to it",
            "2026-01-01T12:00:00.000+02:00 just in time",
            "  and what belongs to it",
        ];
        assert_eq!(
            lines.map(|line| since.keeps(line)),
            [false, false, true, true]
        );
        let mut since = Since::new(Some("2026-01-01T10:00:00Z".parse().unwrap()));
        assert!(!since.keeps(r#"{"seq":1,"time":"2026-01-01T09:00:00Z"}"#));
        assert!(since.keeps(r#"{"seq":2,"time":"2026-01-01T10:00:01Z"}"#));
        assert!(Since::new(None).keeps("anything"));
    }

    #[test]
    fn a_time_on_the_clock_is_the_last_one() {
        let now: DateTime<Utc> = "2026-01-02T09:30:00Z".parse().unwrap();
        for (text, expected) in [
            ("09:30", Some("2026-01-02T09:30:00Z")),
            ("9:05", Some("2026-01-02T09:05:00Z")),
            ("09:30:01", Some("2026-01-01T09:30:01Z")),
            ("23:59", Some("2026-01-01T23:59:00Z")),
            ("24:00", None),
            ("9", None),
        ] {
            let expected = expected.map(|time| time.parse().unwrap());
            assert_eq!(on_the_clock(text, now), expected, "{text}");
        }
    }
}
