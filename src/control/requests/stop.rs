use super::*;

request! {
    /// Ends the programs of slots; they stay down.
    Stop = "stop", Select => Vec<Done>;
    access: Granted("stop", Slots);
    scope: Scope::Steer;
    names: Accepts::Slots("missiond session close ID");
}

async fn answer(call: Call<'_>, params: Select) -> Result<Vec<Done>, RpcError> {
    call.each(params, Input::Stop).await
}
