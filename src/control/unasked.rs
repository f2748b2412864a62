//! Counts connections without a request, by process. The lookup of a client's origin takes some milliseconds on a busy
//! machine, and clients that connect after it wait for that: of a process that opens connections and sends nothing,
//! only a bounded number is looked up. Pure.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// The maximum of connections of one process without a request, within [`WITHIN`]: more than there are places for
/// people. A client normally sends its request as soon as it is connected.
pub(super) const MAX: usize = 512;

/// How long a connection without a request counts, even if it is closed.
const WITHIN: Duration = Duration::from_secs(10);

/// The times of such connections, by process.
#[derive(Debug, Default)]
pub(super) struct Unasked {
    made: HashMap<i32, VecDeque<Instant>>,
    /// The time at which expired entries were last removed.
    cleared: Option<Instant>,
}

impl Unasked {
    /// Tells whether a new connection of this process is to be looked up. It counts until a request comes on it.
    pub fn admits(&mut self, process: i32, now: Instant) -> bool {
        self.clear(now);
        let made = self.made.entry(process).or_default();
        while made.front().is_some_and(|made| now >= *made + WITHIN) {
            made.pop_front();
        }
        let admits = made.len() < MAX;
        if admits {
            made.push_back(now);
        }
        admits
    }

    /// Notes a request on one of its connections.
    pub fn asked(&mut self, process: i32) {
        if let Some(made) = self.made.get_mut(&process) {
            made.pop_front();
            if made.is_empty() {
                self.made.remove(&process);
            }
        }
    }

    /// Removes expired entries. Most of those processes are gone.
    fn clear(&mut self, now: Instant) {
        if self.cleared.is_some_and(|last| now < last + WITHIN) {
            return;
        }
        self.cleared = Some(now);
        let counts =
            |made: &VecDeque<Instant>| made.back().is_some_and(|last| now < *last + WITHIN);
        self.made.retain(|_, made| counts(made));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_asks_is_never_held_up_and_one_that_does_not_is() {
        let mut unasked = Unasked::default();
        let start = Instant::now();
        for _ in 0..10 * MAX {
            assert!(unasked.admits(7, start));
            unasked.asked(7);
        }
        assert!(unasked.made.is_empty());
        for n in 0..10 * MAX {
            assert_eq!(unasked.admits(7, start), n < MAX);
        }
        assert!(unasked.admits(8, start), "another process");
        // One more is admitted for each request.
        unasked.asked(7);
        assert!(unasked.admits(7, start));
        assert!(!unasked.admits(7, start));
        assert!(!unasked.admits(7, start + WITHIN - Duration::from_millis(1)));
        assert!(unasked.admits(7, start + WITHIN));
    }

    #[test]
    fn processes_that_are_gone_are_forgotten() {
        let mut unasked = Unasked::default();
        let start = Instant::now();
        for process in 0..1000 {
            assert!(unasked.admits(process, start));
        }
        assert!(unasked.admits(1, start + 2 * WITHIN));
        assert_eq!(unasked.made.len(), 1);
    }
}
