use super::*;

request! {
    /// Ends the daemon.
    Down = "down", DownParams => Nothing;
    access: PersonOnly;
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    params: DownParams,
    _: Caller<'_>,
) -> Result<Nothing, RpcError> {
    dispatcher.down(params).await
}
