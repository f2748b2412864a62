use super::*;

request! {
    /// Shows the screen of a slot or session.
    Screen = "screen", ScreenParams => ScreenAnswer;
    access: Granted("screen", Slots);
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    params: ScreenParams,
    _: Caller<'_>,
) -> Result<ScreenAnswer, RpcError> {
    dispatcher.screen(params).await
}
