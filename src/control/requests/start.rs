use super::*;
use crate::core::machine::Input;

request! {
    /// Starts slots.
    Start = "start", Select => Vec<Done>;
    access: Granted("start", Slots);
    names: Accepts::Slots("missiond spawn");
}

async fn answer(
    dispatcher: &Dispatcher,
    params: Select,
    _: Caller<'_>,
) -> Result<Vec<Done>, RpcError> {
    dispatcher.each_of_config(params, Input::Start).await
}
