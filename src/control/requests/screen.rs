use super::*;

request! {
    /// Shows the screen of a slot or session.
    Screen = "screen", ScreenParams => ScreenAnswer;
    access: Granted("screen", Slots);
    scope: Scope::View;
}

async fn answer(call: Call<'_>, params: ScreenParams) -> Result<ScreenAnswer, RpcError> {
    call.slot(&params.slot)?
        .request(|reply| SlotCommand::Screen { params, reply })
        .await
}
