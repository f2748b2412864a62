use super::*;
use crate::core::policy::{Decision, Policy, RuleInForce, Summary};

const NO_POLICY: &str = "the slot was removed from the config: no policy holds for it, and a person is asked about everything";

request! {
    /// Shows the policy of a slot that is in force.
    InForce = "policy", OneSlot => PolicyAnswer;
    access: PersonOnly;
    scope: Scope::View;
    names: Accepts::Slots("missiond session info ID");
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyAnswer {
    pub slot: String,
    /// The role that its program runs in.
    pub role: String,
    /// The role that the config names now, if it is another one: it takes effect at the next start.
    #[serde(default)]
    pub next_role: Option<String>,
    /// True if the file on disk may allow more, and waits for `reload`.
    pub waits: bool,
    /// The changes that wait, in a few words each.
    #[serde(default)]
    pub waiting: Vec<String>,
    /// The stricter rules of the file on disk, which are already in force. A call is allowed only if both files allow
    /// it.
    #[serde(default)]
    pub stricter: Vec<RuleInForce>,
    /// The text of the policy in force, if the file on disk has another text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(flatten)]
    pub policy: Summary,
}

async fn answer(call: Call<'_>, one: OneSlot) -> Result<PolicyAnswer, RpcError> {
    let SlotStatus { slot, role, .. } = call.slot(&one.slot)?.status();
    let policies = call.daemon().policies();
    let configured = policies.configured_role(&slot);
    let configured = configured.ok_or_else(|| RpcError::new(Fault::Refused, NO_POLICY))?;
    let next_role = (configured != role).then(|| configured.to_owned());
    let in_force = policies.of(&slot, &role);
    let in_force = in_force.ok_or_else(|| RpcError::new(Fault::Refused, unknown(&role, &slot)))?;
    let policy = in_force.policy.summary();
    let waits = in_force.waits.as_ref().map(Policy::summary);
    let restricts = |rule: &RuleInForce| {
        let known = |old: &RuleInForce| (old.decision, &old.rule) == (rule.decision, &rule.rule);
        rule.decision > Decision::Allow && !policy.rules.iter().any(known)
    };
    let stricter = waits.into_iter().flat_map(|waits| waits.rules);
    Ok(PolicyAnswer {
        slot,
        role,
        next_role,
        waits: in_force.waits.is_some(),
        waiting: in_force.waiting(),
        stricter: stricter.filter(restricts).collect(),
        text: in_force.waits.is_some().then(|| in_force.text.to_string()),
        policy,
    })
}

fn unknown(role: &str, slot: &str) -> String {
    format!(
        "{slot} runs in the role {role}, whose policy is not known any more: a person is asked about everything until \
         missiond restart {slot}"
    )
}
