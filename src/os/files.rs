//! Files that only their owner can read: opened for appending, never through a symlink.

use rustix::fs::OFlags;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Opens a log file for appending: 0600, created if it is missing, refused if it is a symlink.
pub fn append(path: &Path) -> io::Result<File> {
    check_directory(path)?;
    let mut options = OpenOptions::new();
    options.append(true).read(true).create(true).mode(0o600);
    options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    options.open(path).map_err(unfollowed).and_then(regular)
}

/// Opens a file for reading. Anything else at its path, such as a FIFO or a directory, is an error at once: to open a
/// FIFO in the usual way blocks until another process writes to it.
pub fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    options.custom_flags(OFlags::NONBLOCK.bits() as i32);
    options.open(path).and_then(regular)
}

fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file: remove it")),
    }
}

/// All bytes of a file, as [`open`] opens it.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// All text of a file, as [`open`] opens it.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Turns the kernel's error about a symlink into a sentence with the next step.
pub fn unfollowed(error: io::Error) -> io::Error {
    let looped = rustix::io::Errno::LOOP.raw_os_error();
    match error.raw_os_error() {
        Some(number) if number == looped => {
            io::Error::other("it is a symbolic link, and none is followed: remove it")
        }
        _ => error,
    }
}

/// Writes a whole file of the daemon in one step, as [`replace`] does, but refuses a directory that is a link.
pub fn save(path: &Path, text: &str) -> io::Result<()> {
    check_directory(path)?;
    replace(path, text)
}

/// Refuses a directory that is a symbolic link: another process has put it in place of the directory that the daemon
/// checked, and it may lead to a directory that others can write.
fn check_directory(of: &Path) -> io::Result<()> {
    let directory = of.parent().unwrap_or(Path::new(""));
    match directory.symlink_metadata() {
        Ok(found) if found.is_symlink() => Err(io::Error::other(format!(
            "{} is a symbolic link, and none is followed: remove it",
            directory.display()
        ))),
        _ => Ok(()),
    }
}

/// Writes a whole file atomically: readers see the old or the new one. A new file is 0600; an existing one keeps its
/// mode, and stays in its place if it is reached through a symlink.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let beside = target.with_extension("new");
    let _ = std::fs::remove_file(&beside);
    let mut options = OpenOptions::new();
    let file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    if let Ok(before) = std::fs::metadata(&target) {
        file.set_permissions(before.permissions())?;
    }
    io::Write::write_all(&mut &file, text.as_bytes())?;
    std::fs::rename(&beside, &target)
}

/// The bytes of a file of at most this many MiB.
pub fn bounded(opened: File, mebibytes: u64) -> io::Result<Vec<u8>> {
    let most = mebibytes << 20;
    let mut bytes = Vec::new();
    opened.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!(
            "it is longer than {mebibytes} MiB"
        ))),
        false => Ok(bytes),
    }
}

/// Tells whether the disk has space again after it was full. A few bytes are always free, and a log that used them
/// would fail with the next line.
pub fn has_room(file: &File) -> bool {
    const ROOM: u64 = 64 << 10;
    // If that is unknown, try to write.
    rustix::fs::fstatvfs(file).map_or(true, |disk| {
        disk.f_bavail.saturating_mul(disk.f_frsize) >= ROOM
    })
}

/// The name of the file at `path` after `n` rotations.
pub fn rotated(path: &Path, n: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{n}"));
    PathBuf::from(name)
}

/// Makes the name `.1` free for the file at `path`: the number of each rotated file is increased by one, and the oldest
/// is dropped, so that there are never more than `keep`, including the file itself.
pub fn make_room(path: &Path, keep: usize) -> io::Result<()> {
    let exists = |n: &usize| rotated(path, *n).symlink_metadata().is_ok();
    // Those without a gap before them; a rotation that failed half way leaves a gap.
    let taken = (1..keep.saturating_sub(1)).take_while(exists).count();
    for n in (1..=taken).rev() {
        std::fs::rename(rotated(path, n), rotated(path, n + 1))?;
    }
    // There may be more files from a time when more were kept.
    let mut beyond = keep.max(1)..;
    while beyond
        .next()
        .is_some_and(|n| std::fs::remove_file(rotated(path, n)).is_ok())
    {}
    Ok(())
}

/// Removes the file at `path` and its rotated files; missing ones are not an error.
pub fn remove_with_rotated(path: &Path) -> io::Result<()> {
    for n in 1.. {
        match std::fs::remove_file(rotated(path, n)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            removed => removed?,
        }
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// The file at `path` and its rotated files, oldest first, each once: a rotation in between only renames a file.
pub fn with_rotated(path: &Path) -> io::Result<Vec<File>> {
    let newest = open(path)?;
    let mut seen = vec![identity(&newest)?];
    let mut files = vec![newest];
    for n in 1.. {
        let file = match open(&rotated(path, n)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(error),
        };
        let identity = identity(&file)?;
        if !seen.contains(&identity) {
            seen.push(identity);
            files.push(file);
        }
    }
    files.reverse();
    Ok(files)
}

/// What identifies a file under any name: its device and inode.
pub fn identity(file: &File) -> io::Result<(u64, u64)> {
    file.metadata().map(|metadata| inode(&metadata))
}

/// Like [`identity`], for a file that is not open.
pub fn inode(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// Cuts off a last line that a crash left incomplete.
pub fn drop_torn_line(file: &mut File) -> io::Result<()> {
    let length = file.seek(SeekFrom::End(0))?;
    let whole = last_line_end(file, length)?.unwrap_or_default();
    if whole < length {
        file.set_len(whole)
    } else {
        Ok(())
    }
}

/// The last complete line, without its line end.
pub fn last_line(file: &mut File) -> io::Result<Option<String>> {
    let length = file.seek(SeekFrom::End(0))?;
    let Some(end) = last_line_end(file, length)? else {
        return Ok(None);
    };
    let start = last_line_end(file, end - 1)?.unwrap_or(0);
    file.seek(SeekFrom::Start(start))?;
    let mut line = String::new();
    file.take(end - 1 - start).read_to_string(&mut line)?;
    Ok(Some(line))
}

/// The offset just after the last line end before `before`.
fn last_line_end(file: &mut File, before: u64) -> io::Result<Option<u64>> {
    const BLOCK: u64 = 8 * 1024;
    let mut end = before;
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start))?;
        let mut block = vec![0; (end - start) as usize];
        file.read_exact(&mut block)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(Some(start + at as u64 + 1));
        }
        end = start;
    }
    Ok(None)
}

/// The lines of a file from the last to the first, in bounded memory. A line of more than `longest` bytes is skipped,
/// bytes that are not UTF-8 are replaced, and an error ends the lines.
pub struct LinesFromEnd {
    file: File,
    longest: u64,
    /// Where the next line ends; `None` after the first line.
    end: Option<u64>,
}

impl LinesFromEnd {
    pub fn new(mut file: File, longest: u64) -> io::Result<LinesFromEnd> {
        let length = file.seek(SeekFrom::End(0))?;
        // The line feed of the last line does not begin another one.
        let end = match last_line_end(&mut file, length)? {
            Some(end) if end == length => Some(length - 1),
            _ => Some(length).filter(|length| *length > 0),
        };
        Ok(LinesFromEnd { file, longest, end })
    }

    fn line_before(&mut self, end: u64) -> io::Result<Option<String>> {
        let start = last_line_end(&mut self.file, end)?.unwrap_or(0);
        self.end = start.checked_sub(1);
        if end - start > self.longest {
            return Ok(None);
        }
        self.file.seek(SeekFrom::Start(start))?;
        let mut line = vec![0; (end - start) as usize];
        self.file.read_exact(&mut line)?;
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }
}

impl Iterator for LinesFromEnd {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            let end = self.end?;
            if let Some(line) = self.line_before(end).ok()? {
                return Some(line);
            }
        }
    }
}

/// The lines of a reader from the first to the last, in bounded memory, with the same rules as [`LinesFromEnd`].
pub fn lines(mut from: impl BufRead, longest: u64) -> impl Iterator<Item = String> {
    let next = move || loop {
        let mut line = Vec::new();
        let limit = longest.saturating_add(1);
        from.by_ref()
            .take(limit)
            .read_until(b'\n', &mut line)
            .ok()?;
        match line.pop() {
            None => return None,
            Some(b'\n') => {}
            Some(_) if line.len() as u64 >= longest => {
                from.skip_until(b'\n').ok()?;
                continue;
            }
            Some(last) => line.push(last),
        }
        return Some(String::from_utf8_lossy(&line).into_owned());
    };
    std::iter::from_fn(next)
}

/// Tells whether two paths lead to the same file now, with or without links. A removed file is identified by its
/// directory and name.
pub fn same_file(a: &Path, b: &Path) -> bool {
    a == b || real_path(a) == real_path(b)
}

/// The path without links, as far as it exists.
fn real_path(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real_path(parent).join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    #[test]
    fn a_torn_last_line_is_cut_off_and_the_last_whole_one_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let long = "x".repeat(20_000);
        std::fs::write(&path, format!("one\n{long}\ntorn")).unwrap();
        let mut file = append(&path).unwrap();
        drop_torn_line(&mut file).unwrap();
        assert_eq!(last_line(&mut file).unwrap(), Some(long.clone()));
        writeln!(file, "two").unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            format!("one\n{long}\ntwo\n")
        );
    }

    #[test]
    fn an_empty_or_endless_file_has_no_whole_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let mut file = append(&path).unwrap();
        assert_eq!(last_line(&mut file).unwrap(), None);
        write!(file, "torn").unwrap();
        assert_eq!(last_line(&mut file).unwrap(), None);
        drop_torn_line(&mut file).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 0);
    }

    #[test]
    fn rotation_keeps_so_many_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        for round in 1..=6 {
            std::fs::write(&path, format!("{round}\n")).unwrap();
            make_room(&path, 4).unwrap();
            assert!(!rotated(&path, 1).exists());
            std::fs::rename(&path, rotated(&path, 1)).unwrap();
            // A second time, as after a failure, moves nothing into a gap.
            std::fs::rename(rotated(&path, 1), &path).unwrap();
            make_room(&path, 4).unwrap();
            std::fs::rename(&path, rotated(&path, 1)).unwrap();
        }
        std::fs::write(&path, "7\n").unwrap();
        let all = with_rotated(&path).unwrap().into_iter().map(text_of);
        assert_eq!(all.collect::<String>(), "4\n5\n6\n7\n");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 4);
    }

    fn text_of(mut file: File) -> String {
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_symlink_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/null", dir.path().join("a.log")).unwrap();
        assert!(append(&dir.path().join("a.log")).is_err());
    }

    proptest! {
        #[test]
        fn lines_are_the_same_from_both_ends(
            lines in proptest::collection::vec("[a-zé]{0,40}", 0..40),
            block in 0usize..3,
            longest in 1u64..50,
            ended in any::<bool>(),
        ) {
            // Some lines are longer than a block of the file.
            let lines: Vec<String> = lines.into_iter().map(|line| line.repeat(1 + block * 200)).collect();
            let mut text = lines.join("\n");
            if ended && !text.is_empty() {
                text.push('\n');
            }
            let longest = longest * (1 + block as u64 * 200);
            let kept = |line: &&str| line.len() as u64 <= longest;
            let expected: Vec<&str> = text.lines().filter(kept).collect();
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a.jsonl");
            std::fs::write(&path, &text).unwrap();
            let forward: Vec<String> = super::lines(text.as_bytes(), longest).collect();
            prop_assert_eq!(&forward, &expected);
            let from_end = LinesFromEnd::new(File::open(&path).unwrap(), longest).unwrap();
            let mut backward: Vec<String> = from_end.collect();
            backward.reverse();
            prop_assert_eq!(&backward, &expected);
        }
    }
}
