//! Whether anybody still reads standard output.
//!
//! A write to a pipe that nobody reads fails, but a stream that has nothing to write would never find out. The kernel
//! reports the closed end to `poll` at once, so a thread of its own waits there.

use crate::cli::failure::{Blame, Failure};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat};
use std::io::ErrorKind;
use tokio::sync::oneshot;

/// Runs a verb that prints until it is ended, and ends it when the reader of its output has gone.
pub async fn while_read(stream: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    tokio::select! {
        ended = stream => ended,
        () = gone() => Err(has_gone()),
    }
}

/// How a verb ends that has nobody to print for: with exit code 0, as after `| head`.
pub fn has_gone() -> Failure {
    Failure::new(Blame::ReaderGone, "the reader has gone")
}

/// Returns when the reader of a pipe or socket on standard output has gone; never for a file or a terminal, which
/// have no reader that could go: a terminal that hangs up sends SIGHUP.
async fn gone() {
    let is_read = || {
        let kind = FileType::from_raw_mode(fstat(rustix::stdio::stdout()).ok()?.st_mode);
        matches!(kind, FileType::Fifo | FileType::Socket).then_some(())
    };
    if is_read().is_none() {
        return std::future::pending().await;
    }
    let (tell, told) = oneshot::channel();
    // The thread ends with the process: nothing joins it, and nothing has to.
    let watching = std::thread::Builder::new()
        .name("reader".to_owned())
        .spawn(move || {
            if wait_for_hangup() {
                // Nobody listens where the stream has ended by itself.
                let _ = tell.send(());
            }
        });
    match (watching, told.await) {
        (Ok(_), Ok(())) => {}
        // It can't be watched: then a write finds out.
        _ => std::future::pending().await,
    }
}

/// Blocks until the other end is closed; false where that can't be waited for.
fn wait_for_hangup() -> bool {
    loop {
        let stdout = rustix::stdio::stdout();
        // No events are asked for: these are reported in any case.
        let mut watched = [PollFd::new(&stdout, PollFlags::empty())];
        match poll(&mut watched, None) {
            Ok(_) => {
                let happened = watched[0].revents();
                return happened.intersects(PollFlags::ERR | PollFlags::HUP);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
}
