use super::*;

request! {
    /// Loads the config and the policies from the disk as they are now.
    Reload = "reload", Nothing => ReloadAnswer;
    access: PersonOnly;
    scope: Scope::Keys;
}

async fn answer(call: Call<'_>, _: Nothing) -> Result<ReloadAnswer, RpcError> {
    call.daemon().order(|reply| Order::Reload { reply }).await
}
