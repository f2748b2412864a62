//! The kernel tells when Claude Code rewrites its record of a session, so that nobody has to look from time to time.

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use std::io::{self, ErrorKind};
use std::path::Path;
use tokio::net::unix::pipe;

/// The kernel's notices. They are read like a pipe: the runtime has no other safe way to wait for a descriptor.
#[derive(Debug)]
pub(super) struct RecordWatch(pipe::Receiver);

impl RecordWatch {
    /// `directory` has the records of all sessions of one home: a handful, each rewritten a few times in a turn.
    pub fn new(directory: &Path) -> io::Result<RecordWatch> {
        let notices = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let rewritten = WatchFlags::CLOSE_WRITE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
        inotify::add_watch(&notices, directory, rewritten)?;
        Ok(RecordWatch(pipe::Receiver::from_owned_fd_unchecked(
            notices,
        )?))
    }

    /// Returns when a record was written since the last time. Which one does not matter: one's own is read again.
    pub async fn changed(&self) {
        // Room for some dozens of notices; more are read in the next round.
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
        let watch = RecordWatch::new(directory.path()).expect("it is watched");
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

    #[test]
    fn a_directory_that_is_not_there_is_no_watch() {
        let directory = tempfile::tempdir().expect("a directory");
        assert!(RecordWatch::new(&directory.path().join("none")).is_err());
    }
}
