use super::*;

request! {
    /// Ends a subscription of this connection; none of its notifications comes after the answer.
    Unsubscribe = "unsubscribe", UnsubscribeParams => Nothing;
    access: Granted("events", Connection);
    names: Either;
}

async fn answer(
    _: &Dispatcher,
    params: UnsubscribeParams,
    caller: Caller<'_>,
) -> Result<Nothing, RpcError> {
    caller.subscriptions.end(params).await
}
