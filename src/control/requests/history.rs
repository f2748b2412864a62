use super::*;

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
    call.slot(&params.slot)?
        .request(|reply| SlotCommand::History { last, reply })
        .await
}
