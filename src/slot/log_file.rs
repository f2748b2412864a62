//! A log that grows by whole lines and is rotated by size: `a.log` becomes `a.log.1`, that `a.log.2`, and so on.

use crate::config::Care;
use crate::files;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How much is kept of one log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cap {
    /// A file that would grow beyond this is rotated.
    pub bytes: u64,
    /// Files in all, the present one among them.
    pub files: usize,
}

impl Cap {
    pub fn of(care: &Care) -> Cap {
        Cap {
            bytes: care.log_size,
            files: care.log_files.into(),
        }
    }
}

#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: File,
    length: u64,
    cap: Cap,
    /// The last write failed.
    failed: bool,
}

impl LogFile {
    /// Opens the file, without a last line that a crash left half written.
    pub fn open(path: &Path, cap: Cap) -> io::Result<LogFile> {
        let (file, length) = open(path)?;
        Ok(LogFile {
            path: path.to_owned(),
            file,
            length,
            cap,
            failed: false,
        })
    }

    /// Holds from the next line on.
    pub fn set_cap(&mut self, cap: Cap) {
        self.cap = cap;
    }

    /// Adds lines: all of them or, as far as the file system allows, nothing.
    pub fn append(&mut self, lines: &str) -> io::Result<()> {
        if self.failed && !files::has_room(&self.file) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let grown = self.length + lines.len() as u64;
        if self.length > 0 && grown > self.cap.bytes {
            self.rotate();
        }
        let written = self.file.write_all(lines.as_bytes());
        self.failed = written.is_err();
        if let Err(error) = written {
            // A failure here leaves a torn line, which the next opening cuts off.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += lines.len() as u64;
        Ok(())
    }

    /// Renames, then creates: whoever follows the log knows by the new file that the old one is complete. Where
    /// that is not possible the old file goes on, since a log that is too long is better than none.
    fn rotate(&mut self) {
        let old = files::rotated(&self.path, 1);
        let moved = files::make_room(&self.path, self.cap.files)
            .and_then(|()| std::fs::rename(&self.path, &old));
        if moved.is_err() {
            return;
        }
        match open(&self.path) {
            Ok((file, length)) => (self.file, self.length) = (file, length),
            Err(_) => drop(std::fs::rename(&old, &self.path)),
        }
    }
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let mut file = files::append(path)?;
    files::drop_torn_line(&mut file)?;
    let length = file.metadata()?.len();
    Ok((file, length))
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
        let mut log = LogFile::open(&path, SMALL).unwrap();
        for number in 0..100 {
            log.append(&format!("line {number:03}\n")).unwrap();
            if number == 50 {
                log = LogFile::open(&path, SMALL).unwrap();
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
    fn a_line_that_is_longer_than_the_cap_stands_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let mut log = LogFile::open(&path, SMALL).unwrap();
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
        let mut log = LogFile::open(&path, SMALL).unwrap();
        for _ in 0..30 {
            log.append("a line\n").unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 30);
    }
}
