//! Work that waits for the kernel, off the runtime's threads. Where the system gives no thread for it, that is an error;
//! tokio's own pool would panic.

use crate::os::headroom;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

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
        .map_err(|error| no_thread(headroom::why_not_made(&error)))?;
    result
        .await
        .map_err(|_| io::Error::other("it panicked: see missiond.log"))
}

fn no_thread(why: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("the daemon gets no thread: {why}"))
}

/// Runs the work of one owner, one piece at a time. A piece that hangs takes one thread, and nobody waits for it, nor for
/// what comes behind it, for longer than the limit.
#[derive(Debug, Clone)]
pub struct Worker {
    limit: Duration,
    place: Arc<Semaphore>,
    /// When the piece began that is at work now.
    began: Arc<Mutex<Option<Instant>>>,
}

impl Worker {
    pub fn new(limit: Duration) -> Worker {
        Worker {
            limit,
            place: Arc::new(Semaphore::new(1)),
            began: Arc::default(),
        }
    }

    /// The result of the work, or why there is none. While an earlier piece is over its time, there is none at once.
    pub fn run<T, Work>(
        &self,
        work: Work,
    ) -> impl Future<Output = io::Result<T>> + Send + use<T, Work>
    where
        T: Send + 'static,
        Work: FnOnce() -> T + Send + 'static,
    {
        let (worker, hangs) = (self.clone(), self.hangs());
        let in_turn = move || async move {
            let place = worker.place.clone().acquire_owned().await;
            let place = place.map_err(io::Error::other)?;
            let began = worker.began;
            run(move || {
                let _at_work = AtWork::new(began, place);
                work()
            })
            .await
        };
        let limit = self.limit;
        async move {
            if hangs {
                return Err(no_answer());
            }
            let done = tokio::time::timeout(limit, in_turn()).await;
            done.unwrap_or_else(|_| Err(no_answer()))
        }
    }

    /// Whether a piece of work is over its time.
    fn hangs(&self) -> bool {
        let began = *self.began.lock().unwrap_or_else(PoisonError::into_inner);
        began.is_some_and(|began| began.elapsed() >= self.limit)
    }
}

/// A piece of work that is under way, also while it panics.
struct AtWork {
    began: Arc<Mutex<Option<Instant>>>,
    _place: OwnedSemaphorePermit,
}

impl AtWork {
    fn new(began: Arc<Mutex<Option<Instant>>>, place: OwnedSemaphorePermit) -> AtWork {
        *began.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        let _place = place;
        AtWork { began, _place }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        *self.began.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

fn no_answer() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the file system does not answer")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn work_that_hangs_delays_nobody_for_longer_than_the_limit() {
        let worker = Worker::new(Duration::from_millis(50));
        let (release, released) = mpsc::channel::<()>();
        let hung = worker.run(move || released.recv()).await;
        assert_eq!(hung.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // What comes behind it does not wait at all, nor does it run later.
        let behind = worker.run(|| panic!("it must not run"));
        assert!(futures_util::FutureExt::now_or_never(behind).is_some_and(|done| done.is_err()));
        drop(release);
        while worker.run(|| ()).await.is_err() {
            tokio::task::yield_now().await;
        }
        assert_eq!(worker.run(|| 6 * 7).await.unwrap(), 42);
    }

    #[tokio::test]
    async fn what_panics_is_an_error_and_gives_its_place_back() {
        for _ in 0..2 * MAX_THREADS {
            let failed = run(|| panic!("on purpose")).await;
            assert!(failed.is_err());
        }
        assert_eq!(run(|| 6 * 7).await.unwrap(), 42);
    }
}
