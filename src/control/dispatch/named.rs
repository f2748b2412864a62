//! Which slots a request means, by name, by role, or all.

use super::Dispatcher;
use crate::control::kinds::Kind;
use crate::control::protocol::*;
use crate::slot::SlotHandle;
use std::collections::BTreeSet;

impl Dispatcher {
    /// The names that are meant, in their order, each once; for none, all slots of the configuration. Sessions
    /// belong to whoever made them, and are named.
    pub fn names(&self, select: &Select) -> Result<Vec<String>, RpcError> {
        let slots = self.daemon.slots();
        if select.slots.is_empty() {
            let of_config = slots.iter().filter(|(_, slot)| !slot.is_session());
            return Ok(of_config.map(|(name, _)| name.clone()).collect());
        }
        let mut names: Vec<String> = Vec::new();
        for wanted in &select.slots {
            let found: Vec<&String> = match wanted.strip_prefix('@') {
                Some(role) => slots
                    .iter()
                    .filter(|(_, slot)| slot.status().role == role)
                    .map(|(name, _)| name)
                    .collect(),
                None => slots.keys().filter(|name| *name == wanted).collect(),
            };
            if found.is_empty() {
                return Err(self.unknown(wanted));
            }
            for name in found {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
        }
        Ok(names)
    }

    fn unknown(&self, name: &str) -> RpcError {
        if let Some(gone) = self.daemon.gone(name) {
            let at = gone.at.format("%H:%M:%S UTC");
            let text = format!("the session `{name}` was closed at {at}: {}", gone.why);
            return RpcError::new(Fault::Usage, text).next("missiond sessions");
        }
        let slots = self.daemon.slots();
        let unknown = |text: String| RpcError::new(Fault::Usage, text);
        if let Some(role) = name.strip_prefix('@') {
            let roles: BTreeSet<String> = slots.values().map(|slot| slot.status().role).collect();
            let roles: Vec<String> = roles.into_iter().collect();
            return unknown(format!("no slot has the role `{role}`"))
                .next(format!("the roles are: {}", roles.join(", ")));
        }
        let known: Vec<&str> = slots.keys().map(String::as_str).collect();
        unknown(format!("no slot or session `{name}`")).next(match known.is_empty() {
            true => "there are none; make a session with: missiond spawn".to_owned(),
            false => format!("the slots are: {}", some_of(&known)),
        })
    }

    /// A slot or a session, if there is one of this name.
    pub fn handle(&self, name: &str) -> Option<SlotHandle> {
        self.daemon.slots().get(name).cloned()
    }

    pub fn slot(&self, name: &str) -> Result<SlotHandle, RpcError> {
        self.daemon
            .slots()
            .get(name)
            .cloned()
            .ok_or_else(|| self.unknown(name))
    }

    /// What a name stands for, if for anything.
    pub(super) fn kind_of(&self, name: &str) -> Option<Kind> {
        let slot = self.handle(name)?;
        Some(match slot.status().kind.as_str() {
            _ if slot.is_session() => Kind::Session,
            "claude" => Kind::Claude,
            _ => Kind::Shell,
        })
    }

    pub fn statuses(&self, selected: &Option<Vec<String>>) -> Vec<SlotStatus> {
        let slots = self.daemon.slots();
        let meant = slots
            .iter()
            .filter(|(name, _)| selected.as_ref().is_none_or(|names| names.contains(name)));
        meant.map(|(_, slot)| slot.status()).collect()
    }
}

/// A line's worth of names.
const NAMES_SHOWN: usize = 12;

fn some_of(names: &[&str]) -> String {
    let shown = names[..names.len().min(NAMES_SHOWN)].join(", ");
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more: missiond status, missiond sessions"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_names_are_counted_and_not_all_shown() {
        assert_eq!(some_of(&["a", "b"]), "a, b");
        assert_eq!(
            some_of(&["a"; NAMES_SHOWN]).matches('a').count(),
            NAMES_SHOWN
        );
        let many = some_of(&["x"; NAMES_SHOWN + 3]);
        assert!(many.contains("x and 3 more"), "{many}");
    }
}
