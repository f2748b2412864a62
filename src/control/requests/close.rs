use super::*;

request! {
    /// Ends sessions and removes them.
    Close = "close", CloseParams => CloseAnswer;
    access: PersonOnly;
    names: Accepts::only_sessions("missiond stop ID");
}

async fn answer(
    dispatcher: &Dispatcher,
    params: CloseParams,
    _: Caller<'_>,
) -> Result<CloseAnswer, RpcError> {
    dispatcher.close(params).await
}
