use super::*;

request! {
    /// Shows one session.
    Info = "info", OneSlot => SessionInfo;
    access: PersonOnly;
    names: Accepts::only_sessions("missiond status ID");
}

async fn answer(
    dispatcher: &Dispatcher,
    params: OneSlot,
    _: Caller<'_>,
) -> Result<SessionInfo, RpcError> {
    dispatcher.info(params).await
}
