//! Invariants, checked after each step in debug builds. Each check reports what went wrong: a machine that breaks one would press
//! a key that nobody can justify, or leave a request without a reply.

use super::held::MAX_HELD;
use super::judging::MAX_OPEN;
use super::timers::Timer;
use super::up::{Asker, Choosing, Hands};
use super::*;

/// The state before a step.
#[derive(Debug)]
pub(super) struct StateBefore {
    /// The dialog that keys were pressed on.
    answered: Option<String>,
    /// The dialog in which an option is being chosen.
    chosen_in: Option<String>,
    /// The due timers, if the step's only input is that time has passed.
    due: Option<Vec<(Timer, Instant)>>,
}

impl Machine {
    pub(super) fn before(&self, input: &Input, now: Instant) -> StateBefore {
        let woken = matches!(input, Input::TimePassed);
        StateBefore {
            answered: self.up().and_then(|up| up.asks.answered.clone()),
            chosen_in: self.choosing().map(|choosing| choosing.asked.id.clone()),
            due: woken.then(|| self.timers.due(now).collect()),
        }
    }

    fn choosing(&self) -> Option<&Choosing> {
        match &self.up()?.hands {
            Hands::Choosing(choosing) => Some(choosing),
            _ => None,
        }
    }

    pub(super) fn check(&self, before: &StateBefore, now: Instant) {
        self.check_keys(now);
        self.check_rule_answers_once(before);
        self.check_replies();
        self.check_nobody_is_forgotten();
        self.check_bounds();
        self.check_wakes(before, now);
    }

    /// At most one key per step, and it belongs to the current key sequence.
    fn check_keys(&self, now: Instant) {
        let mut keys = self.effects.iter().filter_map(|effect| match effect {
            Effect::Press {
                key,
                reason,
                purpose,
                ..
            } => Some((key, reason, *purpose)),
            _ => None,
        });
        let Some((key, reason, purpose)) = keys.next() else {
            return;
        };
        let second = keys.next();
        debug_assert!(second.is_none(), "{key} and {second:?} in one step");
        debug_assert!(!reason.is_empty(), "{key} has no reason");
        let up = self.up();
        debug_assert!(up.is_some(), "{key} is for a program that does not run");
        if let Some(up) = up {
            check_key(up, key, purpose, now);
        }
    }

    /// A rule answers a dialog once, whatever the result.
    fn check_rule_answers_once(&self, before: &StateBefore) {
        let by_rule = |choosing: &&Choosing| matches!(choosing.asker, Asker::Rule);
        let id = self.choosing().filter(by_rule).map(|one| &one.asked.id);
        let begins = id.filter(|id| before.chosen_in.as_ref() != Some(*id));
        let again = begins.is_some() && begins == before.answered.as_ref();
        debug_assert!(!again, "a rule answers {begins:?} again");
    }

    /// Each request gets exactly one reply.
    fn check_replies(&self) {
        let mut seen = Vec::new();
        for effect in &self.effects {
            if let Effect::Reply(token, _) = effect {
                debug_assert!(
                    *token == NOBODY || !seen.contains(token),
                    "{token} gets two replies"
                );
                seen.push(*token);
            }
        }
    }

    /// A message waits only if a program will run.
    fn check_nobody_is_forgotten(&self) {
        let down = matches!(self.life, Life::Down { .. });
        debug_assert!(!down || self.queue.is_empty(), "messages for nobody");
    }

    fn check_bounds(&self) {
        debug_assert!(self.judging.count() <= MAX_OPEN, "too many questions");
        let held = self.up().map_or(0, |up| up.held.len());
        debug_assert!(held <= MAX_HELD, "too many answers wait");
    }

    /// A wake-up that did nothing and is due again would keep a core busy.
    fn check_wakes(&self, before: &StateBefore, now: Instant) {
        let Some(due) = before.due.as_ref().filter(|due| !due.is_empty()) else {
            return;
        };
        let again = due.iter().copied().eq(self.timers.due(now));
        debug_assert!(
            !(again && self.effects.is_empty()),
            "due again at once: {due:?}"
        );
    }
}

/// A message is typed only if no dialog is up and the screen is known. A yes goes only to the requested dialog, after it has
/// settled on a known screen. Only a no or an interrupt is pressed in other cases.
fn check_key(up: &Up, key: &str, purpose: Purpose, now: Instant) {
    let types = match (&up.hands, purpose) {
        (Hands::Submitting { .. }, Purpose::Submits) => true,
        (Hands::Pasting { .. } | Hands::Clearing { .. }, Purpose::Types) => true,
        (Hands::Interrupting { .. }, Purpose::Declines) => false,
        (Hands::Choosing(choosing), Purpose::Declines) => {
            debug_assert!(choosing.declines, "{key} may approve");
            false
        }
        (Hands::Choosing(choosing), Purpose::Approves) => {
            let asked = up
                .dialog()
                .is_some_and(|dialog| dialog.id == choosing.asked.id);
            debug_assert!(asked, "{key} is for a dialog that is not up");
            debug_assert!(up.is_certain(), "{key} on an unknown screen");
            let settled = up.settled_dialog(now).is_some();
            debug_assert!(settled, "{key} on a dialog that has just changed");
            false
        }
        (hands, purpose) => {
            debug_assert!(false, "{key} ({purpose:?}) belongs to nothing: {hands:?}");
            false
        }
    };
    debug_assert!(!types || up.dialog().is_none(), "{key} at a dialog");
    debug_assert!(!types || up.is_certain(), "{key} on an unknown screen");
    debug_assert!(up.typing.is_none() || !types, "{key} while a person types");
}
