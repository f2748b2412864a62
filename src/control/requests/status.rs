use super::*;

request! {
    /// Shows slots, and sessions that are named.
    Status = "status", Select => Vec<SlotStatus>;
    access: Anybody;
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    params: Select,
    _: Caller<'_>,
) -> Result<Vec<SlotStatus>, RpcError> {
    dispatcher.status(params).await
}
