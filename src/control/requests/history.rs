use super::*;

request! {
    /// Shows the conversation of a slot.
    History = "history", HistoryParams => HistoryAnswer;
    access: Granted("history", Slots);
    names: Accepts::Slots("missiond output ID");
}

async fn answer(
    dispatcher: &Dispatcher,
    params: HistoryParams,
    _: Caller<'_>,
) -> Result<HistoryAnswer, RpcError> {
    dispatcher.history(params).await
}
