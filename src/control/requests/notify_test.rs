use super::*;

request! {
    /// Sends a test message through each channel of `[notify]`, and shows the result of each.
    NotifyTest = "notify_test", Nothing => Vec<ChannelTest>;
    access: PersonOnly;
    scope: Scope::Keys;
}

async fn answer(call: Call<'_>, _: Nothing) -> Result<Vec<ChannelTest>, RpcError> {
    call.daemon().alerts().test().await
}
