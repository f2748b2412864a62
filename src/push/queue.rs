//! The queued messages of one channel, bounded in bytes.

use super::Delivered;
use crate::core::alerts::{Channel, Post};
use std::collections::VecDeque;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The maximum bytes of a queue, about sixty of the longest messages: one for each slot of a large installation.
const MAX_BYTES: usize = 256 << 10;

/// A message, and the receiver of its result.
#[derive(Debug)]
pub struct QueuedPush {
    post: Post,
    tries: u32,
    told: Option<oneshot::Sender<Delivered>>,
}

impl QueuedPush {
    pub fn new(post: Post, tries: u32) -> QueuedPush {
        QueuedPush {
            post,
            tries,
            told: None,
        }
    }

    pub fn telling(self, told: oneshot::Sender<Delivered>) -> QueuedPush {
        QueuedPush {
            told: Some(told),
            ..self
        }
    }

    pub fn channel(&self) -> Channel {
        self.post.channel
    }

    pub fn about(&self) -> &str {
        &self.post.about
    }

    pub fn post(&self) -> &Post {
        &self.post
    }

    pub fn tries(&self) -> u32 {
        self.tries
    }

    pub fn tell(self, result: Delivered) {
        if let Some(told) = self.told {
            // The client may be gone.
            let _ = told.send(result);
        }
    }

    fn is_ended_by(&self, end: &Post) -> bool {
        end.is_end && !self.post.is_end && self.post.about == end.about
    }
}

/// What the channel's thread does next.
#[derive(Debug)]
pub enum NextPush {
    Message(QueuedPush),
    End,
}

#[derive(Debug, Default)]
pub struct PushQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: VecDeque<QueuedPush>,
    bytes: usize,
    closed: bool,
}

impl QueueState {
    /// Removes and returns the first message that matches.
    fn take(&mut self, fits: impl Fn(&QueuedPush) -> bool) -> Option<QueuedPush> {
        let at = self.waiting.iter().position(fits)?;
        let taken = self.waiting.remove(at)?;
        self.bytes -= taken.post.bytes();
        Some(taken)
    }
}

impl PushQueue {
    /// Queues a message. If it ends an ask whose message was not sent yet, both are dropped.
    pub fn push(&self, pending: QueuedPush) -> io::Result<()> {
        let mut state = self.lock();
        if state.take(|one| one.is_ended_by(&pending.post)).is_some() {
            return Ok(());
        }
        let bytes = pending.post.bytes();
        if state.bytes + bytes > MAX_BYTES {
            return Err(io::Error::other("too many messages wait already"));
        }
        state.bytes += bytes;
        state.waiting.push_back(pending);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits for a message.
    pub fn next(&self) -> NextPush {
        let mut state = self.lock();
        loop {
            if state.closed {
                return NextPush::End;
            }
            if let Some(pending) = state.take(|_| true) {
                return NextPush::Message(pending);
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits before the next attempt; returns whether to make it. If a message came meanwhile that the ask is over,
    /// both messages are dropped.
    pub fn pause(&self, pending: &QueuedPush, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut state = self.lock();
        loop {
            let ended = state.take(|end| pending.is_ended_by(&end.post));
            if state.closed || ended.is_some() {
                return false;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// A panic while this was held can't leave the state half changed.
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::text::hidden::Hidden;

    fn message(about: &str, is_end: bool, size: usize) -> QueuedPush {
        let post = Post {
            channel: Channel::Webhook,
            about: about.to_owned(),
            is_end,
            url: Hidden::new("http://127.0.0.1/"),
            token: None,
            body: Hidden::new("x".repeat(size)),
        };
        QueuedPush::new(post, 2)
    }

    fn next(queue: &PushQueue) -> Option<(String, bool)> {
        match queue.next() {
            NextPush::Message(pending) => Some((pending.about().to_owned(), pending.post.is_end)),
            NextPush::End => None,
        }
    }

    #[test]
    fn messages_keep_their_order_and_one_that_is_over_goes_with_its_end() {
        let queue = PushQueue::default();
        for (about, is_end) in [("a", false), ("b", false), ("a", true), ("c", true)] {
            queue.push(message(about, is_end, 1)).unwrap();
        }
        assert_eq!(next(&queue), Some(("b".into(), false)));
        assert_eq!(next(&queue), Some(("c".into(), true)), "its message is out");
        queue.close();
        assert_eq!(next(&queue), None);
    }

    #[test]
    fn the_end_that_comes_between_two_tries_drops_both() {
        let queue = PushQueue::default();
        let under_way = message("a", false, 1);
        assert!(queue.pause(&under_way, Duration::ZERO));
        queue.push(message("a", true, 1)).unwrap();
        assert!(!queue.pause(&under_way, Duration::from_secs(3600)));
        queue.push(message("b", false, 1)).unwrap();
        assert_eq!(next(&queue), Some(("b".into(), false)));
    }

    #[test]
    fn it_has_a_bound_in_bytes_and_room_again_behind_what_was_taken() {
        let queue = PushQueue::default();
        let half = MAX_BYTES / 2 - 100;
        queue.push(message("a", false, half)).unwrap();
        queue.push(message("b", false, half)).unwrap();
        assert!(queue.push(message("c", false, half)).is_err());
        assert_eq!(next(&queue), Some(("a".into(), false)));
        queue.push(message("d", false, half)).unwrap();
    }
}
