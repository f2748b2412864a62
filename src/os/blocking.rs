//! Work that waits for the kernel, off the runtime's threads. Where the system gives no thread for it, that is an error;
//! tokio's own pool would panic.

use crate::os::headroom;
use std::io;
use tokio::sync::{Semaphore, oneshot};

/// A thread's stacks. One that gets the first and not the second, for signals, ends the whole process.
const THREAD: u64 = 4 << 20;

/// Threads at once: more looks at the process table, searches and syncs would only wait for the same processors and disk.
const MAX_THREADS: usize = 32;

static PLACES: Semaphore = Semaphore::const_new(MAX_THREADS);

pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let place = PLACES.acquire().await.map_err(io::Error::other)?;
    headroom::check(THREAD).map_err(no_thread)?;
    let (done, result) = oneshot::channel();
    std::thread::Builder::new()
        .name("missiond-work".to_owned())
        .spawn(move || {
            // Nobody may be waiting any more.
            let _ = done.send(work());
            drop(place);
        })
        .map_err(no_thread)?;
    result
        .await
        .map_err(|_| io::Error::other("it panicked: see missiond.log"))
}

fn no_thread(why: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("the daemon gets no thread: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_panics_is_an_error_and_gives_its_place_back() {
        for _ in 0..2 * MAX_THREADS {
            let failed = run(|| panic!("on purpose")).await;
            assert!(failed.is_err());
        }
        assert_eq!(run(|| 6 * 7).await.unwrap(), 42);
    }
}
