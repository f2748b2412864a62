use super::*;

request! {
    /// Shows on what evidence the state of a slot rests.
    Why = "why", OneSlot => WhyAnswer;
    access: Granted("why", Slots);
    names: Accepts::Slots("missiond info ID");
}

async fn answer(
    dispatcher: &Dispatcher,
    params: OneSlot,
    _: Caller<'_>,
) -> Result<WhyAnswer, RpcError> {
    dispatcher.why(params).await
}
