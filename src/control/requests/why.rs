use super::*;

request! {
    /// Shows the evidence for the state of a slot.
    Why = "why", OneSlot => WhyAnswer;
    access: Granted("why", Slots);
    scope: Scope::View;
    names: Accepts::Slots("missiond session info ID");
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WhyAnswer {
    pub slot: String,
    pub state: State,
    pub evidence: Vec<Evidence>,
}

async fn answer(call: Call<'_>, params: OneSlot) -> Result<WhyAnswer, RpcError> {
    let slot = call.slot(&params.slot)?;
    let evidence = slot.request(|reply| SlotCommand::Why { reply }).await?;
    Ok(WhyAnswer {
        slot: params.slot,
        state: slot.status().state,
        evidence,
    })
}
