//! A log that grows by whole lines and is rotated by size: `a.log` becomes `a.log.1`, that becomes `a.log.2`, and so
//! on.

use crate::os::files;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How much of one log is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cap {
    /// A file that would grow beyond this is rotated.
    pub bytes: u64,
    /// The number of files, including the current one.
    pub files: usize,
}

#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    /// `None` if it could not be opened.
    open: Option<OpenLog>,
    cap: Cap,
    /// Whether the last write failed.
    failed: bool,
}

#[derive(Debug)]
struct OpenLog {
    file: File,
    length: u64,
}

impl LogFile {
    /// The first line opens the file: if that fails, a later line tries again.
    pub fn new(path: &Path, cap: Cap) -> LogFile {
        LogFile {
            path: path.to_owned(),
            open: None,
            cap,
            failed: false,
        }
    }

    /// Sets the cap, which applies from the next line on.
    pub fn set_cap(&mut self, cap: Cap) {
        self.cap = cap;
    }

    /// Appends lines: all of them or, as far as the file system allows, none.
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

    /// The open file. It is opened again if it was removed, because lines must go to the file at its path.
    fn opened(&mut self) -> io::Result<OpenLog> {
        let there = self.path.symlink_metadata();
        let is_there = |open: &OpenLog| match &there {
            Ok(found) => files::identity(&open.file).is_ok_and(|own| own == files::inode(found)),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        match self.open.take().filter(is_there) {
            Some(open) => Ok(open),
            None => OpenLog::at(&self.path),
        }
    }

    /// Renames, then creates: a reader that follows the log knows by the new file that the old one is complete. If that
    /// fails, the old file continues, since a log that is too long is better than none.
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
    /// Opens the file, without a last line that a crash left incomplete.
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
    use rustix::fs::{FileType, Mode};
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
    fn a_link_in_place_of_its_directory_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (logs, elsewhere) = (dir.path().join("logs"), dir.path().join("elsewhere"));
        for directory in [&logs, &elsewhere] {
            std::fs::create_dir(directory).unwrap();
        }
        let mut log = LogFile::new(&logs.join("a.log"), SMALL);
        log.append("one\n").unwrap();
        std::fs::remove_dir_all(&logs).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &logs).unwrap();
        assert!(log.append("two\n").is_err());
        assert!(files::save(&logs.join("a.json"), "{}").is_err());
        assert_eq!(elsewhere.read_dir().unwrap().count(), 0);
    }

    #[test]
    fn nothing_is_written_while_something_else_has_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let mut log = LogFile::new(&path, SMALL);
        log.append("one\n").unwrap();
        for stand_in in ["fifo", "link", "directory"] {
            std::fs::remove_file(&path).unwrap();
            match stand_in {
                "fifo" => {
                    rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RWXU, 0)
                        .unwrap();
                }
                "link" => std::os::unix::fs::symlink(dir.path(), &path).unwrap(),
                _ => std::fs::create_dir(&path).unwrap(),
            }
            assert!(log.append("lost\n").is_err(), "{stand_in}");
            if stand_in == "directory" {
                std::fs::remove_dir(&path).unwrap();
            } else {
                std::fs::remove_file(&path).unwrap();
            }
            log.append("two\n").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\n");
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
        // A directory is in the place of the rotated file, and nothing can be renamed over it.
        std::fs::create_dir_all(files::rotated(&path, 1).join("full")).unwrap();
        std::fs::create_dir_all(files::rotated(&path, 2).join("full")).unwrap();
        let mut log = LogFile::new(&path, SMALL);
        for _ in 0..30 {
            log.append("a line\n").unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 30);
    }
}
