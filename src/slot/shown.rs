//! What everybody sees of a slot without asking its task: the latest status, and that something was written.

use super::memory::StateSince;
use crate::core::claude::reading::State;
use crate::core::model::{AnsweredDialog, SlotStatus};
use crate::core::policy::Decision;
use chrono::{DateTime, Utc};
use tokio::sync::watch;

#[derive(Debug)]
pub(super) struct PublishedStatus {
    status: watch::Sender<SlotStatus>,
    /// Counts the outputs of the program.
    pulse: watch::Sender<u64>,
    /// Since when the slot is in its state.
    since: DateTime<Utc>,
    /// Its program was found running, and has not been seen in any state yet.
    recalls_state: bool,
    /// The last answer to one of its dialogs.
    answered: Option<AnsweredDialog>,
}

impl PublishedStatus {
    pub fn new(status: SlotStatus, since: DateTime<Utc>) -> PublishedStatus {
        PublishedStatus {
            status: watch::Sender::new(status),
            pulse: watch::Sender::new(0),
            since,
            recalls_state: false,
            answered: None,
        }
    }

    pub fn watched(&self) -> (watch::Receiver<SlotStatus>, watch::Receiver<u64>) {
        (self.status.subscribe(), self.pulse.subscribe())
    }

    pub fn since(&self) -> DateTime<Utc> {
        self.since
    }

    /// The dialog that was up at the last look.
    pub fn dialog(&self) -> Option<String> {
        let status = self.status.borrow();
        status.dialog.as_ref().map(|dialog| dialog.id.clone())
    }

    pub fn answered(&self) -> Option<AnsweredDialog> {
        self.answered.clone()
    }

    /// A dialog was answered; an answer that is *ask* takes the one before it back.
    pub fn note_answer(&mut self, answer: AnsweredDialog) {
        if answer.verdict != Decision::Ask {
            self.answered = Some(answer);
            return;
        }
        let taken_back = |known: &mut AnsweredDialog| known.dialog == answer.dialog;
        self.answered.take_if(taken_back);
    }

    /// Who watches hears of a status that differs from the last.
    pub fn publish(&self, now: SlotStatus) {
        self.status.send_if_modified(|status| {
            let changed = *status != now;
            *status = now;
            changed
        });
    }

    /// The program has written something.
    pub fn pulse(&self) {
        self.pulse.send_modify(|count| *count += 1);
    }

    /// A program of an earlier daemon is taken up, in a state that is still to be seen.
    pub fn takes_up(&mut self) {
        self.recalls_state = true;
    }

    /// The slot enters a state. A daemon that takes it up in the state in which an earlier one has left it goes on counting
    /// from `before`. Returns what the next daemon must know; `None` while that is not known here.
    pub fn enter(&mut self, state: State, before: Option<StateSince>) -> Option<StateSince> {
        if self.recalls_state && state == State::Starting {
            self.since = Utc::now();
            return None;
        }
        let taken_up = std::mem::replace(&mut self.recalls_state, false);
        let recalled = before.filter(|before| taken_up && before.state == state);
        self.since = recalled.map_or_else(Utc::now, |before| before.since);
        let since = self.since;
        Some(StateSince { state, since })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::settings::SlotConfig;
    use crate::slot::journal::SlotPaths;
    use crate::slot::view::first_status;
    use std::path::Path;

    fn shown() -> PublishedStatus {
        let config = SlotConfig::usual("coder", "/work");
        let status = first_status(&config, &SlotPaths::new(Path::new("/logs"), "coder"));
        PublishedStatus::new(status, DateTime::UNIX_EPOCH)
    }

    #[test]
    fn a_slot_that_is_taken_up_in_the_same_state_goes_on_counting() {
        let since = DateTime::UNIX_EPOCH;
        let left = |state| Some(StateSince { state, since });
        for (taken_up, before, goes_on) in [
            (true, State::Idle, true),
            (true, State::Thinking, false),
            (false, State::Idle, false),
        ] {
            let mut shown = shown();
            if taken_up {
                shown.takes_up();
                assert_eq!(shown.enter(State::Starting, left(before)), None);
            }
            let known = shown.enter(State::Idle, left(before)).expect("a state");
            assert_eq!(known.state, State::Idle);
            assert_eq!(known.since == since, goes_on, "{taken_up} {before:?}");
            assert_eq!(shown.since(), known.since);
        }
    }

    #[test]
    fn a_status_is_news_if_it_differs() {
        let shown = shown();
        let (mut watched, mut pulse) = shown.watched();
        let same = watched.borrow_and_update().clone();
        shown.publish(same.clone());
        assert_eq!(watched.has_changed().ok(), Some(false));
        let mut other = same;
        other.restarts += 1;
        shown.publish(other);
        assert_eq!(watched.has_changed().ok(), Some(true));
        pulse.mark_unchanged();
        shown.pulse();
        assert_eq!(pulse.has_changed().ok(), Some(true));
    }
}
