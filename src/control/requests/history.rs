use super::*;

/// Bytes in memory: a transcript is read entry by entry, and what of it fits into an answer is kept.
const BYTES: usize = 16 << 20;

request! {
    /// Shows the conversation of a slot.
    History = "history", HistoryParams => HistoryAnswer;
    access: Granted("history", Slots);
    scope: Scope::View;
    names: Accepts::Slots("missiond output ID");
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryParams {
    /// The name of the slot, or `@role` where the role has one slot.
    pub slot: String,
    /// The last so many entries; all that fit into an answer where it is left out.
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
