use super::*;

request! {
    /// Counts slots and sessions.
    Stats = "stats", Nothing => StatsAnswer;
    access: Anybody;
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    _: Nothing,
    _: Caller<'_>,
) -> Result<StatsAnswer, RpcError> {
    Ok(dispatcher.stats())
}
