//! Finds the slots that a request means: by name, by role, or all.

use super::Dispatcher;
use crate::control::kinds::TargetKind;
use crate::control::requests::{Method, Submit};
use crate::core::model::*;
use crate::core::text::diagnostic::nearest;
use crate::os::local_time;
use crate::slot::SlotHandle;
use serde_json::Value;
use std::collections::BTreeSet;

impl Dispatcher {
    /// The names that are meant, in their order, each once; if there are none, all slots of the configuration. Sessions
    /// are not among them: they belong to their owners, and must be named.
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
                    .filter(|(_, slot)| !slot.is_session() && slot.status().role == role)
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

    /// Like [`Dispatcher::names`], as handles.
    pub fn selected(&self, select: &Select) -> Result<Vec<SlotHandle>, RpcError> {
        let names = self.names(select)?;
        names.iter().map(|name| self.slot(name)).collect()
    }

    /// Replaces `@role` with the name of its slot, if a request takes one slot and the role has one. A task keeps its
    /// role: the queue finds a slot that is free.
    pub(super) fn one_of_role(&self, method: &str, mut params: Value) -> Result<Value, RpcError> {
        let slot = params.get("slot").and_then(Value::as_str);
        let role = slot.filter(|slot| slot.starts_with('@') && method != Submit::NAME);
        if let Some(role) = role {
            let name = self.only_slot_of(role)?;
            params["slot"] = Value::String(name);
        }
        Ok(params)
    }

    /// The only slot of a role, which is given as `@role`.
    fn only_slot_of(&self, role: &str) -> Result<String, RpcError> {
        let slots = vec![role.to_owned()];
        let mut names = self.names(&Select { slots })?;
        match names.len() {
            1 => Ok(names.remove(0)),
            _ => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                Err(several_slots(role, &names))
            }
        }
    }

    fn unknown(&self, name: &str) -> RpcError {
        if let Some(gone) = self.daemon.gone(name) {
            let at = local_time::clock(gone.at);
            let text = format!("the session `{name}` was closed at {at}: {}", gone.why);
            return RpcError::new(Fault::Usage, text).next("missiond session list");
        }
        let slots = self.daemon.slots();
        let of_config = || slots.iter().filter(|(_, slot)| !slot.is_session());
        if let Some(role) = name.strip_prefix('@') {
            let roles: BTreeSet<String> = of_config().map(|(_, slot)| slot.status().role).collect();
            return no_such_role(role, &roles.iter().map(String::as_str).collect::<Vec<_>>());
        }
        let names: Vec<&str> = of_config().map(|(name, _)| name.as_str()).collect();
        let sessions = slots.iter().filter(|(_, slot)| slot.is_session());
        let sessions: Vec<&str> = sessions.map(|(name, _)| name.as_str()).collect();
        no_such_name(name, &names, &sessions)
    }

    /// The slot or session with this name.
    pub fn handle(&self, name: &str) -> Option<SlotHandle> {
        self.daemon.slots().get(name).cloned()
    }

    pub fn slot(&self, name: &str) -> Result<SlotHandle, RpcError> {
        if name.starts_with('@') {
            return self.slot(&self.only_slot_of(name)?);
        }
        self.daemon
            .slots()
            .get(name)
            .cloned()
            .ok_or_else(|| self.unknown(name))
    }

    /// The kind of the slot or session with this name.
    pub(super) fn kind_of(&self, name: &str) -> Option<TargetKind> {
        let slot = self.handle(name)?;
        Some(match slot.status().kind.as_str() {
            _ if slot.is_session() => TargetKind::Session,
            "claude" => TargetKind::Claude,
            _ => TargetKind::Shell,
        })
    }

    /// The status of every slot and session.
    pub fn statuses(&self) -> Vec<SlotStatus> {
        let slots = self.daemon.slots();
        slots.values().map(SlotHandle::status).collect()
    }

    /// The names of the selected slots and sessions that exist now; of all if none are selected.
    pub fn existing(&self, selected: Option<&[String]>) -> Vec<String> {
        let slots = self.daemon.slots();
        let meant = slots
            .keys()
            .filter(|name| selected.is_none_or(|names| names.contains(name)));
        meant.cloned().collect()
    }
}

/// The error for `@role` if the request takes one slot and several slots have that role.
pub fn several_slots(role: &str, names: &[&str]) -> RpcError {
    let text = format!("{role} is {} slots, and this takes one", names.len());
    let next = format!("name one of them: {}", some_of(names));
    RpcError::new(Fault::Usage, text).next(next)
}

/// The error for `@role` if no slot has that role.
pub fn no_such_role(role: &str, roles: &[&str]) -> RpcError {
    let text = format!("no slot has the role `{role}`");
    let known = match roles.is_empty() {
        true => "there are no slots".to_owned(),
        false => format!("the roles are: {}", some_of(roles)),
    };
    RpcError::new(Fault::Usage, text).next(match nearest(role, roles.iter().copied()) {
        Some(meant) => format!("did you mean `@{meant}`? {known}"),
        None => known,
    })
}

/// The error for an unknown name: the nearest name first, then the slots. Sessions are only counted, because there are
/// many and most have a UUID as their name.
pub fn no_such_name(name: &str, slots: &[&str], sessions: &[&str]) -> RpcError {
    let all = slots.iter().chain(sessions).copied();
    let meant = nearest(name, all).map(|meant| format!("did you mean `{meant}`?"));
    let known = match slots.is_empty() {
        true => None,
        false => Some(format!("the slots are: {}", some_of(slots))),
    };
    let counted = match sessions.len() {
        0 if slots.is_empty() => {
            Some("there are none; make a session with: missiond session spawn".to_owned())
        }
        0 => None,
        1 => Some("1 session: missiond session list".to_owned()),
        count => Some(format!("{count} sessions: missiond session list")),
    };
    let known: Vec<String> = [known, counted].into_iter().flatten().collect();
    let next: Vec<String> = meant.into_iter().chain([known.join("; and ")]).collect();
    RpcError::new(Fault::Usage, format!("no slot or session `{name}`")).next(next.join(" "))
}

/// The maximum of names in one line.
const NAMES_SHOWN: usize = 12;

fn some_of(names: &[&str]) -> String {
    let shown = names[..names.len().min(NAMES_SHOWN)].join(", ");
    match names.len().saturating_sub(NAMES_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more: missiond status"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_comes_first_and_sessions_are_counted() {
        let uuids = ["0e7c6ea1-0000-4000-8000-000000000001"; 27];
        let next = |name, slots: &[&str], sessions: &[&str]| {
            let error = no_such_name(name, slots, sessions);
            assert_eq!(error.message, format!("no slot or session `{name}`"));
            error.next.expect("a next step")
        };
        assert_eq!(
            next("codr", &["coder", "tester"], &uuids),
            "did you mean `coder`? the slots are: coder, tester; and 27 sessions: missiond session list"
        );
        assert_eq!(
            next("buidl", &["coder"], &["build"]),
            "did you mean `build`? the slots are: coder; and 1 session: missiond session list"
        );
        assert_eq!(next("x9", &["coder"], &[]), "the slots are: coder");
        assert_eq!(
            next("x9", &[], &["build"]),
            "1 session: missiond session list"
        );
        assert!(next("x9", &[], &[]).contains("missiond session spawn"));
        let role = no_such_role("codr", &["coder"]).next.expect("a next step");
        assert_eq!(role, "did you mean `@coder`? the roles are: coder");
    }

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
