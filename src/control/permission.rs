//! What a client may request, by its origin. A slot can't approve its own calls: a program inside a slot may see the
//! status and call the hooks of its own slot, nothing more; a program that the daemon runs outside of the slots may see
//! the status.

use super::requests;
use crate::core::model::{Fault, RpcError};
use crate::os::peer::{Peer, PeerOrigin};
use serde_json::Value;

/// Who may call a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Every process of this user, also inside a slot.
    Anybody,
    /// The hooks that run in the slot that they name.
    OwnSlot,
    /// A person, and the programs inside a slot whose role's policy has this name in `[mcp] allow`, within its reach.
    Granted(&'static str, Reach),
    /// A person: a process outside of all slots.
    PersonOnly,
}

/// What a granted request may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The slots that `[mcp] slots` names, or every other slot.
    Slots,
    /// The sessions that the slot has made.
    OwnSessions,
    /// The tasks that the slot has submitted.
    OwnTasks,
    /// Only the connection that it came by.
    Connection,
}

/// Who may call a request. An unknown request is for a person only, who then gets the error for it.
pub fn access(method: &str) -> Access {
    requests::find(method).map_or(Access::PersonOnly, |request| request.access)
}

/// Checks whether this client may call this method; the error says why not. `granted` tells whether `[mcp]` in the
/// policy of the client's slot grants it.
pub fn check(peer: &Peer, method: &str, params: &Value, granted: bool) -> Result<(), RpcError> {
    let access = access(method);
    match &peer.origin {
        _ if access == Access::OwnSlot => check_hook(peer, params),
        PeerOrigin::Outside => Ok(()),
        _ if access == Access::Anybody => Ok(()),
        PeerOrigin::Slot(_) if granted => Ok(()),
        PeerOrigin::Slot(slot) => Err(refused(format!(
            "`{method}` was called from inside slot {slot}: nobody approves himself"
        ))),
        PeerOrigin::Left(slot) => Err(RpcError::new(
            Fault::Refused,
            format!("`{method}` was called by a process that may be left over from slot {slot}, whose shim was killed"),
        )
        .next(format!("a person does this in a terminal that was open before {slot} was started, or in a new login session"))),
        PeerOrigin::Daemon => Err(refused(format!(
            "`{method}` was called by something that the daemon runs, such as the command of [notify], which is not a person"
        ))),
        PeerOrigin::Untold => Err(refused(format!(
            "`{method}` was called by a process that can't be distinguished from one inside a slot"
        ))),
        PeerOrigin::Unseen(fault) => Err(RpcError::new(
            Fault::Failed,
            format!("the caller of `{method}` can't be looked up: {fault}"),
        )
        .next("give the daemon more (ulimit -n), or close something: missiond session list")),
    }
}

/// Checks a hook: it may name only the slot that it runs in.
fn check_hook(peer: &Peer, params: &Value) -> Result<(), RpcError> {
    let named = params.get("slot").and_then(Value::as_str);
    match (&peer.origin, named) {
        (PeerOrigin::Slot(slot), Some(named)) if slot == named => Ok(()),
        (origin, named) => {
            let from = match origin {
                PeerOrigin::Slot(slot) => format!("slot {slot}"),
                PeerOrigin::Outside => "outside of all slots".to_owned(),
                PeerOrigin::Left(slot) => format!("what may be left of slot {slot}"),
                PeerOrigin::Daemon => "something that the daemon runs".to_owned(),
                PeerOrigin::Untold => "an unknown place".to_owned(),
                PeerOrigin::Unseen(fault) => format!("a place that can't be looked up ({fault})"),
            };
            let named = named.unwrap_or("no slot");
            let text = format!("a hook of {named} was called from {from}");
            Err(RpcError::new(Fault::Refused, text))
        }
    }
}

/// The names of the slots that a request is about; empty means all.
pub fn targets(params: &Value) -> Vec<String> {
    let one = params.get("slot").into_iter();
    let several = params.get("slots").and_then(Value::as_array);
    one.chain(several.into_iter().flatten())
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// Tells whether a message is a shell command or a command of Claude Code. Such a message runs without any rule: no
/// grant covers it.
pub fn escapes(params: &Value) -> bool {
    ["shell", "slash"].iter().any(|flag| {
        params
            .get(flag)
            .is_some_and(|set| *set != Value::Bool(false))
    })
}

fn refused(text: String) -> RpcError {
    RpcError::new(Fault::Refused, text)
        .next("a person does this, in a terminal outside of the slots")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::requests::{Hook, Method, Ping, Stats, Status, requests};
    use crate::core::policy::GRANTABLE;
    use serde_json::json;

    fn from(origin: PeerOrigin) -> Peer {
        Peer {
            pid: Some(7),
            uid: 1000,
            origin,
            via: "cli stop".to_owned(),
        }
    }

    fn may(origin: PeerOrigin, method: &str) -> bool {
        check(&from(origin), method, &json!({"slot": "coder"}), false).is_ok()
    }

    fn methods_for(wanted: fn(Access) -> bool) -> impl Iterator<Item = &'static str> {
        let entries = requests().filter(move |entry| wanted(entry.access));
        entries.map(|entry| entry.name)
    }

    #[test]
    fn a_person_may_do_everything_but_play_a_hook() {
        for method in methods_for(|_| true).chain(["no such method"]) {
            let outside = may(PeerOrigin::Outside, method);
            assert_eq!(outside, method != Hook::NAME, "{method}");
        }
    }

    #[test]
    fn a_slot_and_the_unknown_see_the_status_and_do_nothing() {
        for origin in [
            PeerOrigin::Slot("coder".into()),
            PeerOrigin::Left("coder".into()),
            PeerOrigin::Daemon,
            PeerOrigin::Untold,
        ] {
            let not_for_all = |access| !matches!(access, Access::Anybody | Access::OwnSlot);
            for method in methods_for(not_for_all).chain(["no such method"]) {
                let error = check(
                    &from(origin.clone()),
                    method,
                    &json!({"slot": "coder"}),
                    false,
                )
                .unwrap_err();
                assert_eq!(error.fault, Fault::Refused, "{method}");
            }
            for method in methods_for(|access| access == Access::Anybody) {
                assert!(may(origin.clone(), method), "{method}");
            }
        }
        // Statuses only, and nothing that was said or shown.
        let for_all: Vec<&str> = methods_for(|access| access == Access::Anybody).collect();
        assert_eq!(for_all, [Ping::NAME, Status::NAME, Stats::NAME]);
    }

    #[test]
    fn what_a_policy_can_grant_is_what_the_table_says() {
        for entry in requests() {
            let by = GRANTABLE.contains(&entry.name).then_some(entry.name);
            match entry.access {
                Access::Granted(word, _) if word == entry.name => assert_eq!(by, Some(word)),
                Access::Granted(word, _) => assert!(by.is_none() && GRANTABLE.contains(&word)),
                _ => assert_eq!(by, None, "{}", entry.name),
            }
        }
        for word in GRANTABLE {
            assert!(
                matches!(access(word), Access::Granted(by, _) if by == *word),
                "{word}"
            );
        }
    }

    #[test]
    fn a_hook_is_heard_from_its_own_slot_only() {
        assert!(may(PeerOrigin::Slot("coder".into()), Hook::NAME));
        for origin in [
            PeerOrigin::Slot("reader".into()),
            PeerOrigin::Left("coder".into()),
            PeerOrigin::Daemon,
            PeerOrigin::Untold,
            PeerOrigin::Outside,
        ] {
            assert!(!may(origin, Hook::NAME));
        }
        let nameless = check(
            &from(PeerOrigin::Slot("coder".into())),
            Hook::NAME,
            &json!({}),
            true,
        );
        assert!(nameless.is_err());
    }
}
