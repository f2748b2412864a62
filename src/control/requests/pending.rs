use super::*;
use crate::core::claude::reading::Dialog;

request! {
    /// Shows the dialogs that wait for a person, and the calls that wait without a dialog on the screen.
    Pending = "pending", Select => Vec<PendingDialog>;
    access: Granted("pending", Slots);
    scope: Scope::View;
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PendingDialog {
    pub slot: String,
    pub role: String,
    pub since: DateTime<Utc>,
    /// `None` if the screen does not show the call that waits.
    pub dialog: Option<Dialog>,
    /// Why no rule answered it.
    pub why: Option<String>,
    /// What `confirm always` would do with it.
    #[serde(default)]
    pub always: Option<Always>,
    /// Why the screen can't be trusted; a plain `confirm` is refused.
    #[serde(default)]
    pub doubtful: Option<String>,
    /// The calls that have reached the gate and have not run, if the screen shows no dialog about one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting_calls: Vec<WaitingCall>,
}

const HIDDEN: &str = "a call waits for you, and the screen does not show its dialog";

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
        let is_hidden = dialog.is_none() && !waiting_calls.is_empty();
        let waits = is_hidden || dialog.is_some();
        let why = waits_because.or_else(|| is_hidden.then(|| HIDDEN.to_owned()));
        waits.then_some(PendingDialog {
            slot,
            role,
            since,
            dialog,
            why,
            always,
            doubtful,
            waiting_calls,
        })
    });
    Ok(waiting.collect())
}
