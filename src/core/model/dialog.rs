//! Dialogs that wait for a person, and their answers.

use super::*;
use crate::core::policy::Decision;

/// What `confirm always` would do with a dialog.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Always {
    /// The rule that it would add to the role's policy.
    pub rule: Option<String>,
    /// Why no rule would help; then `always` is a single yes, and is not offered.
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

/// The last answer to a dialog of a slot: the key is pressed, or is about to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AnsweredDialog {
    /// The id of the dialog.
    pub dialog: String,
    pub time: DateTime<Utc>,
    pub verdict: Decision,
    /// `person` or `policy`.
    pub by: String,
    /// The client that the person used, as it names itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// What was chosen, and why.
    pub why: String,
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
    /// The name of the slot, or `@role` if the role has one slot.
    pub slot: String,
    /// `yes`, `no`, `always` or a label of the dialog. Any other word is refused, and so is `yes` at a question that has no such
    /// label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// Instead of `answer`: free text, for the text field of a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The id of the dialog that was seen; the answer is refused if another one is up.
    #[serde(default)]
    pub dialog: Option<String>,
    /// With `no`: the reason for Claude Code.
    #[serde(default)]
    pub reason: Option<String>,
    /// Answer even if the slot is doubtful.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anyway: bool,
    /// Answer even if a rule now denies the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub against_rule: bool,
    /// The caller's own id: a repeated request with the same id answers once and returns the same result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfirmAnswer {
    pub slot: String,
    /// The caller's id of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub dialog: String,
    /// The chosen label, or `Esc`.
    pub chosen: String,
    /// The rule that `always` added to the policy.
    pub rule: Option<String>,
    /// Why `always` added no rule: it was a single yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub this_once: Option<String>,
}
