use super::*;

request! {
    /// Starts a command and answers with what it writes in the first moments.
    UnifiedExec = "unified_exec", ExecParams => ToolAnswer;
    access: Granted("unified_exec", OwnSessions);
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    params: ExecParams,
    caller: Caller<'_>,
) -> Result<ToolAnswer, RpcError> {
    dispatcher.exec(params, caller.peer, caller.gone).await
}
