use super::*;

request! {
    /// Shows the policy of a slot, as it is in force.
    InForce = "policy", OneSlot => PolicyAnswer;
    access: PersonOnly;
    names: Accepts::Slots("missiond info ID");
}

async fn answer(
    dispatcher: &Dispatcher,
    params: OneSlot,
    _: Caller<'_>,
) -> Result<PolicyAnswer, RpcError> {
    dispatcher.policy(params).await
}
