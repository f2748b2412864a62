use super::*;

request! {
    /// Starts a program in a terminal of its own.
    Spawn = "spawn", SpawnParams => SpawnAnswer;
    access: PersonOnly;
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    params: SpawnParams,
    caller: Caller<'_>,
) -> Result<SpawnAnswer, RpcError> {
    dispatcher.spawn(params, caller.gone).await
}
