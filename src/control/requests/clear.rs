use super::*;

request! {
    /// Drops the output that is kept of a session.
    Clear = "clear", OneSlot => Done;
    access: PersonOnly;
    names: Accepts::only_sessions("missiond screen ID");
}

async fn answer(
    dispatcher: &Dispatcher,
    params: OneSlot,
    _: Caller<'_>,
) -> Result<Done, RpcError> {
    dispatcher.clear(params).await
}
