//! What a client may ask for, by where it comes from. Nobody approves himself: what a slot runs may look at the
//! status and call the hooks of its own slot, nothing more.

use super::peer::{Origin, Peer};
use super::protocol::*;
use serde_json::Value;

/// What everybody may ask: how things stand, and nothing that was said or shown.
const STATUS: &[&str] = &[Ping::NAME, Status::NAME, Stats::NAME];

/// Whether this client may call this method; the error says why not. `granted` is what `[mcp]` in the policy of
/// the client's slot says.
pub fn check(peer: &Peer, method: &str, params: &Value, granted: bool) -> Result<(), RpcError> {
    match &peer.origin {
        _ if method == Hook::NAME => check_hook(peer, params),
        Origin::Outside => Ok(()),
        _ if STATUS.contains(&method) => Ok(()),
        Origin::Slot(_) if granted => Ok(()),
        Origin::Slot(slot) => Err(refused(format!(
            "`{method}` was called from inside slot {slot}: nobody approves himself"
        ))),
        Origin::Untold => Err(refused(format!(
            "`{method}` was called by a process that can't be told from one inside a slot"
        ))),
        Origin::Unseen(fault) => Err(RpcError::new(
            Fault::Failed,
            format!("who calls `{method}` can't be looked up: {fault}"),
        )
        .next("give the daemon more (ulimit -n), or close something: missiond sessions")),
    }
}

/// A hook speaks for the slot that it runs in, and for no other.
fn check_hook(peer: &Peer, params: &Value) -> Result<(), RpcError> {
    let named = params.get("slot").and_then(Value::as_str);
    match (&peer.origin, named) {
        (Origin::Slot(slot), Some(named)) if slot == named => Ok(()),
        (origin, named) => {
            let from = match origin {
                Origin::Slot(slot) => format!("slot {slot}"),
                Origin::Outside => "outside of all slots".to_owned(),
                Origin::Untold => "an unknown place".to_owned(),
                Origin::Unseen(fault) => format!("a place that can't be looked up ({fault})"),
            };
            let named = named.unwrap_or("no slot");
            let text = format!("a hook of {named} was called from {from}");
            Err(RpcError::new(Fault::Refused, text))
        }
    }
}

/// The slots that a request is about, as they are named there; none for all.
pub fn targets(params: &Value) -> Vec<String> {
    let one = params.get("slot").into_iter();
    let several = params.get("slots").and_then(Value::as_array);
    one.chain(several.into_iter().flatten())
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// A message that is a shell command or a command of Claude Code is run without any rule: no grant covers it.
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
    use serde_json::json;

    fn from(origin: Origin) -> Peer {
        Peer {
            pid: Some(7),
            uid: 1000,
            origin,
        }
    }

    fn may(origin: Origin, method: &str) -> bool {
        check(&from(origin), method, &json!({"slot": "coder"}), false).is_ok()
    }

    const METHODS: &[&str] = &[
        Start::NAME,
        Stop::NAME,
        Restart::NAME,
        Adopt::NAME,
        Send::NAME,
        Sent::NAME,
        Pending::NAME,
        Confirm::NAME,
        Interrupt::NAME,
        Screen::NAME,
        History::NAME,
        Search::NAME,
        Wait::NAME,
        Write::NAME,
        Attach::NAME,
        Why::NAME,
        Events::NAME,
        Submit::NAME,
        Task::NAME,
        Tasks::NAME,
        Cancel::NAME,
        Spawn::NAME,
        Sessions::NAME,
        Info::NAME,
        Type::NAME,
        Resize::NAME,
        Signal::NAME,
        Close::NAME,
        Output::NAME,
        Clear::NAME,
        UnifiedExec::NAME,
        WriteStdin::NAME,
        ClosePtySession::NAME,
        ListPtySessions::NAME,
        Reload::NAME,
        Down::NAME,
        "no such method",
    ];

    #[test]
    fn a_person_may_do_everything_but_play_a_hook() {
        for method in METHODS.iter().chain(STATUS) {
            assert!(may(Origin::Outside, method), "{method}");
        }
        assert!(!may(Origin::Outside, Hook::NAME));
    }

    #[test]
    fn a_slot_and_the_unknown_see_the_status_and_do_nothing() {
        for origin in [Origin::Slot("coder".into()), Origin::Untold] {
            for method in METHODS {
                let error = check(
                    &from(origin.clone()),
                    method,
                    &json!({"slot": "coder"}),
                    false,
                )
                .unwrap_err();
                assert_eq!(error.fault, Fault::Refused, "{method}");
            }
            for method in STATUS {
                assert!(may(origin.clone(), method), "{method}");
            }
        }
    }

    #[test]
    fn a_hook_is_heard_from_its_own_slot_only() {
        assert!(may(Origin::Slot("coder".into()), Hook::NAME));
        for origin in [
            Origin::Slot("reader".into()),
            Origin::Untold,
            Origin::Outside,
        ] {
            assert!(!may(origin, Hook::NAME));
        }
        let nameless = check(
            &from(Origin::Slot("coder".into())),
            Hook::NAME,
            &json!({}),
            true,
        );
        assert!(nameless.is_err());
    }
}
