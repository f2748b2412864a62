use super::*;

request! {
    /// Writes bytes to the terminal of a slot or session.
    Write = "write", WriteParams => Done;
    access: PersonOnly;
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    params: WriteParams,
    caller: Caller<'_>,
) -> Result<Done, RpcError> {
    dispatcher.write(params, caller.peer).await
}
