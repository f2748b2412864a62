//! The verdict of the rules in force on a call, part by part, and the effect of one more rule.

use super::{PoliciesInForce, Rules};
use crate::audit::AskedCall;
use crate::core::policy::{self, Ask, Explanation, RuleEffect};
use crate::daemon::holder;
use crate::os::real_paths::RealPaths;

impl PoliciesInForce {
    /// The verdict on a call of a slot whose program runs in this role, with the verdict on each part; `None` if the
    /// role is unknown. It reads the file system, which may hang.
    pub fn explain(&self, slot: &str, role: &str, ask: &Ask) -> Option<Explanation> {
        let rules = self.rules.as_ref()?;
        let in_force = rules.of_running(self.slot(slot)?, role)?;
        let protected = holder::files_of(&holder::configs(&rules.env));
        let explained = in_force.all().map(|policy| {
            let policy = match rules.own {
                Some(_) => policy.clone().without_default(),
                None => policy.clone(),
            };
            let policy = policy.protecting(protected.iter().cloned());
            policy::explain(&policy, ask, &paths(rules))
        });
        // The stricter one counts; if they are equal, the one in force.
        explained.reduce(
            |one, other| match other.verdict.decision > one.verdict.decision {
                true => other,
                false => one,
            },
        )
    }

    /// What one more allow rule in a role would have changed among these calls. It reads the file system, which may
    /// hang.
    pub fn effect(&self, role: &str, rule: &str, calls: &[AskedCall]) -> Option<RuleEffect> {
        let rules = self.rules.as_ref()?;
        let policy = &rules.role(role)?.policy;
        let is_of_role = |call: &&AskedCall| self.configured_role(&call.slot) == Some(role);
        let calls = calls.iter().filter(is_of_role);
        let calls = calls.map(|call| (call.slot.as_str(), &call.ask, call.count));
        RuleEffect::of(policy, &[rule.to_owned()], calls, &paths(rules))
    }

    /// The policy file of a role.
    pub fn file(&self, role: &str) -> Option<&std::path::Path> {
        let role = self.rules.as_ref()?.role(role)?;
        Some(&role.policy.file)
    }
}

fn paths(rules: &Rules) -> RealPaths {
    RealPaths::new(rules.home.clone())
}
