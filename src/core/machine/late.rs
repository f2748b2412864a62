//! Answers whose key was pressed without a visible effect: a stopped or slow program reads the key later. The audit then records
//! the result, so that its last entry about a call is true.

use super::up::{Choosing, Hands};
use super::*;
use crate::core::claude::keys;

/// The most answers to one dialog that are distinguished: more means that somebody tries again and again.
const MAX_GIVEN: usize = 8;

/// The pending answers to the last dialog.
#[derive(Debug, Default)]
pub(super) struct Late {
    /// The dialog, and the answers whose keys were pressed on it, in order.
    dialog: Option<Box<Dialog>>,
    given: Vec<LateAnswer>,
    /// The call of a dialog that is gone, if it is unknown which of several answers took effect.
    unsure: Option<(String, Decider)>,
}

#[derive(Debug)]
struct LateAnswer {
    decision: Decision,
    /// `None` for a program in a slot or a task that interrupts.
    decider: Option<Decider>,
}

impl Late {
    fn add(&mut self, dialog: &Dialog, given: LateAnswer) {
        let is_same = |known: &Dialog| known.id == dialog.id || known.asks_the_same(dialog);
        if !self.dialog.as_deref().is_some_and(is_same) {
            self.dialog = Some(Box::new(dialog.clone()));
            self.given.clear();
        }
        if self.given.len() < MAX_GIVEN {
            self.given.push(given);
        }
    }

    fn is_about(&self, dialog: &Dialog) -> bool {
        let is_same = |known: &Dialog| known.id == dialog.id || known.asks_the_same(dialog);
        self.dialog.as_deref().is_some_and(is_same)
    }
}

impl Machine {
    /// The deciding key was pressed, and the dialog is still up.
    pub(super) fn may_be_taken_late(&mut self, choosing: &Choosing) {
        if !choosing.steps.decided {
            return;
        }
        let given = LateAnswer {
            decision: decision_of(choosing),
            decider: choosing.asker.decider(),
        };
        if let Some(up) = self.up_mut() {
            up.asks.late.add(&choosing.asked, given);
        }
    }

    /// The dialog is gone after this answer; there may be earlier answers.
    pub(super) fn has_also_answered(&mut self, choosing: &Choosing) {
        let others = self
            .up()
            .is_some_and(|up| up.asks.late.is_about(&choosing.asked));
        if others {
            self.may_be_taken_late(choosing);
        }
    }

    /// The same for keys that a person pressed at an attached terminal.
    pub(super) fn also_by_hand(&mut self, dialog: &Dialog, decision: Decision, person: Person) {
        let Some(up) = self.up_mut() else { return };
        if up.asks.late.is_about(dialog) {
            let decider = Some(Decider::Person(person));
            up.asks.late.add(dialog, LateAnswer { decision, decider });
        }
    }

    /// Records the result of answers without a visible effect, once their dialog is gone.
    pub(super) fn settle_late_answers(&mut self) {
        let Some(up) = self.up_mut() else { return };
        let chooses =
            matches!(&up.hands, Hands::Choosing(now) if up.asks.late.is_about(&now.asked));
        let stands = up
            .dialog()
            .is_some_and(|dialog| up.asks.late.is_about(dialog));
        if chooses || stands || !up.is_certain() {
            return;
        }
        let Some(dialog) = up.asks.late.dialog.take() else {
            return;
        };
        let given = std::mem::take(&mut up.asks.late.given);
        let Some(decider) = given.iter().find_map(|one| one.decider.clone()) else {
            return;
        };
        let differ = given.iter().any(|one| one.decision != given[0].decision);
        let verdict = match differ {
            false => Verdict::without_rule(given[0].decision, "answered: the key was taken late"),
            true => {
                let answers: Vec<&str> = given.iter().map(|one| one.decision.word()).collect();
                let answers = answers.join(", then ");
                let why = format!("answered, nobody knows how: keys were pressed for {answers}");
                Verdict::without_rule(Decision::Ask, why)
            }
        };
        up.asks.late.unsure = dialog
            .request
            .clone()
            .filter(|_| differ)
            .map(|id| (id, decider.clone()));
        let ask = self.ask_of(&dialog);
        self.decided(ask, verdict, decider);
    }

    /// A call has run: if it was unknown which answer took effect, it was the yes.
    pub(super) fn has_run(&mut self, ask: &Ask, id: Option<&str>) {
        let Some(up) = self.up_mut() else { return };
        let ran = |(unsure, _): &mut (String, Decider)| Some(unsure.as_str()) == id;
        if let Some((_, decider)) = up.asks.late.unsure.take_if(ran) {
            let verdict = Verdict::without_rule(Decision::Allow, "the call has run");
            self.decided(ask.clone(), verdict, decider);
        }
    }
}

fn decision_of(choosing: &Choosing) -> Decision {
    match keys::declines(&choosing.asked, &choosing.pick) {
        true => Decision::Deny,
        false => Decision::Allow,
    }
}
