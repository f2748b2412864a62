use super::*;

request! {
    /// Passes on what Claude Code tells a hook of `missiond hook`.
    Hook = HOOK, HookParams => HookAnswer;
    access: OwnSlot;
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    params: HookParams,
    _: Caller<'_>,
) -> Result<HookAnswer, RpcError> {
    dispatcher.hook(params).await
}
