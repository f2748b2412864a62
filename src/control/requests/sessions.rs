use super::*;

request! {
    /// Lists sessions, also those that have ended and are kept.
    Sessions = "sessions", SessionsParams => Vec<SessionInfo>;
    access: PersonOnly;
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    params: SessionsParams,
    _: Caller<'_>,
) -> Result<Vec<SessionInfo>, RpcError> {
    dispatcher.sessions(params).await
}
