use super::*;

request! {
    /// Answers a dialog.
    Confirm = "confirm", ConfirmParams => ConfirmAnswer;
    access: PersonOnly;
    names: Accepts::Slots("missiond type ID …, missiond keys ID …");
}

async fn answer(
    dispatcher: &Dispatcher,
    params: ConfirmParams,
    caller: Caller<'_>,
) -> Result<ConfirmAnswer, RpcError> {
    dispatcher.confirm(params, caller.peer.person()).await
}
