//! The policies of all roles, as the slots ask them.

use crate::config::{Config, RolePolicy, SlotConfig};
use crate::policy::{self, Ask, Decision, PermissionPolicy, Policy, RealPaths, Verdict};
use crate::reading::DialogKind;
use crate::slot::World;
use crate::slot::machine::Judge;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A role's policy, and the text that it was read from.
#[derive(Debug, Clone)]
pub(super) struct Role {
    pub text: Arc<str>,
    pub policy: Arc<Policy>,
    /// What is on the disk allows more, and waits for a person.
    pub waits: bool,
}

/// The policy that a slot is judged by.
#[derive(Debug, Clone)]
pub struct Standing {
    pub policy: Policy,
    pub waits: bool,
}

/// One policy for each role that a slot has.
#[derive(Debug, Clone)]
pub struct Rules {
    pub(super) roles: BTreeMap<String, Role>,
    home: Option<PathBuf>,
}

impl Rules {
    /// The policies of a config, with missiond's own files protected.
    pub fn new(config: &Config, world: &World) -> Rules {
        let role = |read: &RolePolicy| Role {
            text: read.text.clone(),
            policy: Arc::new(Policy::clone(&read.policy).protecting(protected(config, world))),
            waits: false,
        };
        let roles = config.policies.iter();
        Rules {
            roles: roles
                .map(|(name, read)| (name.clone(), role(read)))
                .collect(),
            home: std::env::home_dir(),
        }
    }

    /// The policy of one slot. A role with no policy is a plain program's, which is never asked about.
    pub fn standing(&self, slot: &SlotConfig) -> Standing {
        match self.roles.get(&slot.role) {
            Some(role) => Standing {
                policy: role.policy.for_slot(&slot.name),
                waits: role.waits,
            },
            None => Standing {
                policy: Policy::asking(&slot.cwd, &slot.cwd),
                waits: false,
            },
        }
    }

    pub fn judge(&self, slot: &SlotConfig) -> Arc<dyn Judge> {
        Arc::new(PolicyJudge {
            policy: self.standing(slot).policy,
            paths: RealPaths::new(self.home.clone()),
        })
    }
}

/// missiond's own files: no rule allows a slot to write them.
fn protected(config: &Config, world: &World) -> Vec<PathBuf> {
    let own = [
        &config.file,
        &config.daemon.policies,
        &config.daemon.logs,
        &world.state,
        &world.program,
    ];
    own.into_iter().cloned().collect()
}

#[derive(Debug)]
struct PolicyJudge {
    policy: Policy,
    paths: RealPaths,
}

impl PermissionPolicy for PolicyJudge {
    fn decide(&self, ask: &Ask) -> Verdict {
        policy::decide(&self.policy, ask, &self.paths)
    }
}

impl Judge for PolicyJudge {
    fn dialog(&self, kind: DialogKind) -> Decision {
        policy::dialog_decision(&self.policy, kind)
    }

    fn deny_reason(&self) -> Option<String> {
        self.policy.deny_reason.clone()
    }

    fn deny_rules(&self) -> Vec<String> {
        self.policy.deny_rules_for_settings()
    }
}
