use super::*;

request! {
    /// Takes the config and the policies as they are on the disk now.
    Reload = "reload", Nothing => ReloadAnswer;
    access: PersonOnly;
    scope: Scope::Keys;
}

async fn answer(call: Call<'_>, _: Nothing) -> Result<ReloadAnswer, RpcError> {
    call.daemon().order(|reply| Order::Reload { reply }).await
}
