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
    pub role: String,
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
                role: slot.role.clone(),
                policy: role.policy.for_slot(&slot.name),
                waits: role.waits,
            },
            None => Standing {
                role: slot.role.clone(),
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
    let named = config.daemon.own_files(&config.file).into_iter();
    named
        .chain([world.state.clone(), world.program.clone()])
        .collect()
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
    fn only_reads_the_project(&self, ask: &Ask) -> bool {
        policy::only_reads_the_project(ask, &self.paths)
    }

    fn rule_for_always(&self, ask: &Ask) -> Result<String, String> {
        policy::rule_for_always(&self.policy, ask, &self.paths)
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn only_what_reads_inside_the_directory_is_reading_the_project() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().join("project");
        std::fs::create_dir_all(cwd.join("src")).unwrap();
        std::os::unix::fs::symlink("/etc", cwd.join("out")).unwrap();
        let judge = PolicyJudge {
            policy: Policy::asking(&cwd, &cwd),
            paths: RealPaths::new(None),
        };
        let reads = |tool: &str, input: Value| {
            let ask = Ask {
                tool: tool.to_owned(),
                input,
                cwd: cwd.clone(),
                at: None,
                complete: true,
            };
            judge.only_reads_the_project(&ask)
        };
        let file = cwd.join("src/main.rs");
        assert!(reads("Read", json!({ "file_path": file })));
        assert!(reads("Grep", json!({"pattern": "x"})));
        assert!(reads("Glob", json!({"pattern": "**/*.rs"})));
        assert!(reads("LS", json!({ "path": cwd })));
        assert!(!reads("Write", json!({ "file_path": file, "content": "" })));
        assert!(!reads("Edit", json!({ "file_path": file })));
        assert!(reads("Bash", json!({"command": "cat src/main.rs"})));
        assert!(reads("TodoWrite", json!({"todos": []})));
        assert!(!reads("Bash", json!({"command": "cat out/passwd"})));
        assert!(!reads("Bash", json!({"command": "cat *"})));
        assert!(!reads("WebFetch", json!({"url": "https://x.example"})));
        assert!(!reads("Read", json!({"file_path": "/etc/passwd"})));
        assert!(!reads("Read", json!({"file_path": "../other"})));
        assert!(!reads("Read", json!({"file_path": cwd.join("out/passwd")})));
        assert!(!reads("Grep", json!({"pattern": "x", "path": "/etc"})));
        assert!(!reads("Glob", json!({"pattern": "/etc/*"})));
        assert!(!reads("Glob", json!({"pattern": "x/../*", "path": "/etc"})));
        assert!(!reads("mcp__x__read", json!({ "file_path": file })));
    }
}
