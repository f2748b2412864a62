//! Budgets of memory for the clients of each source: people together, each slot, and all slots together. A slot can
//! neither fill the daemon's memory nor use up the budgets of people and other slots.

use super::places::ConnectionSource;
use crate::os::outbox::Budget;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

#[derive(Debug)]
pub(super) struct Allowances {
    people: Budget,
    slots: Budget,
    one_slot: usize,
    /// The budgets of the slots that have clients.
    each: Mutex<BTreeMap<String, Budget>>,
}

impl Allowances {
    pub fn new(people: usize, slots: usize, one_slot: usize) -> Allowances {
        Allowances {
            people: Budget::new(people),
            slots: Budget::new(slots),
            one_slot,
            each: Mutex::default(),
        }
    }

    /// The budget of a source. A source that can't be identified gets no budget, so it can't ask for anything long.
    pub fn of(&self, source: &ConnectionSource) -> Budget {
        let name = match source {
            ConnectionSource::People => return self.people.clone(),
            ConnectionSource::Untold | ConnectionSource::Process(_) => return Budget::new(0),
            ConnectionSource::Slot(name) => name,
        };
        let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        each.retain(|_, budget| budget.is_in_use());
        let part = || self.slots.within(self.one_slot);
        each.entry(name.clone()).or_insert_with(part).clone()
    }
}
