//! The table of requests: each method with its name, what it does, who may call it, what it takes and what it answers.
//! The control socket's schema and the check of permissions are made from it.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// One method: its name, what it takes and what it answers.
pub trait Method {
    const NAME: &'static str;
    type Params: Serialize + DeserializeOwned + JsonSchema + Send;
    type Answer: Serialize + DeserializeOwned + JsonSchema + Send;
}

/// Who may call a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Every process of this user, also inside a slot.
    Anybody,
    /// The hooks that run in the slot that they name.
    OwnSlot,
    /// A person, and the programs inside a slot whose role's policy has this name in `[mcp] allow`.
    Granted(&'static str),
    /// A person: a process outside of all slots.
    PersonOnly,
}

/// A method as the table has it.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    pub access: Access,
    pub params: fn(&mut SchemaGenerator) -> Schema,
    pub answer: fn(&mut SchemaGenerator) -> Schema,
}

macro_rules! methods {
    ($($(#[doc = $doc:literal])+
       $method:ident = $name:literal, $access:expr, $params:ty => $answer:ty;)*) => {
        $($(#[doc = $doc])+ #[derive(Debug)] pub struct $method;
        impl Method for $method {
            const NAME: &'static str = $name;
            type Params = $params;
            type Answer = $answer;
        })*
        /// These methods.
        pub const TABLE: &[Entry] = &[$(Entry {
            name: $name,
            about: concat!($($doc),+),
            access: $access,
            params: |generator| generator.subschema_for::<$params>(),
            answer: |generator| generator.subschema_for::<$answer>(),
        }),*];
    };
}
