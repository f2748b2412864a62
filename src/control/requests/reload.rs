use super::*;

request! {
    /// Takes the config and the policies as they are on the disk now.
    Reload = "reload", Nothing => ReloadAnswer;
    access: PersonOnly;
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    _: Nothing,
    _: Caller<'_>,
) -> Result<ReloadAnswer, RpcError> {
    dispatcher.reload().await
}
