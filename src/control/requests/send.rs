use super::*;

request! {
    /// Sends a message to a slot, and answers with what Claude Code says to it.
    Send = "send", SendParams => SendAnswer;
    access: Granted("send", Slots);
    names: Accepts::Slots("missiond type ID …");
}

async fn answer(
    dispatcher: &Dispatcher,
    params: SendParams,
    caller: Caller<'_>,
) -> Result<SendAnswer, RpcError> {
    dispatcher.send(params, caller.peer).await
}
