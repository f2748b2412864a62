use super::*;

request! {
    /// Says which daemon answers here.
    Ping = "ping", Nothing => Pong;
    access: Anybody;
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    _: Nothing,
    _: Caller<'_>,
) -> Result<Pong, RpcError> {
    Ok(dispatcher.daemon.pong())
}
