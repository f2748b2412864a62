//! Values that appear in no log, error, event or output. Pure.

use super::secrets::MASK;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// An address or a token that only its receiver may see: every other form of it is masked.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(String);

impl Hidden {
    pub fn new(text: impl Into<String>) -> Hidden {
        Hidden(text.into())
    }

    /// The value itself, for its receiver.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl Serialize for Hidden {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(MASK)
    }
}

impl JsonSchema for Hidden {
    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reveal_shows_the_value() {
        let hidden = Hidden::new("tk_abc");
        assert_eq!(format!("{hidden:?}"), MASK);
        assert_eq!(serde_json::json!(hidden), serde_json::json!(MASK));
        assert_eq!(hidden.reveal(), "tk_abc");
    }
}
