//! Recorded time, and the silences in it. Pure: the machine's time is an argument.
//!
//! A silence counts only if the terminal was read after it and there was nothing. While the terminal is not read (a slow daemon,
//! a rotation, a shim without CPU time), it is unknown whether the program has written, so recorded time stops.

use super::wire::micros_of;
use crate::core::terminal::{At, FRAME_SILENCE, FRAME_TIMEOUT};
use std::time::{Duration, Instant};

/// The silences that are reported. They end a frame; show a frame that is held back (mode 2026) and never ended; make an unknown
/// screen count as permanent; allow the reading of a screen that the program has not drawn for the current size; make an unknown
/// screen count as a question at the program's start; allow the reading of a new dialog on a screen that was drawn for another
/// size. With them the daemon needs no timers of its own.
const TOLD: [Duration; 6] = [
    FRAME_SILENCE,
    FRAME_TIMEOUT,
    Duration::from_millis(350),
    Duration::from_millis(1050),
    Duration::from_millis(3050),
    Duration::from_millis(10_050),
];

/// Recorded time: continues from the end of the file, and always grows between two events.
#[derive(Debug)]
pub(super) struct RecordingClock {
    /// The recorded time at `read_at`, the last read of or wait for the terminal.
    read: At,
    read_at: Instant,
    /// The last time that was returned.
    last: At,
    /// When output last came, or the terminal got another size.
    last_change: Option<At>,
    /// The next silence to report, counted from the last change.
    untold: Option<Duration>,
}

impl RecordingClock {
    pub fn after(last: At, now: Instant) -> Self {
        Self {
            read: last,
            read_at: now,
            last,
            last_change: None,
            untold: None,
        }
    }

    /// The time since the last read does not count: the program's output was not observed.
    pub fn stand_still(&mut self, now: Instant) {
        self.read_at = self.read_at.max(now);
    }

    /// The terminal was read at `now`, and there was nothing; returns the silence that is complete by then, once each.
    pub fn heard_nothing(&mut self, now: Instant) -> Option<At> {
        self.go_on(now);
        let due = self.due().filter(|&due| due <= self.read)?;
        let told = self.untold;
        self.untold = TOLD.into_iter().find(|next| Some(*next) > told);
        self.last = self.last.max(due);
        Some(due)
    }

    /// The time of an event at `now`, in the whole microseconds that the file can hold: later than all earlier ones, and before
    /// the end of a silence that was not observed.
    pub fn stamp(&mut self, now: Instant) -> At {
        let unheard = self.next_silence().is_some_and(|due| due <= now);
        match unheard {
            true => self.stand_still(now),
            false => self.go_on(now),
        }
        let at = At::from_micros(micros_of(self.read));
        self.last = at.max(self.last + At::from_micros(1));
        self.last
    }

    /// There was output, or the terminal got another size, at `at`.
    pub fn changed(&mut self, at: At) {
        self.last_change = Some(at);
        self.untold = Some(FRAME_SILENCE);
    }

    pub fn last_change(&self) -> Option<At> {
        self.last_change
    }

    /// The silences since the last change that were reported; a new listener has none of them.
    pub fn told(&self) -> impl Iterator<Item = At> + use<> {
        let untold = self.untold;
        let is_told = move |silence: &Duration| untold.is_none_or(|untold| *silence < untold);
        let told = TOLD.into_iter().take_while(is_told);
        self.last_change
            .into_iter()
            .flat_map(move |last| told.clone().map(move |silence| last + silence))
    }

    /// When the terminal has to be read, to know whether there is a silence to report.
    pub fn next_silence(&self) -> Option<Instant> {
        Some(self.read_at + self.due()?.saturating_sub(self.read))
    }

    fn due(&self) -> Option<At> {
        Some(self.last_change? + self.untold?)
    }

    fn go_on(&mut self, now: Instant) {
        self.read += now.saturating_duration_since(self.read_at);
        self.read_at = self.read_at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock, and the machine's time in milliseconds since it began.
    struct Run {
        clock: RecordingClock,
        began: Instant,
    }

    impl Run {
        fn new() -> Run {
            let began = Instant::now();
            let clock = RecordingClock::after(At::ZERO, began);
            Run { clock, began }
        }

        fn at(&self, ms: u64) -> Instant {
            self.began + Duration::from_millis(ms)
        }

        fn output(&mut self, ms: u64) -> At {
            let at = self.clock.stamp(self.at(ms));
            self.clock.changed(at);
            at
        }

        /// The silences that are reported when the terminal is read and there is nothing.
        fn nothing(&mut self, ms: u64) -> Vec<u128> {
            let now = self.at(ms);
            let told = std::iter::from_fn(|| self.clock.heard_nothing(now));
            told.map(|at| at.as_millis()).collect()
        }
    }

    fn ms(ms: u64) -> At {
        At::from_millis(ms)
    }

    #[test]
    fn each_silence_is_told_once_and_then_no_more() {
        let mut run = Run::new();
        assert_eq!(run.clock.next_silence(), None);
        run.output(100);
        assert!(run.nothing(119).is_empty());
        assert_eq!(run.nothing(125), [120]);
        assert_eq!(run.clock.next_silence(), Some(run.at(250)));
        assert_eq!(run.nothing(500), [250, 450]);
        assert_eq!(run.nothing(3200), [1150, 3150]);
        assert_eq!(run.nothing(10_200), [10_150]);
        assert_eq!(run.clock.next_silence(), None);
        assert!(run.nothing(19_000).is_empty());
        assert_eq!(run.output(19_500), ms(19_500), "time has not stood still");
    }

    /// The daemon has no timer: a stable screen is read when the silence is reported.
    #[test]
    fn a_silence_is_told_soon_after_each_patience_of_the_reader() {
        for patience in crate::core::claude::reading::PATIENCES {
            let soon = patience + Duration::from_millis(100);
            assert!(
                TOLD.iter().any(|told| (patience..soon).contains(told)),
                "{patience:?}"
            );
        }
    }

    #[test]
    fn a_new_listener_hears_of_the_silence_that_is() {
        let mut run = Run::new();
        assert_eq!(run.clock.told().next(), None, "nothing was ever written");
        run.output(100);
        assert_eq!(run.clock.told().next(), None, "nothing was heard yet");
        run.nothing(300);
        assert!(run.clock.told().eq([ms(120), ms(250)]));
        run.nothing(19_000);
        assert_eq!(run.clock.told().count(), TOLD.len());
    }

    #[test]
    fn a_change_begins_the_wait_anew() {
        let mut run = Run::new();
        run.output(100);
        assert_eq!(run.nothing(120), [120]);
        run.output(130);
        assert!(run.nothing(149).is_empty());
        assert_eq!(run.clock.next_silence(), Some(run.at(150)));
    }

    /// Output after a time in which nobody read the terminal may have been written at its beginning.
    #[test]
    fn time_in_which_the_terminal_was_not_read_is_no_silence() {
        for (read_until, unread_until) in [(100, 5100), (110, 5100), (119, 140), (130, 5100)] {
            for stood_still in [false, true] {
                let mut run = Run::new();
                run.output(100);
                let told = run.nothing(read_until);
                if stood_still {
                    run.clock.stand_still(run.at(unread_until - 5));
                    run.clock.stand_still(run.at(unread_until));
                }
                let due = run.clock.next_silence().expect("a silence to come");
                assert_eq!(due > run.at(unread_until), stood_still);
                let at = run.output(unread_until);
                let gap = at.saturating_sub(ms(read_until));
                assert!(gap <= Duration::from_micros(1), "{read_until}: {at:?}");
                assert!(told.iter().all(|told| *told <= at.as_millis()));
                let next = run.clock.last_change().expect("a change") + FRAME_SILENCE;
                assert!(run.nothing(unread_until + 19).is_empty());
                assert_eq!(run.nothing(unread_until + 21), [next.as_millis()]);
            }
        }
    }
}
