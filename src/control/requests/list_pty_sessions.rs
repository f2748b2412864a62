use super::*;

request! {
    /// Lists sessions as the tools know them.
    ListPtySessions = "list_pty_sessions", SessionsParams => ListPtyAnswer;
    access: Granted("unified_exec", OwnSessions);
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    params: SessionsParams,
    caller: Caller<'_>,
) -> Result<ListPtyAnswer, RpcError> {
    dispatcher.list_pty(params, caller.peer).await
}
