use super::*;
use crate::core::policy::Summary;

const NO_POLICY: &str = "the slot was removed from the config: no policy holds for it, and a person is asked about everything";

request! {
    /// Shows the policy of a slot, as it is in force.
    InForce = "policy", OneSlot => PolicyAnswer;
    access: PersonOnly;
    scope: Scope::View;
    names: Accepts::Slots("missiond info ID");
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyAnswer {
    pub slot: String,
    pub role: String,
    /// The file on disk allows more, and waits for `reload`.
    pub waits: bool,
    #[serde(flatten)]
    pub policy: Summary,
}

async fn answer(call: Call<'_>, one: OneSlot) -> Result<PolicyAnswer, RpcError> {
    let status = call.slot(&one.slot)?.status();
    let in_force = call.daemon.policies();
    let standing = in_force
        .get(&status.slot)
        .ok_or_else(|| RpcError::new(Fault::Refused, NO_POLICY))?;
    Ok(PolicyAnswer {
        slot: status.slot,
        role: status.role,
        waits: standing.waits,
        policy: standing.policy.summary(),
    })
}
