use super::*;
use crate::slot::KeyboardRequest;

request! {
    /// Takes the keyboard of a slot or session, keeps it, or gives it back. Everybody sees who has it; it is lost to whoever takes it next or types at an attached terminal, and after 30 s without a word.
    Keyboard = "keyboard", KeyboardParams => KeyboardAnswer;
    access: PersonOnly;
    scope: Scope::Keys;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyboardParams {
    /// The name of the slot, or the id of the session.
    pub slot: String,
    /// A name that the client has chosen for itself, such as a random number; `write` names it too.
    #[schemars(length(min = 1, max = 64))]
    pub id: String,
    /// Whether it is taken, kept for another while, or given back.
    pub action: KeyboardAction,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyboardAnswer {
    pub slot: String,
    /// Who has it now.
    pub keyboard: Option<KeyboardHolder>,
}

/// Longer names would only be kept in memory.
const MAX_ID: usize = 64;

async fn answer(call: Call<'_>, params: KeyboardParams) -> Result<KeyboardAnswer, RpcError> {
    let KeyboardParams { slot, id, action } = params;
    if id.is_empty() || id.len() > MAX_ID {
        return Err(RpcError::new(Fault::Usage, "`id` has 1 to 64 bytes"));
    }
    let slot = call.slot(&slot)?;
    let person = call.peer().person();
    let request = KeyboardRequest { id, action, person };
    let keyboard = slot
        .request(|reply| SlotCommand::Keyboard { request, reply })
        .await?;
    Ok(KeyboardAnswer {
        slot: slot.status().slot,
        keyboard,
    })
}
