//! When to tell the daemon that nothing came. Pure.

use crate::terminal::{At, FRAME_SILENCE, FRAME_TIMEOUT};
use std::time::Duration;

/// The silences that are told: one that ends a frame; one after which a frame that is held back (mode 2026) and
/// never ended is shown; one after which a screen that nobody knows counts as staying; one after which a screen is read
/// though the program has not drawn it for the size that the terminal has; one after which a screen that nobody knows is
/// a question that the program asks at its start. With them the daemon needs no timers of its own.
const TOLD: [Duration; 5] = [
    FRAME_SILENCE,
    FRAME_TIMEOUT,
    Duration::from_millis(350),
    Duration::from_millis(1050),
    Duration::from_millis(3050),
];

/// Which silences since the last change (output, or another size) were not told yet. Told times are exact multiples of recorded
/// time after the change, so that a replay, which has only the recording, finds the same moments.
#[derive(Debug, Default)]
pub(super) struct Silence {
    last_change: Option<At>,
    /// The next silence to tell, counted from the last change.
    untold: Option<Duration>,
}

impl Silence {
    /// There was output, or the terminal got another size, at `at`.
    pub fn broken(&mut self, at: At) {
        self.last_change = Some(at);
        self.untold = Some(FRAME_SILENCE);
    }

    pub fn last_change(&self) -> Option<At> {
        self.last_change
    }

    /// There is a new listener, who has not heard of any silence.
    pub fn tell_again(&mut self) {
        self.untold = Some(FRAME_SILENCE);
    }

    /// The recorded time at which there is something to tell.
    pub fn due(&self) -> Option<At> {
        Some(self.last_change? + self.untold?)
    }

    /// The silence that is complete at `now`, once each.
    pub fn take(&mut self, now: At) -> Option<At> {
        let due = self.due().filter(|&due| due <= now)?;
        let told = self.untold;
        self.untold = TOLD.into_iter().find(|next| Some(*next) > told);
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> At {
        At::from_millis(ms)
    }

    #[test]
    fn each_silence_is_told_once_and_then_no_more() {
        let mut silence = Silence::default();
        assert_eq!(silence.due(), None);
        silence.broken(ms(100));
        assert_eq!(silence.take(ms(119)), None);
        assert_eq!(silence.take(ms(125)), Some(ms(120)));
        assert_eq!(silence.due(), Some(ms(250)));
        assert_eq!(silence.take(ms(400)), Some(ms(250)));
        assert_eq!(silence.take(ms(500)), Some(ms(450)));
        assert_eq!(silence.take(ms(1200)), Some(ms(1150)));
        assert_eq!(silence.take(ms(3200)), Some(ms(3150)));
        assert_eq!(silence.due(), None);
        assert_eq!(silence.take(ms(9000)), None);
    }

    #[test]
    fn a_new_listener_hears_of_the_silence_that_is() {
        let mut silence = Silence::default();
        silence.tell_again();
        assert_eq!(silence.due(), None, "nothing was ever written");
        silence.broken(ms(100));
        assert_eq!(silence.take(ms(9000)), Some(ms(120)));
        silence.tell_again();
        assert_eq!(silence.take(ms(9000)), Some(ms(120)));
        assert_eq!(silence.take(ms(9000)), Some(ms(250)));
        assert_eq!(silence.take(ms(9000)), Some(ms(450)));
        assert_eq!(silence.take(ms(9000)), Some(ms(1150)));
        assert_eq!(silence.take(ms(9000)), Some(ms(3150)));
        assert_eq!(silence.take(ms(9000)), None);
    }

    #[test]
    fn a_change_begins_the_wait_anew() {
        let mut silence = Silence::default();
        silence.broken(ms(100));
        assert_eq!(silence.take(ms(120)), Some(ms(120)));
        silence.broken(ms(130));
        assert_eq!(silence.take(ms(149)), None);
        assert_eq!(silence.due(), Some(ms(150)));
    }
}
