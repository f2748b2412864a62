//! The policies of all roles, as the slots ask them.

use crate::config::{Config, RolePolicy, SlotConfig};
use crate::policy::{self, Ask, Decision, PermissionPolicy, Policy, RealPaths, Verdict};
use crate::reading::DialogKind;
use crate::slot::World;
use crate::slot::machine::Judge;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
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

/// A policy that the program around the supervisor brings along.
#[derive(Clone)]
pub struct OwnPolicy(Arc<dyn PermissionPolicy>);

impl OwnPolicy {
    pub fn new(policy: impl PermissionPolicy + 'static) -> OwnPolicy {
        OwnPolicy(Arc::new(policy))
    }

    /// What it says; a policy that panics leaves the call to a person.
    fn decide(&self, ask: &Ask) -> Verdict {
        let decided = catch_unwind(AssertUnwindSafe(|| self.0.decide(ask)));
        decided.unwrap_or_else(|_| Verdict {
            decision: Decision::Ask,
            rule: None,
            why: "the program's own policy panicked".to_owned(),
        })
    }

    /// Why `always` adds no rule beside such a policy: a file's rule that allows does not change what it says.
    pub(super) fn no_rule_for_always() -> String {
        "the program around missiond judges by a policy of its own, to which no rule can be added"
            .to_owned()
    }
}

impl fmt::Debug for OwnPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnPolicy")
    }
}

/// One policy for each role that a slot has.
#[derive(Debug, Clone)]
pub struct Rules {
    pub(super) roles: BTreeMap<String, Role>,
    /// A policy of the program around the daemon, beside those of the roles.
    pub(super) own: Option<OwnPolicy>,
    home: Option<PathBuf>,
}

impl Rules {
    /// The policies of a config, with missiond's own files protected.
    pub fn new(config: &Config, world: &World) -> Rules {
        let protected = protected(config, world);
        let role = |read: &RolePolicy| Role {
            text: read.text.clone(),
            policy: Arc::new(Policy::clone(&read.policy).protecting(protected.clone())),
            waits: false,
        };
        let roles = config.policies.iter();
        Rules {
            roles: roles
                .map(|(name, read)| (name.clone(), role(read)))
                .collect(),
            own: None,
            home: std::env::home_dir(),
        }
    }

    /// The same rules beside this policy, or beside none.
    pub fn beside(mut self, own: Option<OwnPolicy>) -> Rules {
        self.own = own;
        self
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
        let paths = RealPaths::new(self.home.clone());
        let policy = self.standing(slot).policy;
        Arc::new(PolicyJudge::new(policy, self.own.clone(), paths))
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
    /// Without its default where there is a policy of the program's own.
    policy: Policy,
    own: Option<OwnPolicy>,
    paths: RealPaths,
}

impl PolicyJudge {
    fn new(policy: Policy, own: Option<OwnPolicy>, paths: RealPaths) -> PolicyJudge {
        let policy = match own {
            Some(_) => policy.without_default(),
            None => policy,
        };
        PolicyJudge { policy, own, paths }
    }
}

impl PermissionPolicy for PolicyJudge {
    fn decide(&self, ask: &Ask) -> Verdict {
        let by_file = policy::decide(&self.policy, ask, &self.paths);
        let Some(own) = &self.own else {
            return by_file;
        };
        // The default of the role's file gives way; its rules hold, and what no file can allow is not allowed.
        let says = own.decide(ask);
        match by_file.decision {
            Decision::Ask | Decision::Deny if by_file.decision > says.decision => by_file,
            _ => says,
        }
    }
}

impl Judge for PolicyJudge {
    fn only_reads_the_project(&self, ask: &Ask) -> bool {
        policy::only_reads_the_project(ask, &self.paths)
    }

    fn rule_for_always(&self, ask: &Ask) -> Result<String, String> {
        match self.own {
            Some(_) => Err(OwnPolicy::no_rule_for_always()),
            None => policy::rule_for_always(&self.policy, ask, &self.paths),
        }
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
        let paths = RealPaths::new(None);
        let judge = PolicyJudge::new(Policy::asking(&cwd, &cwd), None, paths);
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

    struct Says(Decision);

    impl PermissionPolicy for Says {
        fn decide(&self, ask: &Ask) -> Verdict {
            assert_ne!(ask.tool, "Panic");
            Verdict {
                decision: self.0,
                rule: None,
                why: "the program says so".to_owned(),
            }
        }
    }

    #[test]
    fn a_policy_of_ones_own_decides_within_the_roles_rules() {
        use Decision::{Allow, Ask as Asks, Deny, Silent};
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().join("project");
        let config = dir.path().join("slots.toml");
        std::fs::create_dir_all(&cwd).unwrap();
        let text = r#"
            allow = ["Bash(make *)"]
            ask = ["Bash(git push *)"]
            deny = ["Bash(curl *)"]
        "#;
        let judge = |default: &str, own: Decision| {
            let text = format!("default = \"{default}\"\n{text}");
            let policy = Policy::parse(&text, &cwd, &cwd).unwrap();
            let policy = policy.protecting([config.clone()]);
            let own = Some(OwnPolicy::new(Says(own)));
            PolicyJudge::new(policy, own, RealPaths::new(None))
        };
        let call = |tool: &str, input: Value, complete: bool| Ask {
            tool: tool.to_owned(),
            input,
            cwd: cwd.clone(),
            at: None,
            complete,
        };
        let bash = |command: &str| call("Bash", json!({ "command": command }), true);
        let edit = |path: &std::path::Path| call("Edit", json!({ "file_path": path }), true);
        let part = call("Bash", json!({"command": "cargo test"}), false);
        let cases = [
            // No rule speaks: the program decides.
            (Allow, bash("cargo test"), Allow),
            (Asks, bash("cargo test"), Asks),
            (Deny, bash("cargo test"), Deny),
            (Allow, call("mcp__x__y", json!({}), true), Allow),
            (Allow, edit(&cwd.join("src.rs")), Allow),
            // The stricter of both.
            (Asks, bash("make all"), Asks),
            (Allow, bash("git push origin"), Asks),
            (Deny, bash("git push origin"), Deny),
            (Allow, bash("curl x.example"), Deny),
            // A rule on one part holds, whatever the default says of the others.
            (Allow, bash("cargo test && git push origin"), Asks),
            (Allow, bash("git push origin && cargo test"), Asks),
            (Allow, bash("cargo test && curl x.example"), Deny),
            // What no policy allows.
            (Allow, edit(&config), Asks),
            (Allow, bash(&format!("cp x {}", config.display())), Asks),
            (Allow, bash("eval \"$x\""), Asks),
            (Allow, call("Bash", json!({}), true), Asks),
            (Allow, call("WebFetch", json!({"url": "x"}), true), Asks),
            (Silent, edit(&config), Asks),
            (Allow, part.clone(), Asks),
            (Deny, part, Deny),
            (Allow, call("Panic", json!({}), true), Asks),
        ];
        for (own, ask, wanted) in cases {
            for default in ["ask", "deny", "claude"] {
                let judge = judge(default, own);
                let decision = judge.decide(&ask).decision;
                assert_eq!(decision, wanted, "{own:?} on {ask:?}, default {default}");
                let why_not = judge.rule_for_always(&ask).unwrap_err();
                assert!(why_not.contains("a policy of its own"), "{why_not}");
            }
        }
    }
}
