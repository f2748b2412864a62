use super::*;
use crate::core::machine::Input;

request! {
    /// Ends the programs of slots; they stay down.
    Stop = "stop", Select => Vec<Done>;
    access: Granted("stop", Slots);
    names: Accepts::Slots("missiond close ID");
}

async fn answer(
    dispatcher: &Dispatcher,
    params: Select,
    _: Caller<'_>,
) -> Result<Vec<Done>, RpcError> {
    dispatcher.each(params, Input::Stop).await
}
