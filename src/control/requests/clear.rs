use super::*;

request! {
    /// Drops the kept output of a session.
    Clear = "clear", OneSlot => Done;
    access: PersonOnly;
    scope: Scope::Keys;
    names: Accepts::only_sessions("missiond screen ID");
}

async fn answer(call: Call<'_>, one: OneSlot) -> Result<Done, RpcError> {
    let slot = call.slot(&one.slot)?;
    request(&slot, |reply| TerminalRequest::Clear { reply }).await?;
    Ok(done(&slot))
}
