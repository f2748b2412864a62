use super::*;
use crate::core::claude::HookEvent;

request! {
    /// Passes on the payload that Claude Code gave to a hook of `missiond hook`.
    Hook = HOOK, HookParams => HookAnswer;
    access: OwnSlot;
}

async fn answer(call: Call<'_>, params: HookParams) -> Result<HookAnswer, RpcError> {
    let slot = call.slot(&params.slot)?;
    let Some(event) = HookEvent::parse(&params.payload) else {
        return Err(RpcError::new(
            Fault::Usage,
            "this is not the JSON of a hook",
        ));
    };
    match slot.ask(|token| Input::Heard(token, event)).await? {
        Reply::Hook(output) => Ok(HookAnswer { output }),
        _ => Err(RpcError::new(Fault::Failed, "the slot gave no answer")),
    }
}
