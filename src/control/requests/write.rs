use super::*;
use crate::slot::Writing;

request! {
    /// Writes bytes to the terminal of a slot or session.
    Write = "write", WriteParams => Done;
    access: PersonOnly;
    scope: Scope::Keys;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteParams {
    /// The name of the slot, or the id of the session.
    pub slot: String,
    /// The bytes, as numbers.
    pub bytes: Vec<u8>,
    /// Write also if a dialog is open in a slot of Claude Code. The audit records it as a person's verdict.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub into_dialog: bool,
    /// Write only if this client has the keyboard: the `id` that it has taken it with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyboard: Option<String>,
}

async fn answer(call: Call<'_>, params: WriteParams) -> Result<Done, RpcError> {
    let slot = call.slot(&params.slot)?;
    let writing = Writing {
        into_dialog: params.into_dialog,
        keyboard: params.keyboard,
        ..Writing::raw(params.bytes, call.peer)
    };
    write(&slot, writing).await?;
    Ok(done(&slot))
}

pub(super) async fn write(slot: &SlotHandle, writing: Writing) -> Result<(), RpcError> {
    slot.request(|reply| SlotCommand::Write { writing, reply })
        .await
}
