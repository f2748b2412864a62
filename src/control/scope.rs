//! What a client over HTTP may do. A token has one scope; each scope includes those before it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Sees everything and changes nothing.
    View,
    /// Answers what a slot asks: yes for this call only, no, or an option.
    Answer,
    /// Sends messages, interrupts, starts and stops slots.
    Steer,
    /// Types into terminals, runs programs, changes rules, ends the daemon.
    Keys,
}

impl Scope {
    pub const ALL: [Scope; 4] = [Scope::View, Scope::Answer, Scope::Steer, Scope::Keys];

    pub fn name(self) -> &'static str {
        match self {
            Scope::View => "view",
            Scope::Answer => "answer",
            Scope::Steer => "steer",
            Scope::Keys => "keys",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(name: &str) -> Result<Scope, String> {
        let found = Scope::ALL.into_iter().find(|scope| scope.name() == name);
        found.ok_or_else(|| format!("`{name}` is not a scope: view, answer, steer or keys"))
    }
}
