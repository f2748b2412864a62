use super::*;

request! {
    /// Answers when a slot or session is as asked: the first condition that holds ends the wait.
    Wait = "wait", WaitParams => WaitAnswer;
    access: Granted("wait", Slots);
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    params: WaitParams,
    _: Caller<'_>,
) -> Result<WaitAnswer, RpcError> {
    dispatcher.wait(params).await
}
