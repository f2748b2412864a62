use super::*;

request! {
    /// Stops the turn of a slot, never its program.
    Interrupt = "interrupt", OneSlot => InterruptAnswer;
    access: Granted("interrupt", Slots);
    names: Accepts::Slots("missiond keys ID ctrl+c");
}

async fn answer(
    dispatcher: &Dispatcher,
    params: OneSlot,
    caller: Caller<'_>,
) -> Result<InterruptAnswer, RpcError> {
    dispatcher.interrupt(params, caller.peer).await
}
