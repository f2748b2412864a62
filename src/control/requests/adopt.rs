use super::*;
use crate::control::dispatch::each::not_in_config;

request! {
    /// Takes over a conversation that exists.
    Adopt = "adopt", AdoptParams => AdoptAnswer;
    access: PersonOnly;
    scope: Scope::Keys;
    names: Accepts::Slots("missiond attach ID");
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdoptParams {
    /// The name of the slot, or `@role` if the role has one slot.
    pub slot: String,
    /// The id of the conversation.
    #[schemars(with = "String")]
    pub session_id: uuid::Uuid,
    /// Start the slot with it if it is not running.
    #[serde(default)]
    pub start: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AdoptAnswer {
    pub slot: String,
    #[schemars(with = "String")]
    pub session_id: uuid::Uuid,
    /// True if the slot runs with it now; else it takes effect at the next start.
    pub running: bool,
}

async fn answer(call: Call<'_>, params: AdoptParams) -> Result<AdoptAnswer, RpcError> {
    let slot = call.slot(&params.slot)?;
    if slot.status().removed {
        return Err(not_in_config(&params.slot));
    }
    let session = params.session_id;
    let id = session.to_string();
    let others = call.statuses().into_iter();
    let mut others = others.filter(|other| other.slot != params.slot);
    if let Some(other) = others.find(|other| other.session_id.as_ref() == Some(&id)) {
        let text = format!("{id} is the conversation of slot {}", other.slot);
        return Err(RpcError::new(Fault::Refused, text));
    }
    let restarts = slot
        .request(|reply| SlotCommand::TakeOver { session, reply })
        .await?;
    if restarts {
        slot.ask(Input::Restart).await?;
    } else if params.start {
        slot.ask(Input::Start).await?;
    }
    Ok(AdoptAnswer {
        slot: params.slot,
        session_id: session,
        running: slot.status().pid.is_some(),
    })
}
