//! Waits for changes in a directory by the kernel's notification, without polling.

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::io::{self, ErrorKind};
use std::path::Path;
use tokio::net::unix::pipe;

/// The kernel's notifications. They are read like a pipe: the runtime has no other safe way to wait for a descriptor.
#[derive(Debug)]
pub struct DirectoryWatch(pipe::Receiver);

impl DirectoryWatch {
    /// Watches for files that are rewritten or replaced.
    pub fn for_changes(directory: &Path) -> io::Result<DirectoryWatch> {
        let rewritten = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO;
        DirectoryWatch::new([(directory, rewritten)])
    }

    /// Watches for directories and files that are removed or moved away; with `true` also the content of a directory.
    pub fn for_losses<'a>(
        directories: impl IntoIterator<Item = (&'a Path, bool)>,
    ) -> io::Result<DirectoryWatch> {
        let itself = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF | WatchFlags::MASK_ADD;
        let within = itself | WatchFlags::DELETE | WatchFlags::MOVED_FROM;
        let flags = |is_within| if is_within { within } else { itself };
        let directories = directories.into_iter();
        DirectoryWatch::new(directories.map(|(directory, is_within)| (directory, flags(is_within))))
    }

    fn new<'a>(
        directories: impl IntoIterator<Item = (&'a Path, WatchFlags)>,
    ) -> io::Result<DirectoryWatch> {
        let notices = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        for (directory, flags) in directories {
            inotify::add_watch(&notices, directory, flags | WatchFlags::ONLYDIR)?;
        }
        Ok(DirectoryWatch(pipe::Receiver::from_owned_fd_unchecked(
            notices,
        )?))
    }

    /// Returns when something has changed since the last call. It does not say what: the caller checks again.
    pub async fn changed(&self) {
        // Room for some dozens of notifications; more are read in the next round.
        let mut notices = [0; 4096];
        while self.0.readable().await.is_ok() {
            match self.0.try_read(&mut notices) {
                Ok(count) if count > 0 => return,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                _ => break,
            }
        }
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::time::Duration;

    #[tokio::test]
    async fn a_record_that_is_rewritten_or_replaced_is_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let record = directory.path().join("7.json");
        let watch = DirectoryWatch::for_changes(directory.path()).expect("it is watched");
        let told = || tokio::time::timeout(Duration::from_secs(20), watch.changed());
        fs::write(&record, "{}").expect("a file");
        assert!(told().await.is_ok());
        fs::write(directory.path().join("new"), "{}").expect("a file");
        assert!(told().await.is_ok());
        fs::rename(directory.path().join("new"), &record).expect("it moves");
        assert!(told().await.is_ok());
        let quiet = tokio::time::timeout(Duration::from_millis(1), watch.changed()).await;
        assert!(quiet.is_err(), "nothing was written since");
    }

    #[tokio::test]
    async fn what_is_removed_or_moved_away_is_told() {
        let place = tempfile::tempdir().expect("a directory");
        let inner = place.path().join("inner");
        fs::create_dir(&inner).expect("a directory");
        fs::write(inner.join("a"), "").expect("a file");
        let watch = DirectoryWatch::for_losses([(inner.as_path(), true), (place.path(), true)]);
        let watch = watch.expect("it is watched");
        let told = || tokio::time::timeout(Duration::from_secs(20), watch.changed());
        fs::write(inner.join("b"), "").expect("a file");
        let quiet = tokio::time::timeout(Duration::from_millis(1), watch.changed()).await;
        assert!(quiet.is_err(), "nothing is lost by that");
        // An open file in the directory prevents the notification about the directory itself.
        let _open = fs::File::open(inner.join("a")).expect("a file");
        fs::remove_file(inner.join("a")).expect("it is ours");
        assert!(told().await.is_ok());
        fs::rename(&inner, place.path().join("aside")).expect("it is ours");
        assert!(told().await.is_ok());
    }

    #[test]
    fn a_directory_that_is_not_there_is_no_watch() {
        let directory = tempfile::tempdir().expect("a directory");
        assert!(DirectoryWatch::for_changes(&directory.path().join("none")).is_err());
    }
}
