use super::*;

request! {
    /// Starts slots.
    Start = "start", Select => Vec<Done>;
    access: Granted("start", Slots);
    scope: Scope::Steer;
    names: Accepts::Slots("missiond session spawn");
}

async fn answer(call: Call<'_>, params: Select) -> Result<Vec<Done>, RpcError> {
    call.each_of_config(params, Input::Start).await
}
