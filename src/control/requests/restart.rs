use super::*;

request! {
    /// Ends the programs of slots and starts them again.
    Restart = "restart", Select => Vec<Done>;
    access: Granted("restart", Slots);
    scope: Scope::Steer;
    names: Accepts::Slots("missiond session close ID; missiond session spawn");
}

async fn answer(call: Call<'_>, params: Select) -> Result<Vec<Done>, RpcError> {
    call.each_of_config(params, Input::Restart).await
}
