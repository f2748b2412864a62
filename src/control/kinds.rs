//! Which requests are about slots, which about sessions, and which about either. This table is the one place that
//! decides it: a request that names the other kind is refused, with the command that is for it.

use super::permission;
use crate::core::model::*;
use serde_json::Value;

/// What a request may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// It names none, or one of either kind.
    Either,
    /// Only sessions. The words say what to do at a slot of Claude Code, and at a slot of a plain program.
    Sessions {
        claude: &'static str,
        shell: &'static str,
    },
    /// Only slots. The words say what to do at a session.
    Slots(&'static str),
}

use Accepts::{Either, Sessions as OnlySessions, Slots as OnlySlots};

const fn sessions(at_any_slot: &'static str) -> Accepts {
    OnlySessions {
        claude: at_any_slot,
        shell: at_any_slot,
    }
}

const AT_ITS_END: &str = "missiond close ID";

/// In the words, `ID` stands for the name.
const TABLE: &[(&str, Accepts)] = &[
    (Ping::NAME, Either),
    (Status::NAME, Either),
    (Stats::NAME, Either),
    (Start::NAME, OnlySlots("missiond spawn")),
    (Stop::NAME, OnlySlots(AT_ITS_END)),
    (
        Restart::NAME,
        OnlySlots("missiond close ID; missiond spawn"),
    ),
    (Adopt::NAME, OnlySlots("missiond attach ID")),
    (Send::NAME, OnlySlots("missiond type ID …")),
    (Sent::NAME, OnlySlots("missiond output ID")),
    (Pending::NAME, Either),
    (
        Confirm::NAME,
        OnlySlots("missiond type ID …, missiond keys ID …"),
    ),
    (Interrupt::NAME, OnlySlots("missiond keys ID ctrl+c")),
    (Screen::NAME, Either),
    (History::NAME, OnlySlots("missiond output ID")),
    (Search::NAME, Either),
    (Wait::NAME, Either),
    // Raw input is for both; what is open in a slot decides there.
    (Write::NAME, Either),
    (Attach::NAME, Either),
    (Why::NAME, OnlySlots("missiond info ID")),
    (Events::NAME, Either),
    (Unsubscribe::NAME, Either),
    (InForce::NAME, OnlySlots("missiond info ID")),
    (Submit::NAME, OnlySlots("missiond type ID …")),
    (Task::NAME, Either),
    (Tasks::NAME, Either),
    (Cancel::NAME, Either),
    (Reload::NAME, Either),
    (Down::NAME, Either),
    (Hook::NAME, Either),
    (Spawn::NAME, Either),
    (Sessions::NAME, Either),
    (Info::NAME, sessions("missiond status ID")),
    (
        Type::NAME,
        OnlySessions {
            claude: "missiond send ID …; a dialog: missiond confirm ID …",
            shell: "missiond write ID '…\\r'",
        },
    ),
    (
        Resize::NAME,
        sessions("set `cols` and `rows` in slots.toml, then: missiond restart ID"),
    ),
    (
        Signal::NAME,
        OnlySessions {
            claude: "missiond interrupt ID, or missiond stop ID",
            shell: "missiond keys ID ctrl+c, or missiond stop ID",
        },
    ),
    (Close::NAME, sessions("missiond stop ID")),
    (
        Output::NAME,
        OnlySessions {
            claude: "missiond screen ID, missiond history ID, missiond logs ID -f",
            shell: "missiond screen ID, missiond search ID REGEX",
        },
    ),
    (Clear::NAME, sessions("missiond screen ID")),
    (UnifiedExec::NAME, Either),
    (
        WriteStdin::NAME,
        OnlySessions {
            claude: "missiond send ID …; a dialog: missiond confirm ID …",
            shell: "missiond write ID '…\\r'",
        },
    ),
    (ClosePtySession::NAME, sessions("missiond stop ID")),
    (ListPtySessions::NAME, Either),
];

impl Accepts {
    /// What may be named, for the schema.
    pub fn name(self) -> &'static str {
        match self {
            Either => "slots and sessions",
            OnlySessions { .. } => "sessions",
            OnlySlots(_) => "slots",
        }
    }
}

/// What is named, as far as this table cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A slot of Claude Code.
    Claude,
    /// A slot of a plain program.
    Shell,
    Session,
}

/// What a method may name; `None` for a method that there is not.
pub fn accepts(method: &str) -> Option<Accepts> {
    let found = TABLE.iter().find(|(name, _)| *name == method);
    found.map(|(_, accepts)| *accepts)
}

/// Refuses a request that names what it is not for. `kind_of` tells what a name stands for; a name that stands for
/// nothing is another error, and not found here.
pub fn check(
    method: &str,
    params: &Value,
    kind_of: impl Fn(&str) -> Option<Kind>,
) -> Result<(), RpcError> {
    let Some(accepts) = accepts(method) else {
        return Ok(());
    };
    let session = params.get("session_id").and_then(Value::as_str);
    let names = permission::targets(params).into_iter();
    for name in names.chain(session.map(str::to_owned)) {
        let Some(kind) = kind_of(&name) else { continue };
        if let Some(error) = refusal(method, accepts, kind, &name) {
            return Err(error);
        }
    }
    Ok(())
}

fn refusal(method: &str, accepts: Accepts, kind: Kind, name: &str) -> Option<RpcError> {
    let (is, is_for, instead) = match (accepts, kind) {
        (OnlySessions { claude, .. }, Kind::Claude) => ("slot", "sessions", claude),
        (OnlySessions { shell, .. }, Kind::Shell) => ("slot", "sessions", shell),
        (OnlySlots(instead), Kind::Session) => ("session", "slots", instead),
        (Either | OnlySessions { .. } | OnlySlots(_), _) => return None,
    };
    let text = format!("{name} is a {is}, and `{method}` is for {is_for}; nothing was done");
    let error = RpcError::new(Fault::Refused, text);
    Some(error.next(instead.replace("ID", name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn kinds(name: &str) -> Option<Kind> {
        match name {
            "coder" => Some(Kind::Claude),
            "shell" => Some(Kind::Shell),
            "build" => Some(Kind::Session),
            _ => None,
        }
    }

    #[test]
    fn every_method_is_in_the_table_once() {
        for method in all_methods() {
            let entries = TABLE.iter().filter(|(name, _)| *name == method).count();
            assert_eq!(entries, 1, "{method}");
        }
        assert_eq!(TABLE.len(), all_methods().count());
    }

    #[test]
    fn the_other_kind_is_refused_with_the_command_for_it() {
        for (method, accepts) in TABLE {
            for name in ["coder", "shell", "build"] {
                for key in ["slot", "session_id"] {
                    let outcome = check(method, &json!({key: name}), kinds);
                    let refused = match accepts {
                        Either => false,
                        OnlySessions { .. } => name != "build",
                        OnlySlots(_) => name == "build",
                    };
                    assert_eq!(outcome.is_err(), refused, "{method} {name}");
                    let Err(error) = outcome else { continue };
                    assert_eq!(error.fault, Fault::Refused);
                    let next = error.next.expect("a next step");
                    assert!(next.contains("missiond "), "{method} {name}: {next}");
                    assert!(!next.contains("ID"), "{method} {name}: {next}");
                }
            }
        }
    }

    #[test]
    fn one_wrong_name_among_several_is_enough() {
        let several = json!({"slots": ["coder", "build"]});
        assert!(check(Stop::NAME, &several, kinds).is_err());
        assert!(check(Status::NAME, &several, kinds).is_ok());
        let unknown = json!({"slot": "nobody"});
        assert!(check(Type::NAME, &unknown, kinds).is_ok());
    }
}
