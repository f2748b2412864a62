//! Blocking work outside the runtime's threads. If the system can't create a thread, that is an error; tokio's own pool
//! would panic.

use crate::os::headroom;
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// The size of a thread's stacks. A thread that gets the first but not the second, for signals, ends the whole process.
const THREAD: u64 = 4 << 20;

/// How many jobs share the processors and the disk at the same time. More would only wait for each other.
const PLACES: usize = 32;

/// A job that takes longer than this waits for something that does not answer. It keeps its thread and gives its place
/// to others, so that one hung file system does not stop the work on all others.
const PATIENCE: Duration = Duration::from_secs(2);

/// All threads for such work, including those that hang.
const MAX_THREADS: usize = 512;

static AT_WORK: LazyLock<Jobs> = LazyLock::new(Jobs::default);

/// Runs the work in a new thread. The thread ends with the work, also if the caller no longer waits for the result.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    run_among(&AT_WORK, work).await
}

/// Like [`run`], with an error if it takes longer than `limit`. Work that hangs keeps its thread.
pub async fn run_within<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    within(limit, run(work)).await
}

/// If a timer comes so much later than it was set, this process stood still, as after SIGSTOP.
const STOOD_STILL: Duration = Duration::from_secs(1);

/// The result of the work, or the error if it takes longer than the limit. A time in which this process stood still does not
/// count: the work had none of it either.
async fn within<T>(limit: Duration, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let mut work = std::pin::pin!(work);
    loop {
        let began = Instant::now();
        match tokio::time::timeout(limit, work.as_mut()).await {
            Ok(done) => return done,
            Err(_) if began.elapsed() > limit + STOOD_STILL => {}
            Err(_) => return Err(no_answer()),
        }
    }
}

async fn run_among<T: Send + 'static>(
    jobs: &'static Jobs,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (done, result) = oneshot::channel();
    // The receiver may be gone.
    let job = Box::new(move || drop(done.send(work())));
    jobs.start(job).await?;
    result
        .await
        .map_err(|_| io::Error::other("it panicked: see missiond.log"))
}

/// The running jobs, by number. The lowest number began first.
#[derive(Debug)]
struct Jobs {
    free: Arc<Semaphore>,
    places: Mutex<BTreeMap<u64, RunningJob>>,
    next: AtomicU64,
}

/// A running job. Its place is `None` if it has given it to others.
#[derive(Debug)]
struct RunningJob {
    began: tokio::time::Instant,
    permit: Option<OwnedSemaphorePermit>,
}

impl Default for Jobs {
    fn default() -> Jobs {
        Jobs {
            free: Arc::new(Semaphore::new(PLACES)),
            places: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }
}

impl Jobs {
    /// Runs a job in a new thread. Not generic, because its code would be repeated for each kind of job.
    async fn start(&'static self, job: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        let piece = self.begin().await?;
        headroom::check(THREAD).map_err(no_thread)?;
        std::thread::Builder::new()
            .name("missiond-work".to_owned())
            .spawn(move || {
                let _piece = piece;
                job();
            })
            .map(drop)
            .map_err(|error| no_thread(headroom::why_not_made(&error)))
    }

    /// Waits for a free place. The earlier jobs exceed their time one after the other, so this ends.
    async fn begin(&'static self) -> io::Result<JobGuard> {
        let permit = loop {
            let free = self.free.clone().acquire_owned();
            match tokio::time::timeout(self.patience(), free).await {
                Ok(permit) => break permit.map_err(io::Error::other)?,
                Err(_) => self.take_from_overdue(),
            }
        };
        let mut places = self.lock();
        if places.len() >= MAX_THREADS {
            let hang = format!("{MAX_THREADS} jobs wait for a file system that does not answer");
            return Err(no_thread(hang));
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let place = RunningJob {
            began: tokio::time::Instant::now(),
            permit: Some(permit),
        };
        places.insert(number, place);
        Ok(JobGuard { number, jobs: self })
    }

    /// How long until the oldest job with a place is overdue.
    fn patience(&self) -> Duration {
        let places = self.lock();
        let oldest = places.values().find(|place| place.permit.is_some());
        oldest.map_or(PATIENCE, |oldest| {
            PATIENCE.saturating_sub(oldest.began.elapsed())
        })
    }

    fn take_from_overdue(&self) {
        for place in self.lock().values_mut() {
            if place.began.elapsed() >= PATIENCE {
                place.permit = None;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, RunningJob>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One job, from its begin to its end, also if it panics.
struct JobGuard {
    number: u64,
    jobs: &'static Jobs,
}

impl Drop for JobGuard {
    fn drop(&mut self) {
        self.jobs.lock().remove(&self.number);
    }
}

fn no_thread(why: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("the daemon gets no thread: {why}"))
}

/// Runs the jobs of one owner, one at a time. A job that hangs takes one thread; callers wait for it, and for the jobs
/// after it, no longer than the limit.
#[derive(Debug, Clone)]
pub struct Worker {
    limit: Duration,
    place: Arc<Semaphore>,
    /// When the current job began.
    began: Arc<Mutex<Option<Instant>>>,
}

/// How long a job waits for one that is overdue.
const MOMENT: Duration = Duration::from_millis(20);

impl Worker {
    pub fn new(limit: Duration) -> Worker {
        Worker {
            limit,
            place: Arc::new(Semaphore::new(1)),
            began: Arc::default(),
        }
    }

    /// The result of the work, or why there is none. While an earlier job is overdue, the error comes soon.
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
        let place = self.place.clone();
        async move {
            // A job can be overdue only because this process stood still: then it ends in a moment.
            if hangs && tokio::time::timeout(MOMENT, place.acquire()).await.is_err() {
                return Err(no_answer());
            }
            within(limit, in_turn()).await
        }
    }

    /// Tells whether a job is overdue.
    fn hangs(&self) -> bool {
        let began = *self.began.lock().unwrap_or_else(PoisonError::into_inner);
        began.is_some_and(|began| began.elapsed() >= self.limit)
    }
}

/// A running job, also while it panics.
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
    async fn a_time_in_which_the_process_stood_still_does_not_count() {
        let limit = Duration::from_millis(200);
        let work = |still: Duration| async move {
            // Nothing of this process runs, as far as the work and its limit can tell.
            std::thread::sleep(still);
            tokio::time::sleep(limit / 4).await;
            Ok(())
        };
        within(limit, work(limit + STOOD_STILL)).await.unwrap();
        let hung = within(limit, std::future::pending::<io::Result<()>>()).await;
        assert_eq!(hung.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn work_that_hangs_delays_nobody_for_longer_than_the_limit() {
        let worker = Worker::new(Duration::from_millis(50));
        let (release, released) = mpsc::channel::<()>();
        let hung = worker.run(move || released.recv()).await;
        assert_eq!(hung.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // The thread began a moment after its caller.
        while !worker.hangs() {
            tokio::task::yield_now().await;
        }
        // A job after it waits for no more than a moment, and does not run later.
        let behind = worker.run(|| panic!("it must not run")).await;
        assert_eq!(behind.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(release);
        while worker.run(|| ()).await.is_err() {
            tokio::task::yield_now().await;
        }
        assert_eq!(worker.run(|| 6 * 7).await.unwrap(), 42);
    }

    #[tokio::test]
    async fn work_that_hangs_gives_its_place_to_other_work() {
        // A separate pool: the other tests have work to do meanwhile.
        let jobs: &Jobs = Box::leak(Box::default());
        let (releases, hung): (Vec<_>, Vec<_>) = (0..2 * PLACES)
            .map(|_| {
                let (release, released) = mpsc::channel::<()>();
                (
                    release,
                    tokio::spawn(run_among(jobs, move || released.recv())),
                )
            })
            .unzip();
        while jobs.lock().len() < PLACES {
            tokio::task::yield_now().await;
        }
        assert_eq!(run_among(jobs, || 6 * 7).await.unwrap(), 42);
        drop(releases);
        for hung in hung {
            hung.await.unwrap().unwrap().unwrap_err();
        }
    }

    #[tokio::test]
    async fn what_panics_is_an_error_and_gives_its_place_back() {
        for _ in 0..2 * PLACES {
            let failed = run(|| panic!("on purpose")).await;
            assert!(failed.is_err());
        }
        assert_eq!(run(|| 6 * 7).await.unwrap(), 42);
    }
}
