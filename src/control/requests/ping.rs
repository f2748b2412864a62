use super::*;

request! {
    /// Says which daemon answers here.
    Ping = "ping", Nothing => Pong;
    access: Anybody;
    scope: Scope::View;
}

async fn answer(call: Call<'_>, _: Nothing) -> Result<Pong, RpcError> {
    Ok(call.daemon().pong())
}
