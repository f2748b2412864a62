//! Tools for the questions of slots.

use super::McpServer;
use super::answer::{self, Told};
use crate::control::requests::{Confirm, Pending};
use crate::core::claude::keys::is_always;
use crate::core::model::{ConfirmParams, Fault, RpcError, Select};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{schemars, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerParams {
    /// The slot that asks.
    slot: String,
    /// `yes`, `no`, or the label of one of the options; several labels separated by commas if several can be chosen.
    /// Any other word is refused, and so is `yes` at a question that has no such label.
    #[serde(default)]
    answer: Option<String>,
    /// Instead of `answer`: your own text, if the question has a field for it.
    #[serde(default)]
    text: Option<String>,
    /// The id of the dialog that was seen, from `pending`. If another dialog is up now, no key is pressed.
    dialog: String,
    /// With `no`: the reason for the slot.
    #[serde(default)]
    reason: Option<String>,
    /// Your own id: a repeated call with the same id answers once and returns the same result.
    #[serde(default)]
    id: Option<String>,
}

#[tool_router(router = pending_router, vis = "pub(super)")]
impl McpServer {
    /// Shows the open questions of slots that no rule answers: the whole dialog, its options and why a person is asked.
    #[tool(annotations(title = "Questions for a person", read_only_hint = true))]
    async fn pending(
        &self,
        Parameters(select): Parameters<Select>,
        cancelled: CancellationToken,
    ) -> Told {
        self.tell::<Pending>(select, cancelled, |dialogs| answer::json(&dialogs))
            .await
    }
}

#[tool_router(router = confirm_router, vis = "pub(super)")]
impl McpServer {
    /// Answers a slot's question in place of a person. Read the dialog with `pending` first.
    #[tool(annotations(
        title = "Answer a question",
        read_only_hint = false,
        destructive_hint = true,
        idempotent_hint = false
    ))]
    async fn confirm(
        &self,
        Parameters(params): Parameters<AnswerParams>,
        cancelled: CancellationToken,
    ) -> Told {
        if params.answer.as_deref().is_some_and(is_always) {
            let text = "`always` changes a policy, which only a person may do";
            return answer::fault(&RpcError::new(Fault::Refused, text).next("answer `yes`"));
        }
        let request = ConfirmParams {
            slot: params.slot,
            answer: params.answer,
            text: params.text,
            dialog: Some(params.dialog),
            reason: params.reason,
            anyway: false,
            against_rule: false,
            id: params.id,
        };
        self.tell::<Confirm>(request, cancelled, |done| answer::json(&done))
            .await
    }
}
