//! All instants at which something changes by itself, in one table.
//!
//! Each instant follows from a fact of the state. The table is computed from these facts after each step, so a timer never
//! outlives its reason.

use super::doubt::Dispute;
use super::up::{Hands, Up};
use super::*;

/// The timers, and a list of all of them.
macro_rules! timers {
    ($($(#[$what:meta])* $timer:ident,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Timer {
            $($(#[$what])* $timer,)*
        }

        impl Timer {
            const ALL: &[Timer] = &[$(Timer::$timer,)*];
        }

        const COUNT: usize = [$(Timer::$timer,)*].len();
    };
}

timers! {
    /// The program is restarted.
    Restart,
    /// The usage limit that messages wait for is reset.
    LimitLifted,
    /// The slot has been idle for its limit.
    IdleStop,
    /// The rules have not answered a question.
    RulesLate,
    /// The pasted text has been in the input box for long enough: Enter.
    PasteStands,
    /// The pasted text is not visible: the screen is redrawn.
    PasteHidden,
    /// The Enter was lost: press another one.
    EnterLost,
    /// The current dialog has been stable for long enough to press a key on it, or to ask the rules about it.
    DialogSettles,
    /// The key that moves the marked row was lost.
    ArrowLost,
    /// The expected effect of the current keys has not appeared.
    KeysFail,
    /// The screen has been idle long enough to conclude that the turn is over.
    TurnOver,
    /// A disagreement of the witnesses becomes a doubt, ends, or causes a redraw of the screen.
    Doubt,
    /// The expected dialog of a call has appeared, or never will.
    DialogComes,
    /// The person at the keyboard has pressed nothing for a while.
    PersonPauses,
    /// An answer has waited long enough for the screen to be drawn.
    DrawnAtLast,
}

/// When each timer is due, if it is set.
#[derive(Debug, Default)]
pub(super) struct Timers {
    at: [Option<Instant>; COUNT],
}

impl Timers {
    pub fn set(&mut self, timer: Timer, at: Instant) {
        self.at[timer as usize] = Some(at);
    }

    pub fn clear(&mut self, timer: Timer) {
        self.at[timer as usize] = None;
    }

    /// The timers that are due at `now`.
    pub fn due(&self, now: Instant) -> impl Iterator<Item = (Timer, Instant)> {
        let set = |timer: &Timer| self.at[*timer as usize].map(|at| (*timer, at));
        let due = Timer::ALL.iter().filter_map(set);
        due.filter(move |(_, at)| *at <= now)
    }

    /// When the first timer is due.
    pub fn next(&self) -> Option<Instant> {
        self.at.iter().flatten().min().copied()
    }
}

impl Machine {
    /// Sets each timer from the current facts.
    pub(super) fn set_timers(&mut self) {
        for timer in Timer::ALL {
            match self.due_at(*timer) {
                Some(at) => self.timers.set(*timer, at),
                None => self.timers.clear(*timer),
            }
        }
    }

    fn due_at(&self, timer: Timer) -> Option<Instant> {
        match (timer, &self.life) {
            (Timer::RulesLate, _) => self.judging.due(),
            (Timer::Restart, Life::Waiting { until, .. }) => Some(*until),
            (Timer::Restart, Life::Unreached { look_at, .. }) => *look_at,
            (Timer::LimitLifted, Life::Up(_)) => {
                let waits = !self.queue.is_empty() && !self.person_types();
                self.held_until.filter(|_| waits)
            }
            (Timer::IdleStop, Life::Up(_)) => self.rest_ends(),
            // While the rules judge the current dialog, it waits for their answer, not for a time.
            (Timer::DialogSettles, Life::Up(up)) if up.hands_are_free() => {
                let settled = up.settles_for_rules()?;
                (!self.rules_look_at_dialog()).then_some(settled)
            }
            (_, Life::Up(up)) => up.due_at(timer),
            _ => None,
        }
    }
}

impl Up {
    fn due_at(&self, timer: Timer) -> Option<Instant> {
        match (timer, &self.hands) {
            (Timer::PasteStands, Hands::Pasting { seen, .. }) => seen.map(|at| at + PASTE_SETTLES),
            (Timer::PasteHidden, Hands::Pasting { repaint, .. }) => *repaint,
            (Timer::EnterLost, Hands::Submitting { again, .. }) => *again,
            (Timer::DialogSettles, Hands::Choosing(choosing)) if choosing.steps.moves == 0 => {
                let may_press = self.is_certain();
                self.settles_at(choosing.declines).filter(|_| may_press)
            }
            (Timer::ArrowLost, Hands::Choosing(choosing)) => {
                let may_press = self.is_certain() && self.asks.since.is_some();
                let moves = choosing.steps.moves > 0 && !choosing.steps.decided;
                (moves && may_press).then_some(choosing.steps.again)
            }
            (Timer::KeysFail, hands) => hands.fail_at(),
            (Timer::TurnOver, _) => {
                let turn = self.turn.as_ref().filter(|turn| !turn.looking)?;
                turn.idle_since.map(|since| since + IDLE_IS_OVER)
            }
            (Timer::Doubt, _) => self.dispute.as_ref().and_then(Dispute::next),
            (Timer::DialogComes, _) => self.gate.calls.dialog_comes_until(),
            (Timer::PersonPauses, _) => self.typing.as_ref().map(|typing| typing.until),
            (Timer::DrawnAtLast, _) => self.held.iter().map(|held| held.until).min(),
            _ => None,
        }
    }

    /// When a rule may judge the current dialog. Never on an uncertain screen, however long it is stable.
    fn settles_for_rules(&self) -> Option<Instant> {
        let since = self.asks.since?;
        (self.is_certain() && self.may_answer_soon()).then_some(since + SETTLED)
    }
}

impl Hands {
    /// When the current keys count as failed.
    fn fail_at(&self) -> Option<Instant> {
        match self {
            Hands::Free => None,
            Hands::Pasting { until, .. }
            | Hands::Submitting { until, .. }
            | Hands::Clearing { until, .. }
            | Hands::Interrupting { until, .. } => Some(*until),
            Hands::Choosing(choosing) => Some(choosing.steps.until),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_timer_is_next_and_one_that_is_cleared_is_not() {
        let now = Instant::now();
        let at = |seconds: u64| now + Duration::from_secs(seconds);
        let mut timers = Timers::default();
        assert_eq!(timers.next(), None);
        timers.set(Timer::KeysFail, at(5));
        timers.set(Timer::EnterLost, at(2));
        timers.set(Timer::Doubt, at(9));
        assert_eq!(timers.next(), Some(at(2)));
        let due =
            |timers: &Timers, now| timers.due(now).map(|(timer, _)| timer).collect::<Vec<_>>();
        assert_eq!(due(&timers, at(1)), []);
        assert_eq!(due(&timers, at(5)), [Timer::EnterLost, Timer::KeysFail]);
        timers.clear(Timer::EnterLost);
        assert_eq!(timers.next(), Some(at(5)));
        timers.set(Timer::KeysFail, at(10));
        assert_eq!(timers.next(), Some(at(9)));
    }
}
