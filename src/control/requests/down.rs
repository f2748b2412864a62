use super::*;

request! {
    /// Ends the daemon.
    Down = "down", DownParams => Nothing;
    access: PersonOnly;
    scope: Scope::Keys;
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DownParams {
    /// Leave the slots running in their shims.
    #[serde(default)]
    pub keep: bool,
}

async fn answer(call: Call<'_>, params: DownParams) -> Result<Nothing, RpcError> {
    call.daemon()
        .order(|reply| Order::Down {
            keep: params.keep,
            reply,
        })
        .await
}
