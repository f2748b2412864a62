//! Which slot has which conversation open. Claude Code notes that too, but only once it is up: two slots that start
//! in the same moment would not see each other, and older versions note nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// As many entries as there are slots that run.
#[derive(Debug, Clone, Default)]
pub struct ConversationLocks {
    taken: Arc<Mutex<HashMap<Uuid, String>>>,
}

/// A conversation that no other slot opens while this is held.
#[derive(Debug)]
pub(super) struct ConversationLock {
    id: Uuid,
    locks: ConversationLocks,
}

impl ConversationLocks {
    /// Takes it for this slot, or says which one has it.
    pub(super) fn take(&self, id: Uuid, slot: &str) -> Result<ConversationLock, String> {
        let mut taken = self.taken();
        if let Some(other) = taken.get(&id) {
            return Err(other.clone());
        }
        taken.insert(id, slot.to_owned());
        let locks = self.clone();
        Ok(ConversationLock { id, locks })
    }

    /// Held for a moment, never across an await.
    fn taken(&self) -> MutexGuard<'_, HashMap<Uuid, String>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConversationLock {
    pub(super) fn is_for(&self, id: Uuid) -> bool {
        self.id == id
    }
}

impl Drop for ConversationLock {
    fn drop(&mut self) {
        self.locks.taken().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slot_has_it_until_it_lets_go() {
        let (locks, id) = (ConversationLocks::default(), Uuid::new_v4());
        let held = locks.take(id, "a").unwrap();
        assert!(held.is_for(id));
        assert_eq!(locks.take(id, "b").unwrap_err(), "a");
        assert!(locks.take(Uuid::new_v4(), "b").is_ok());
        drop(held);
        assert!(locks.take(id, "b").is_ok());
    }
}
