//! A queue of writes on a separate thread, in order: a disk that does not answer blocks no caller. The queue is bounded
//! in bytes, and a write that does not fit is refused.

use crate::os::headroom;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// A write that takes longer than this waits for a disk that does not answer. Callers wait no longer.
pub const LIMIT: Duration = Duration::from_secs(1);

/// The queue of one thread. The thread ends with the last handle, once the queue is empty.
#[derive(Debug, Clone)]
pub struct WriteQueue {
    shared: Arc<WriterThread>,
    _handle: Arc<CloseOnDrop>,
}

/// The number of a queued write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

type Write = Box<dyn FnOnce() + Send>;

#[derive(Debug)]
struct WriterThread {
    room: usize,
    queue: Mutex<Queue>,
    /// Signalled when there is something to write, or no handle any more.
    given: Condvar,
    /// Signalled after each write, for threads that wait.
    written: Condvar,
    /// The number of the last finished write.
    done: watch::Sender<u64>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<(usize, Write)>,
    bytes: usize,
    last: u64,
    done: u64,
    /// When the current write began.
    began: Option<Instant>,
    is_closed: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Queue of {} bytes", self.bytes)
    }
}

impl Queue {
    fn hangs(&self) -> bool {
        self.began.is_some_and(|began| began.elapsed() >= LIMIT)
    }
}

#[derive(Debug)]
struct CloseOnDrop(Arc<WriterThread>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.queue().is_closed = true;
        self.0.given.notify_all();
    }
}

impl WriteQueue {
    /// Starts the thread. `room` is the maximum bytes of queued writes.
    pub fn start(name: &str, room: usize) -> io::Result<WriteQueue> {
        let shared = Arc::new(WriterThread {
            room,
            queue: Mutex::default(),
            given: Condvar::new(),
            written: Condvar::new(),
            done: watch::Sender::default(),
        });
        let worker = shared.clone();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || worker.run())
            .map_err(|error| io::Error::other(headroom::why_not_made(&error)))?;
        Ok(WriteQueue {
            _handle: Arc::new(CloseOnDrop(shared.clone())),
            shared,
        })
    }

    /// Queues a write after all earlier ones. `None` if it does not fit; a write that is larger than the whole room
    /// fits into an empty queue.
    pub fn push(&self, bytes: usize, write: impl FnOnce() + Send + 'static) -> Option<Ticket> {
        let mut queue = self.shared.queue();
        if queue.bytes > 0 && queue.bytes + bytes > self.shared.room {
            return None;
        }
        queue.bytes += bytes;
        queue.last += 1;
        queue.waiting.push_back((bytes, Box::new(write)));
        self.shared.given.notify_one();
        Some(Ticket(queue.last))
    }

    /// Tells whether the current write is overdue.
    pub fn hangs(&self) -> bool {
        self.shared.queue().hangs()
    }

    /// Tells whether no write waits after the current one.
    pub fn is_at_end(&self) -> bool {
        self.shared.queue().waiting.is_empty()
    }

    /// Tells whether all queued writes are finished.
    pub fn is_settled(&self) -> bool {
        let queue = self.shared.queue();
        queue.done == queue.last
    }

    /// Returns when all writes queued until now are finished, or if the disk does not answer.
    pub fn settled(&self) -> impl Future<Output = ()> + Send + use<> {
        let (last, hangs) = {
            let queue = self.shared.queue();
            (queue.last, queue.hangs())
        };
        let mut done = self.shared.done.subscribe();
        async move {
            if !hangs {
                let written = done.wait_for(|done| *done >= last);
                let _ = tokio::time::timeout(LIMIT, written).await;
            }
        }
    }

    /// Like [`WriteQueue::settled`], for one write, on a thread that may block.
    pub fn wait_for(&self, Ticket(number): Ticket) {
        let queue = self.shared.queue();
        let waits = |queue: &mut Queue| queue.done < number && !queue.hangs();
        let waited = self.shared.written.wait_timeout_while(queue, LIMIT, waits);
        drop(waited);
    }
}

impl WriterThread {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        while let Some((bytes, write)) = self.next() {
            // A panic is in missiond.log, and the next write goes on.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(write));
            let mut queue = self.queue();
            queue.bytes -= bytes;
            queue.done += 1;
            queue.began = None;
            self.done.send_replace(queue.done);
            self.written.notify_all();
        }
    }

    fn next(&self) -> Option<(usize, Write)> {
        let queue = self.queue();
        let idle = |queue: &mut Queue| queue.waiting.is_empty() && !queue.is_closed;
        let waited = self.given.wait_while(queue, idle);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
        let next = queue.waiting.pop_front()?;
        queue.began = Some(Instant::now());
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[tokio::test]
    async fn all_is_written_in_order_and_what_does_not_fit_is_said() {
        let queue = WriteQueue::start("test", 10).unwrap();
        let (release, released) = mpsc::channel::<()>();
        let written: Arc<Mutex<Vec<u32>>> = Arc::default();
        let write = |number: u32| {
            let written = written.clone();
            move || written.lock().unwrap().push(number)
        };
        assert!(
            queue
                .push(4, move || {
                    let _ = released.recv();
                })
                .is_some()
        );
        assert!(queue.push(4, write(1)).is_some());
        assert!(queue.push(4, write(2)).is_none(), "12 bytes are too much");
        assert!(queue.push(2, write(3)).is_some());
        assert!(!queue.is_settled());
        drop(release);
        queue.settled().await;
        assert_eq!(*written.lock().unwrap(), [1, 3]);
        assert!(queue.push(100, write(4)).is_some(), "it stands alone");
        queue.settled().await;
        assert!(queue.is_settled());
    }

    #[tokio::test]
    async fn nobody_waits_for_a_write_that_hangs_and_it_is_done_later() {
        let queue = WriteQueue::start("test", 10).unwrap();
        let (release, released) = mpsc::channel::<()>();
        queue
            .push(1, move || {
                let _ = released.recv();
            })
            .unwrap();
        let ticket = queue.push(1, || ()).unwrap();
        queue.settled().await;
        assert!(!queue.is_settled());
        // The thread may have begun a moment later than the wait.
        while !queue.hangs() {
            tokio::task::yield_now().await;
        }
        queue.wait_for(ticket);
        let at_once = futures_util::FutureExt::now_or_never(queue.settled());
        assert!(at_once.is_some());
        drop(release);
        while !queue.is_settled() {
            tokio::task::yield_now().await;
        }
        assert!(!queue.hangs());
    }

    #[tokio::test]
    async fn a_write_that_panics_does_not_end_the_thread() {
        let queue = WriteQueue::start("test", 10).unwrap();
        queue.push(1, || panic!("on purpose")).unwrap();
        queue.push(1, || ()).unwrap();
        while !queue.is_settled() {
            tokio::task::yield_now().await;
        }
    }
}
