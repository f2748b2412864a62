use super::*;

request! {
    /// Tells what became of a message that was sent with an id.
    Sent = "sent", SentParams => SentAnswer;
    access: PersonOnly;
    names: Accepts::Slots("missiond output ID");
}

async fn answer(
    dispatcher: &Dispatcher,
    params: SentParams,
    _: Caller<'_>,
) -> Result<SentAnswer, RpcError> {
    dispatcher.sent(params).await
}
