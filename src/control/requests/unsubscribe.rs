use super::*;

request! {
    /// Ends a subscription of this connection; no notification of it follows the answer.
    Unsubscribe = "unsubscribe", UnsubscribeParams => Nothing;
    access: Granted("events", Connection);
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnsubscribeParams {
    /// The id of the `events` request, as it was sent.
    pub id: Value,
}

async fn answer(call: Call<'_>, params: UnsubscribeParams) -> Result<Nothing, RpcError> {
    call.subscriptions.end(params).await
}
