//! `[mcp]` in a policy: the requests that programs inside a slot may make to the daemon. Without it there are none.

use std::collections::BTreeSet;

/// The requests that can be granted. Never included: those that approve (`confirm`, `write`), change the rules (`reload`) or stop
/// the daemon.
pub const GRANTABLE: &[&str] = &[
    "send",
    "submit",
    "interrupt",
    "start",
    "stop",
    "restart",
    "pending",
    "screen",
    "history",
    "search",
    "wait",
    "why",
    "events",
    "unified_exec",
];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    /// Method names of the control socket.
    pub allow: BTreeSet<String>,
    /// The slots that the requests may name, by name or `@role`; `None` means every other slot.
    pub slots: Option<BTreeSet<String>>,
}

impl Grants {
    /// Whether `other` grants everything that is granted here.
    pub fn are_within(&self, other: &Grants) -> bool {
        let slots = match (&self.slots, &other.slots) {
            _ if self.allow.is_empty() => true,
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(own), Some(others)) => own.is_subset(others),
        };
        slots && self.allow.is_subset(&other.allow)
    }
}

/// Why a method name can't be granted.
pub fn refusal(word: &str) -> Option<String> {
    match word {
        _ if GRANTABLE.contains(&word) => None,
        "confirm" | "write" | "attach" => {
            Some("a slot can't approve its own calls: this is never granted".to_owned())
        }
        "task" | "tasks" | "cancel" => {
            Some("`submit` brings this, for the tasks that the slot has submitted".to_owned())
        }
        "write_stdin" | "close_pty_session" | "list_pty_sessions" => {
            Some("`unified_exec` brings this, for the sessions that the slot has made".to_owned())
        }
        "unsubscribe" => Some("`events` brings this".to_owned()),
        "ping" | "status" | "stats" => Some("every slot may do this: leave it out".to_owned()),
        _ => Some(format!("what can be granted is: {}", GRANTABLE.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(allow: &[&str], slots: Option<&[&str]>) -> Grants {
        let set = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Grants {
            allow: set(allow),
            slots: slots.map(set),
        }
    }

    #[test]
    fn more_methods_or_more_slots_are_more() {
        let old = grants(&["send", "wait"], Some(&["a", "b"]));
        for within in [
            Grants::default(),
            old.clone(),
            grants(&["send"], Some(&["a"])),
        ] {
            assert!(within.are_within(&old), "{within:?}");
        }
        for wider in [
            grants(&["stop"], Some(&["a"])),
            grants(&["send"], Some(&["c"])),
            grants(&["send"], None),
        ] {
            assert!(!wider.are_within(&old), "{wider:?}");
        }
        assert!(old.are_within(&grants(&["send", "wait"], None)));
    }

    #[test]
    fn nothing_that_approves_can_be_granted() {
        for word in [
            "confirm", "write", "attach", "cancel", "reload", "down", "hook", "policy", "", "Send",
            "*",
        ] {
            assert!(refusal(word).is_some(), "{word}");
        }
        assert_eq!(refusal("send"), None);
    }
}
