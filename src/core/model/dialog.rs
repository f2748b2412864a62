//! Dialogs that wait for a person, and the answers to them.

use super::*;

/// What `confirm always` would do with a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Always {
    /// The rule that it would add to the role's policy.
    pub rule: Option<String>,
    /// Why no rule would help; then `always` is a yes for this once, and is not offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
}

impl From<Result<String, String>> for Always {
    fn from(found: Result<String, String>) -> Always {
        Always {
            rule: found.as_ref().ok().cloned(),
            why_not: found.err(),
        }
    }
}

/// A tool call as the gate knows it, with its whole input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingCall {
    pub tool: String,
    pub input: Value,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmParams {
    /// The name of the slot, or `@role` where the role has one slot.
    pub slot: String,
    /// `yes`, `no`, `always` or a label of the dialog. A word that is no option is refused, and so is `yes` at a question
    /// without that very label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// In place of `answer`: words of one's own, for the free line of a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The dialog that was seen; refused when another one is up.
    #[serde(default)]
    pub dialog: Option<String>,
    /// With `no`: what Claude Code is told.
    #[serde(default)]
    pub reason: Option<String>,
    /// Also where the slot is doubtful.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anyway: bool,
    /// An id of the caller's: repeated with the same id, the answer is given once, and what came of it is the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfirmAnswer {
    pub slot: String,
    /// The id that it was asked for with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub dialog: String,
    /// The label that was chosen, or `Esc`.
    pub chosen: String,
    /// The rule that `always` added to the policy.
    pub rule: Option<String>,
    /// Why `always` added none: it was a yes for this once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub this_once: Option<String>,
}
