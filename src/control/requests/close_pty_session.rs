use super::*;

request! {
    /// Ends a command and removes its session.
    ClosePtySession = "close_pty_session", ClosePtyParams => ClosePtyAnswer;
    access: Granted("unified_exec", OwnSessions);
    names: Accepts::only_sessions("missiond stop ID");
}

async fn answer(
    dispatcher: &Dispatcher,
    params: ClosePtyParams,
    _: Caller<'_>,
) -> Result<ClosePtyAnswer, RpcError> {
    dispatcher.close_pty(params).await
}
