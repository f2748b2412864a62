//! Checks that a request names the right kind, slots or sessions, as the request's file says. A request that names the
//! other kind is refused, and the error gives the command to use instead.

use super::permission;
use super::requests::RequestEntry;
use crate::core::model::{Fault, RpcError};
use serde_json::Value;

/// What a request may name. In the texts, `ID` stands for the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepts {
    /// It names nothing, or slots and sessions.
    Either,
    /// Only sessions. The texts give the command for a slot of Claude Code, and for a slot of a plain program.
    Sessions {
        claude: &'static str,
        shell: &'static str,
    },
    /// Only slots. The text gives the command for a session.
    Slots(&'static str),
}

use Accepts::{Either, Sessions as OnlySessions, Slots as OnlySlots};

impl Accepts {
    /// Only sessions, with the same text for every slot.
    pub const fn only_sessions(instead: &'static str) -> Accepts {
        OnlySessions {
            claude: instead,
            shell: instead,
        }
    }

    /// The kinds that may be named, for the schema.
    pub fn name(self) -> &'static str {
        match self {
            Either => "slots and sessions",
            OnlySessions { .. } => "sessions",
            OnlySlots(_) => "slots",
        }
    }
}

/// The kinds of names that requests distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// A slot of Claude Code.
    Claude,
    /// A slot of a plain program.
    Shell,
    Session,
}

/// Refuses a request that names the wrong kind. `kind_of` looks up the kind of a name; an unknown name is a different
/// error, and not found here.
pub fn check(
    request: &RequestEntry,
    params: &Value,
    kind_of: impl Fn(&str) -> Option<TargetKind>,
) -> Result<(), RpcError> {
    let session = params.get("session_id").and_then(Value::as_str);
    let names = permission::targets(params).into_iter();
    for name in names.chain(session.map(str::to_owned)) {
        let Some(kind) = kind_of(&name) else { continue };
        if let Some(error) = refusal(request, kind, &name) {
            return Err(error);
        }
    }
    Ok(())
}

fn refusal(request: &RequestEntry, kind: TargetKind, name: &str) -> Option<RpcError> {
    let (is, is_for, instead) = match (request.names, kind) {
        (OnlySessions { claude, .. }, TargetKind::Claude) => ("slot", "sessions", claude),
        (OnlySessions { shell, .. }, TargetKind::Shell) => ("slot", "sessions", shell),
        (OnlySlots(instead), TargetKind::Session) => ("session", "slots", instead),
        (Either | OnlySessions { .. } | OnlySlots(_), _) => return None,
    };
    let text = format!(
        "{name} is a {is}, and `{}` is for {is_for}; nothing was done",
        request.name
    );
    let error = RpcError::new(Fault::Refused, text);
    Some(error.next(instead.replace("ID", name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::requests::{Method, Status, Stop, Type, find, requests};
    use serde_json::json;

    fn kinds(name: &str) -> Option<TargetKind> {
        match name {
            "coder" => Some(TargetKind::Claude),
            "shell" => Some(TargetKind::Shell),
            "build" => Some(TargetKind::Session),
            _ => None,
        }
    }

    #[test]
    fn the_other_kind_is_refused_with_the_command_for_it() {
        for request in requests() {
            let (method, accepts) = (request.name, request.names);
            for name in ["coder", "shell", "build"] {
                for key in ["slot", "session_id"] {
                    let outcome = check(request, &json!({key: name}), kinds);
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
        assert!(check(find(Stop::NAME).unwrap(), &several, kinds).is_err());
        assert!(check(find(Status::NAME).unwrap(), &several, kinds).is_ok());
        let unknown = json!({"slot": "nobody"});
        assert!(check(find(Type::NAME).unwrap(), &unknown, kinds).is_ok());
    }
}
