//! Who holds the keyboard of a slot.

use super::Person;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who types into a slot's terminal: somebody whose terminal is attached, or a client that has taken the keyboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyboardHolder {
    pub uid: u32,
    /// The client that they use, as it names itself: `attach`, `web`, …
    pub via: String,
    pub since: DateTime<Utc>,
}

impl KeyboardHolder {
    pub fn new(person: &Person, since: DateTime<Utc>) -> KeyboardHolder {
        KeyboardHolder {
            uid: person.uid,
            via: person.via.clone(),
            since,
        }
    }
}

/// What a client wants with the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyboardAction {
    /// Takes it, from whoever holds it.
    Take,
    /// Keeps it for another while; refused if somebody else has it by now.
    Keep,
    /// Gives it back. Nothing happens if somebody else has it by now.
    Release,
}
