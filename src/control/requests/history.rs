use super::*;

/// Memory held for an answer. A transcript is read entry by entry, and only what fits into an answer is kept.
const BYTES: usize = 16 << 20;

request! {
    /// Shows the conversation of a slot.
    History = "history", HistoryParams => HistoryAnswer;
    access: Granted("history", Slots);
    scope: Scope::View;
    names: Accepts::Slots("missiond session output ID");
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryParams {
    /// The name of the slot, or `@role` if the role has one slot.
    pub slot: String,
    /// Only the last N entries; if absent, all entries that fit into an answer.
    #[serde(default)]
    pub last: Option<usize>,
}

async fn answer(call: Call<'_>, params: HistoryParams) -> Result<HistoryAnswer, RpcError> {
    let last = params.last;
    let slot = call.slot(&params.slot)?;
    call.hold(BYTES).await?;
    slot.request(|reply| SlotCommand::History { last, reply })
        .await
}
