//! The policies of all roles, as the slots ask them.

use super::DaemonError;
use crate::config::{self, Config, ConfigError, Kind, SlotConfig};
use crate::diagnostic::Problem;
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
    pub fn load(config: &Config, world: &World) -> Result<Rules, DaemonError> {
        Rules::read(config, world).map_err(DaemonError::Config)
    }

    /// Reads the policy of every role; all that is wrong with any of them comes back at once.
    pub(super) fn read(config: &Config, world: &World) -> Result<Rules, ConfigError> {
        let mut roles = BTreeMap::new();
        let mut problems = Vec::new();
        for slot in config.slots.iter().filter(|slot| slot.kind == Kind::Claude) {
            if roles.contains_key(&slot.role) {
                continue;
            }
            match read_role(config, &slot.role) {
                Ok(mut role) => {
                    let policy = Policy::clone(&role.policy).protecting(protected(config, world));
                    role.policy = Arc::new(policy);
                    roles.insert(slot.role.clone(), role);
                }
                Err(found) => problems.extend(found),
            }
        }
        if problems.is_empty() {
            Ok(Rules {
                roles,
                home: std::env::home_dir(),
            })
        } else {
            Err(problems.into())
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

fn read_role(config: &Config, role: &str) -> Result<Role, Vec<Problem>> {
    let file = config.daemon.policy_file(role);
    let source = config::read_source(&file).map_err(|problem| vec![*problem])?;
    let project = config.file.parent().unwrap_or(&config.file);
    let policy = Policy::parse(&source.text, &file, project)?;
    Ok(Role {
        text: source.text.clone(),
        policy: Arc::new(policy),
        waits: false,
    })
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
