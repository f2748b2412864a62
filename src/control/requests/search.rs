use super::*;

request! {
    /// Searches what a slot has shown and said, or what a session has written.
    Search = "search", SearchParams => Vec<Match>;
    access: Granted("search", Slots);
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    params: SearchParams,
    _: Caller<'_>,
) -> Result<Vec<Match>, RpcError> {
    dispatcher.search(params).await
}
