use super::*;

request! {
    /// Takes over a conversation that exists.
    Adopt = "adopt", AdoptParams => AdoptAnswer;
    access: PersonOnly;
    names: Accepts::Slots("missiond attach ID");
}

async fn answer(
    dispatcher: &Dispatcher,
    params: AdoptParams,
    _: Caller<'_>,
) -> Result<AdoptAnswer, RpcError> {
    dispatcher.adopt(params).await
}
