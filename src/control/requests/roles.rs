use super::*;
use std::collections::BTreeMap;

request! {
    /// Shows the roles, with the slots of each and how many of them are idle or have an open dialog.
    Roles = "roles", Nothing => Vec<RoleStatus>;
    access: PersonOnly;
    scope: Scope::View;
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleStatus {
    pub role: String,
    /// The names of its slots.
    pub slots: Vec<String>,
    /// The number of slots that are idle and take a message at once.
    pub idle: usize,
    /// The number of slots with a dialog that waits for an answer.
    pub confirming: usize,
    /// True if its policy on the disk allows more than the one in force, and waits for `reload`.
    pub policy_waits: bool,
}

async fn answer(call: Call<'_>, _: Nothing) -> Result<Vec<RoleStatus>, RpcError> {
    let policies = call.daemon().policies();
    let mut roles = BTreeMap::<String, RoleStatus>::new();
    for slot in call.selected(&Select::default())? {
        let status = slot.status();
        let role = roles.entry(status.role.clone()).or_default();
        role.role = status.role;
        role.idle += usize::from(status.state == State::Idle);
        role.confirming += usize::from(status.dialog.is_some());
        let policy = policies.of(&status.slot, &role.role);
        role.policy_waits |= policy.is_some_and(|policy| policy.waits.is_some());
        role.slots.push(status.slot);
    }
    Ok(roles.into_values().collect())
}
