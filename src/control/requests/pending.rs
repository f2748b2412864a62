use super::*;

request! {
    /// Shows the dialogs that wait for a person.
    Pending = "pending", Select => Vec<PendingDialog>;
    access: Granted("pending", Slots);
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    params: Select,
    _: Caller<'_>,
) -> Result<Vec<PendingDialog>, RpcError> {
    dispatcher.pending(params).await
}
