//! Connections on which nothing was asked yet, by process. To find out where a client comes from costs some milliseconds on a
//! busy machine, and those who connect after it wait for that: a process that opens connections and asks nothing on them has
//! only a number of them looked at. Pure.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Connections of one process on which nothing was asked, within [`WITHIN`]: more than there are places for people. A client
/// asks as soon as it is connected.
pub(super) const MAX: usize = 512;

/// How long a connection counts on which nothing was asked, whether it is still there or not.
const WITHIN: Duration = Duration::from_secs(10);

/// When each of them was made, by process.
#[derive(Debug, Default)]
pub(super) struct Unasked {
    made: HashMap<i32, VecDeque<Instant>>,
    /// When what counts no more was last removed.
    cleared: Option<Instant>,
}

impl Unasked {
    /// Whether a new connection of this process is to be looked at; it counts until something is asked on it.
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

    /// Something was asked on one of its connections.
    pub fn asked(&mut self, process: i32) {
        if let Some(made) = self.made.get_mut(&process) {
            made.pop_front();
            if made.is_empty() {
                self.made.remove(&process);
            }
        }
    }

    /// Most processes are gone by then.
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
        // One more for each on which it asks.
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
