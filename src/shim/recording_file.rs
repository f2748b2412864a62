//! The recording on disk: appends events. A full or broken disk loses events in the file, but never affects the child. Only the
//! thread of [`super::writer`] calls it, since a disk may not answer.

use super::cast;
use super::writer::RecordedEvent;
use crate::core::cast::{event_line, exact_line, header_line};
use crate::core::terminal::At;
use crate::os::files;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How much of an existing recording is searched for its last complete line. The longest line is a full read of control
/// characters, about 100 KB.
const TAIL: u64 = 512 << 10;

/// How long to wait after a failed write. A full disk stays full for a while, and trying is cheap.
const RETRY: Duration = Duration::from_secs(1);

/// Events that could not be written.
#[derive(Debug)]
struct RecordingGap {
    lost: u64,
    reason: String,
    retry_at: Instant,
}

#[derive(Debug)]
pub(super) struct RecordingFile {
    path: PathBuf,
    /// The name in its header.
    title: String,
    file: File,
    /// Written before the first event, unless the file has one.
    header: String,
    length: u64,
    /// The time of the last event that was to be written.
    last: At,
    gap: Option<RecordingGap>,
    news: Option<String>,
}

impl RecordingFile {
    /// Opens or creates the file. Nothing is written before the first event.
    pub fn open(path: &Path, (cols, rows): (u16, u16), title: &str) -> io::Result<Self> {
        let mut file = open_private(path)?;
        let (length, last) = resume(&mut file)?;
        Ok(Self {
            path: path.to_owned(),
            title: title.to_owned(),
            file,
            header: header(cols, rows, title),
            length,
            last,
            gap: None,
            news: None,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file that hold complete events.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// The time of the last event.
    pub fn last(&self) -> At {
        self.last
    }

    /// Appends events. If the write fails, they are missing in the file, and a warning is queued.
    pub fn write<'a>(&mut self, events: impl Iterator<Item = &'a RecordedEvent>) {
        let (mut lines, mut count, mut first) = (String::new(), 0, None);
        for RecordedEvent {
            at,
            code,
            data,
            exact,
        } in events
        {
            lines += &exact
                .as_ref()
                .map_or(String::new(), |bytes| exact_line(*at, bytes));
            lines += &event_line(*at, *code, data);
            first = first.or(Some(*at));
            (count, self.last) = (count + 1, *at);
        }
        let at = first.unwrap_or(self.last);
        if self.waits() || !self.append(at, &lines) {
            self.gap.iter_mut().for_each(|gap| gap.lost += count);
        }
    }

    /// Notes events that were not queued, since the disk did not answer.
    pub fn missed(&mut self, at: At, count: u64) {
        self.last = at;
        let mark = format!("gap: {count} events were not recorded: the disk did not answer");
        if self.waits() || !self.append(at, &event_line(at, 'm', &mark)) {
            self.gap.iter_mut().for_each(|gap| gap.lost += count);
        }
    }

    /// Restores the file with all its content if somebody removed it; returns whether that was so.
    fn restore(&mut self) -> io::Result<bool> {
        let path = &self.path;
        if path.symlink_metadata().is_ok() {
            return Ok(false);
        }
        let directory = path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
        let fresh = path.with_extension("new");
        // A file that a crash has left.
        let _ = std::fs::remove_file(&fresh);
        let mut file = open_private(&fresh)?;
        io::copy(&mut self.reader()?, &mut file)?;
        std::fs::rename(&fresh, path)?;
        self.file = file;
        Ok(true)
    }

    /// Restores the file; the outcome is a warning for a person.
    pub fn restore_and_tell(&mut self) {
        self.news = match self.restore() {
            Ok(false) => return,
            Ok(true) => Some("its recording was removed, and is made again".to_owned()),
            Err(fault) => Some(format!(
                "its recording was removed, and can't be made again: {fault}"
            )),
        };
    }

    /// Everything written so far, also of a file that was removed.
    pub fn reader(&self) -> io::Result<impl Read + use<>> {
        let mut file = self.file.try_clone()?;
        // Appends still go to the end.
        file.seek(SeekFrom::Start(0))?;
        Ok(file.take(self.length))
    }

    /// Moves the file to `to` and continues in a new one, which begins with `snapshot` so that it can be replayed alone. On an
    /// error the old file stays in use.
    pub fn rotate(
        &mut self,
        at: At,
        to: &Path,
        (cols, rows): (u16, u16),
        snapshot: &str,
    ) -> io::Result<()> {
        self.last = at;
        let path = &self.path;
        // The marker comes last, since a snapshot may be too long for the search for the last line.
        let beginning = header(cols, rows, &self.title)
            + &event_line(at, 'o', snapshot)
            + &event_line(at, 'm', &format!("continues {}", to.display()));
        let fresh = path.with_extension("new");
        // A file that a crash has left.
        let _ = std::fs::remove_file(&fresh);
        let replaced = begin(&fresh, &beginning).and_then(|file| {
            replace(path, to, &fresh)?;
            Ok(file)
        });
        if replaced.is_err() {
            let _ = std::fs::remove_file(&fresh);
        }
        self.file = replaced?;
        self.length = beginning.len() as u64;
        Ok(())
    }

    /// When to call `retry`, if there is a gap to close.
    pub fn retry_at(&self) -> Option<Instant> {
        self.gap.as_ref().map(|gap| gap.retry_at)
    }

    /// Tries to close the gap, so that the file shows what is missing even if no more events come.
    pub fn retry(&mut self) {
        if self.gap.is_some() && !self.waits() {
            self.append(self.last, "");
        }
    }

    /// Whether it is too early, or useless, to write again after a failure.
    fn waits(&mut self) -> bool {
        let Some(gap) = &mut self.gap else {
            return false;
        };
        let now = Instant::now();
        if now >= gap.retry_at && !files::has_room(&self.file) {
            gap.retry_at = now + RETRY;
        }
        now < gap.retry_at
    }

    /// A warning for a person, once.
    pub fn take_news(&mut self) -> Option<String> {
        self.news.take()
    }

    /// Whether `lines` are in the file now, after the gap marker if one was needed.
    fn append(&mut self, at: At, lines: &str) -> bool {
        let mut text = String::new();
        if self.length == 0 {
            text.push_str(&self.header);
        }
        if let Some(gap) = &self.gap {
            let mark = format!("gap: {} events were not recorded: {}", gap.lost, gap.reason);
            text.push_str(&event_line(at, 'm', &mark));
        }
        text.push_str(lines);
        match self.write_whole(text.as_bytes()) {
            Ok(()) => self.has_recovered(),
            Err(fault) => self.has_failed(&fault),
        }
    }

    fn has_recovered(&mut self) -> bool {
        if let Some(gap) = self.gap.take() {
            self.news = Some(format!(
                "the recording goes on; {} events are missing from it ({})",
                gap.lost, gap.reason
            ));
        }
        true
    }

    fn has_failed(&mut self, fault: &io::Error) -> bool {
        let retry_at = Instant::now() + RETRY;
        match &mut self.gap {
            Some(gap) => gap.retry_at = retry_at,
            None => {
                self.news = Some(format!(
                    "the recording can't be written: {fault}; the program goes on, its output is missing from the file until this is cured"
                ));
                self.gap = Some(RecordingGap {
                    lost: 0,
                    reason: fault.to_string(),
                    retry_at,
                });
            }
        }
        false
    }

    /// Writes all of it or, as far as the file system allows, nothing.
    fn write_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(fault) = self.file.write_all(bytes) {
            // A failure here leaves a torn line, which the next start of the slot cuts off.
            let _ = self.file.set_len(self.length);
            return Err(fault);
        }
        self.length += bytes.len() as u64;
        Ok(())
    }
}

fn begin(path: &Path, beginning: &str) -> io::Result<File> {
    let mut file = open_private(path)?;
    file.write_all(beginning.as_bytes())?;
    Ok(file)
}

/// Moves `path` to `to`, and `fresh` to `path`; or neither.
fn replace(path: &Path, to: &Path, fresh: &Path) -> io::Result<()> {
    std::fs::rename(path, to)?;
    std::fs::rename(fresh, path).inspect_err(|_| {
        let _ = std::fs::rename(to, path);
    })
}

fn header(cols: u16, rows: u16, title: &str) -> String {
    let timestamp = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    header_line(cols.into(), rows.into(), timestamp, title)
}

/// Never through a symbolic link, never readable by others, never with a second writer.
fn open_private(path: &Path) -> io::Result<File> {
    let no_follow = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(no_follow.bits() as i32)
        .open(path)
        .map_err(crate::os::files::unfollowed)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if metadata.mode() & 0o077 != 0 {
        file.set_permissions(PermissionsExt::from_mode(0o600))?;
    }
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => {
            let text = "another shim is writing it";
            Err(io::Error::new(io::ErrorKind::WouldBlock, text))
        }
        // Some network file systems have no locks; the socket still prevents a second shim.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}

/// Cuts off what a crash left incomplete; returns the remaining length, and the time of its last event.
fn resume(file: &mut File) -> io::Result<(u64, At)> {
    let length = file.seek(SeekFrom::End(0))?;
    if length == 0 {
        return Ok((0, At::ZERO));
    }
    let mut tail = vec![0; length.min(TAIL) as usize];
    file.read_exact_at(&mut tail, length.saturating_sub(TAIL))?;
    match cast::resume_at(&tail) {
        Some(found) => {
            let whole = length - found.torn as u64;
            file.set_len(whole)?;
            Ok((whole, found.last))
        }
        // The very first write was torn.
        None if is_torn_header(file, length)? => {
            file.set_len(0)?;
            Ok((0, At::ZERO))
        }
        None => Err(io::Error::other(
            "it is not an asciicast v2 file; move it away to start a new one",
        )),
    }
}

fn is_torn_header(mut file: &File, length: u64) -> io::Result<bool> {
    const BEGINNING: &[u8] = b"{\"version\": 2";
    if length > 4096 {
        return Ok(false);
    }
    let mut content = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut content)?;
    let common = content.len().min(BEGINNING.len());
    Ok(!content.contains(&b'\n') && content[..common] == BEGINNING[..common])
}
