//! Tools on what the slots ask.

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
    /// `yes`, `no`, or the label of one of the options; labels with commas between them where several can be
    /// chosen. A word that is no option is refused, and so is `yes` at a question without that very label.
    #[serde(default)]
    answer: Option<String>,
    /// In place of `answer`: an answer in words of your own, where the question has a line for it.
    #[serde(default)]
    text: Option<String>,
    /// The id of the dialog that was seen, from `pending`: where another one is up by now, nothing is pressed.
    dialog: String,
    /// With `no`: what the slot is told.
    #[serde(default)]
    reason: Option<String>,
    /// An id of your own: repeated with the same id, the answer is given once, and what came of it is the same.
    #[serde(default)]
    id: Option<String>,
}

#[tool_router(router = pending_router, vis = "pub(super)")]
impl McpServer {
    /// Shows what the slots ask that no rule answers: the whole dialog, its options and why a person is asked.
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
    /// Answers what a slot asks, in place of a person. The dialog must have been read with `pending` before.
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
            let text = "`always` changes a policy, which only a person does";
            return answer::fault(&RpcError::new(Fault::Refused, text).next("answer `yes`"));
        }
        let request = ConfirmParams {
            slot: params.slot,
            answer: params.answer,
            text: params.text,
            dialog: Some(params.dialog),
            reason: params.reason,
            anyway: false,
            id: params.id,
        };
        self.tell::<Confirm>(request, cancelled, |done| answer::json(&done))
            .await
    }
}
