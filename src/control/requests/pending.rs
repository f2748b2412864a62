use super::*;
use crate::core::claude::reading::Dialog;

request! {
    /// Shows the dialogs that wait for a person.
    Pending = "pending", Select => Vec<PendingDialog>;
    access: Granted("pending", Slots);
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PendingDialog {
    pub slot: String,
    pub role: String,
    pub since: DateTime<Utc>,
    pub dialog: Dialog,
    /// Why no rule answered it.
    pub why: Option<String>,
    /// What `confirm always` would do with it.
    #[serde(default)]
    pub always: Option<Always>,
    /// Why what the screen shows is not to be trusted: a plain `confirm` is refused.
    #[serde(default)]
    pub doubtful: Option<String>,
    /// Where the dialog is about none of them: the calls that have come to the gate and have not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_calls: Vec<WaitingCall>,
}

async fn answer(call: Call<'_>, select: Select) -> Result<Vec<PendingDialog>, RpcError> {
    let statuses = status::answer(call, select).await?;
    let waiting = statuses.into_iter().filter_map(|status| {
        let SlotStatus {
            slot,
            role,
            since,
            dialog,
            waits_because,
            always,
            doubtful,
            waiting_calls,
            ..
        } = status;
        dialog.map(|dialog| PendingDialog {
            slot,
            role,
            since,
            dialog,
            why: waits_because,
            always,
            doubtful,
            waiting_calls,
        })
    });
    Ok(waiting.collect())
}
