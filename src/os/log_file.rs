//! A log that grows by whole lines and is rotated by size: `a.log` becomes `a.log.1`, that `a.log.2`, and so on.

use crate::os::files;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How much is kept of one log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cap {
    /// A file that would grow beyond this is rotated.
    pub bytes: u64,
    /// Files in all, the present one among them.
    pub files: usize,
}

#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    /// `None` while it could not be opened.
    open: Option<OpenLog>,
    cap: Cap,
    /// The last write failed.
    failed: bool,
}

#[derive(Debug)]
struct OpenLog {
    file: File,
    length: u64,
}

impl LogFile {
    /// It is opened with the first line: where that fails, a later one may find it well.
    pub fn new(path: &Path, cap: Cap) -> LogFile {
        LogFile {
            path: path.to_owned(),
            open: None,
            cap,
            failed: false,
        }
    }

    /// Holds from the next line on.
    pub fn set_cap(&mut self, cap: Cap) {
        self.cap = cap;
    }

    /// Adds lines: all of them or, as far as the file system allows, nothing.
    pub fn append(&mut self, lines: &str) -> io::Result<()> {
        let mut open = self.opened()?;
        if self.failed && !files::has_room(&open.file) {
            self.open = Some(open);
            return Err(io::ErrorKind::StorageFull.into());
        }
        let grown = open.length + lines.len() as u64;
        if open.length > 0 && grown > self.cap.bytes {
            self.rotate(&mut open);
        }
        let written = open.append(lines);
        self.failed = written.is_err();
        self.open = Some(open);
        written
    }

    /// Somebody may have removed it: what is written must be where it is looked for.
    fn opened(&mut self) -> io::Result<OpenLog> {
        let is_gone = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
        let gone = self.path.symlink_metadata().is_err_and(is_gone);
        match self.open.take().filter(|_| !gone) {
            Some(open) => Ok(open),
            None => OpenLog::at(&self.path),
        }
    }

    /// Renames, then creates: whoever follows the log knows by the new file that the old one is complete. Where
    /// that is not possible the old file goes on, since a log that is too long is better than none.
    fn rotate(&self, open: &mut OpenLog) {
        let old = files::rotated(&self.path, 1);
        let moved = files::make_room(&self.path, self.cap.files)
            .and_then(|()| std::fs::rename(&self.path, &old));
        if moved.is_err() {
            return;
        }
        match OpenLog::at(&self.path) {
            Ok(new) => *open = new,
            Err(_) => drop(std::fs::rename(&old, &self.path)),
        }
    }
}

impl OpenLog {
    /// Without a last line that a crash left half written.
    fn at(path: &Path) -> io::Result<OpenLog> {
        let mut file = files::append(path)?;
        files::drop_torn_line(&mut file)?;
        let length = file.metadata()?.len();
        Ok(OpenLog { file, length })
    }

    fn append(&mut self, lines: &str) -> io::Result<()> {
        let written = self.file.write_all(lines.as_bytes());
        match &written {
            Ok(()) => self.length += lines.len() as u64,
            // A failure here leaves a torn line, which the next opening cuts off.
            Err(_) => drop(self.file.set_len(self.length)),
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const SMALL: Cap = Cap {
        bytes: 100,
        files: 3,
    };

    #[test]
    fn it_is_rotated_by_size_and_its_total_is_capped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let mut log = LogFile::new(&path, SMALL);
        for number in 0..100 {
            log.append(&format!("line {number:03}\n")).unwrap();
            if number == 50 {
                log = LogFile::new(&path, SMALL);
            }
        }
        let sizes: Vec<u64> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().len())
            .collect();
        assert_eq!(sizes.len(), SMALL.files);
        assert!(sizes.iter().all(|size| *size <= SMALL.bytes), "{sizes:?}");
        let last = std::fs::read_to_string(&path).unwrap();
        assert!(last.ends_with("line 099\n"));
        let before = std::fs::read_to_string(files::rotated(&path, 1)).unwrap();
        let next = format!("line {:03}", 100 - last.lines().count() - 1);
        assert_eq!(before.lines().last(), Some(next.as_str()));
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn one_that_is_removed_or_stood_in_the_way_begins_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let elsewhere = dir.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        let mut log = LogFile::new(&path, SMALL);
        assert!(log.append("one\n").is_err());
        assert!(!elsewhere.exists(), "no link is followed");
        for line in ["two\n", "three\n"] {
            std::fs::remove_file(&path).unwrap();
            log.append(line).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), line);
        }
    }

    #[test]
    fn a_line_that_is_longer_than_the_cap_stands_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let mut log = LogFile::new(&path, SMALL);
        let long = "x".repeat(500) + "\n";
        log.append("short\n").unwrap();
        log.append(&long).unwrap();
        log.append("short again\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "short again\n");
        assert_eq!(
            std::fs::read_to_string(files::rotated(&path, 1)).unwrap(),
            long
        );
    }

    #[test]
    fn where_it_can_not_be_rotated_the_old_file_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        // A directory stands where the rotated file should go, and nothing can be renamed over it.
        std::fs::create_dir_all(files::rotated(&path, 1).join("full")).unwrap();
        std::fs::create_dir_all(files::rotated(&path, 2).join("full")).unwrap();
        let mut log = LogFile::new(&path, SMALL);
        for _ in 0..30 {
            log.append("a line\n").unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 30);
    }
}
