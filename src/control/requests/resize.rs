use super::*;

request! {
    /// Changes the size of a session's terminal.
    Resize = "resize", ResizeParams => Done;
    access: PersonOnly;
    names: Accepts::only_sessions("set `cols` and `rows` in slots.toml, then: missiond restart ID");
}

async fn answer(
    dispatcher: &Dispatcher,
    params: ResizeParams,
    _: Caller<'_>,
) -> Result<Done, RpcError> {
    dispatcher.resize(params).await
}
