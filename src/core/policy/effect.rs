//! What allow rules would have changed among calls that were decided on.

use super::{Ask, Decision, Paths, Policy, decide};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many days are looked back: a rule is for calls that come again.
pub const EFFECT_DAYS: u32 = 7;

/// How many calls of the last days the rules would have allowed, by what is decided without the rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleEffect {
    /// Calls that a person is asked about.
    pub asks: usize,
    /// Calls that are denied.
    pub denies: usize,
}

impl RuleEffect {
    /// The effect of some allow rules in the policy of a role; `None` if one of them is no rule. Each call comes with its slot
    /// and with how often it was made.
    pub fn of<'a>(
        policy: &Policy,
        rules: &[String],
        calls: impl IntoIterator<Item = (&'a str, &'a Ask, usize)>,
        paths: &dyn Paths,
    ) -> Option<RuleEffect> {
        let add = |policy: Policy, rule: &String| policy.with_allow_rule(rule);
        let changed = rules.iter().try_fold(policy.clone(), add)?;
        let mut effect = RuleEffect::default();
        for (slot, ask, count) in calls {
            let says = |policy: &Policy| decide(&policy.for_slot(slot), ask, paths).decision;
            match (says(policy), says(&changed)) {
                (Decision::Ask, Decision::Allow) => effect.asks += count,
                (Decision::Deny, Decision::Allow) => effect.denies += count,
                _ => {}
            }
        }
        Some(effect)
    }

    /// Such as "2 asks become allow, 0 denies, in the last 7 days".
    pub fn shown(self) -> String {
        let asks = match self.asks {
            1 => "1 ask becomes allow".to_owned(),
            many => format!("{many} asks become allow"),
        };
        let denies = match self.denies {
            1 => "1 deny".to_owned(),
            many => format!("{many} denies"),
        };
        format!("{asks}, {denies}, in the last {EFFECT_DAYS} days")
    }
}
