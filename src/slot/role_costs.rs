//! What the slots of each role have cost today, together: each slot notes its own cost of the day, and hears of the others'.

use super::kind::ProgramKind;
use super::{Slot, health};
use crate::core::machine::{Input, RoleCost};
use crate::core::text::dollars::Dollars;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Each slot has one entry, of its last day with a cost.
#[derive(Debug, Clone, Default)]
pub struct RoleCosts {
    noted: Arc<Mutex<HashMap<String, NotedCost>>>,
    /// The last day on which a person was told of a role's limit.
    told: Arc<Mutex<HashMap<String, i32>>>,
    changes: Arc<watch::Sender<()>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct NotedCost {
    role: String,
    day: i32,
    cost: Dollars,
}

impl RoleCosts {
    /// The slot has cost this much on this day so far. The other slots hear of it if it is new.
    pub fn note(&self, slot: &str, role: &str, (day, cost): (i32, Dollars)) {
        let now = NotedCost {
            role: role.to_owned(),
            day,
            cost,
        };
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if cost == Dollars::ZERO && !noted.contains_key(slot) || noted.get(slot) == Some(&now) {
            return;
        }
        noted.insert(slot.to_owned(), now);
        drop(noted);
        self.changes.send_replace(());
    }

    /// What all slots of the role have cost on this day.
    pub fn of(&self, role: &str, day: i32) -> Dollars {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        let of_role = noted
            .values()
            .filter(|noted| noted.role == role && noted.day == day);
        of_role.fold(Dollars::ZERO, |sum, noted| sum.plus(noted.cost))
    }

    /// Whether nobody has told a person yet that the limit of this role is reached on this day. The next one hears that it is told.
    pub fn is_first_to_tell(&self, role: &str, day: i32) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.insert(role.to_owned(), day) != Some(day)
    }

    /// Hears of changes; what is known so far counts as one.
    pub fn watch(&self) -> watch::Receiver<()> {
        let mut changes = self.changes.subscribe();
        changes.mark_changed();
        changes
    }
}

/// A slot's view of them.
#[derive(Debug)]
pub(super) struct RoleCostWatch {
    costs: RoleCosts,
    changes: watch::Receiver<()>,
}

impl RoleCostWatch {
    pub fn new(costs: &RoleCosts) -> RoleCostWatch {
        RoleCostWatch {
            costs: costs.clone(),
            changes: costs.watch(),
        }
    }

    /// Returns when they have changed. It has its own sender, so the channel never closes.
    pub async fn changed(&mut self) {
        let _ = self.changes.changed().await;
    }
}

impl<K: ProgramKind> Slot<K> {
    pub(super) fn note_cost(&self) {
        let today = self.machine.past().today();
        let role = &self.machine.running().role;
        self.role_costs
            .costs
            .note(&self.program.settings().name, role, today);
    }

    /// Another slot of the role, or this one, has cost more.
    pub(super) async fn role_costs_changed(&mut self) {
        let running = self.machine.running();
        let (role, most) = (&running.role, self.machine.config());
        let Some(most) = most.supervision.max_role_cost_per_day else {
            return;
        };
        let Some((day, ends)) = health::today() else {
            return;
        };
        let costs = &self.role_costs.costs;
        let cost = costs.of(role, day);
        let is_told = cost < most || !costs.is_first_to_tell(role, day);
        let cost = RoleCost {
            day,
            ends,
            cost,
            is_told,
        };
        self.input(Input::RoleCost(cost)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slots_of_a_role_are_added_up_by_day() {
        let costs = RoleCosts::default();
        let dollars = |amount| Dollars::from_f64(amount).unwrap();
        costs.note("a", "coder", (1, dollars(2.0)));
        costs.note("b", "coder", (1, dollars(0.5)));
        costs.note("c", "writer", (1, dollars(7.0)));
        assert_eq!(costs.of("coder", 1), dollars(2.5));
        assert_eq!(costs.of("coder", 2), Dollars::ZERO);
        // The figure of a slot replaces the one before, also that of another day or role.
        costs.note("a", "coder", (2, dollars(0.25)));
        costs.note("b", "writer", (1, dollars(0.75)));
        assert_eq!(costs.of("coder", 1), Dollars::ZERO);
        assert_eq!(costs.of("coder", 2), dollars(0.25));
        assert_eq!(costs.of("writer", 1), dollars(7.75));
    }

    #[test]
    fn only_what_is_new_is_told() {
        let costs = RoleCosts::default();
        let mut heard = costs.watch();
        assert!(heard.has_changed().unwrap(), "what is known at the start");
        heard.mark_unchanged();
        costs.note("a", "coder", (1, Dollars::ZERO));
        assert!(!heard.has_changed().unwrap(), "nothing was spent");
        for expected in [true, false] {
            costs.note("a", "coder", (1, Dollars::from_f64(1.0).unwrap()));
            assert_eq!(heard.has_changed().unwrap(), expected);
            heard.mark_unchanged();
        }
    }
}
