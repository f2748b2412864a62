//! The policies of all roles, in the form that the slots use.

mod explained;

use super::holder::{self, Configs};
use crate::config::{Config, RolePolicy};
use crate::core::machine::KnownRules;
use crate::core::policy::{
    self, Ask, Decision, Dialogs, PermissionPolicy, Policy, SettingsRules, Verdict,
};
use crate::core::settings::SlotConfig;
use crate::os::paths::Env;
use crate::os::real_paths::RealPaths;
use crate::slot::{AskEverything, SlotContext, SlotRules};
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A role's policy, and the text that it was read from.
#[derive(Debug, Clone)]
pub(super) struct Role {
    pub text: Arc<str>,
    pub policy: Arc<Policy>,
    /// The policy on the disk, if it allows more and waits for a person. Its stricter verdicts count already.
    pub waits: Option<Arc<Policy>>,
}

/// The policy that a slot is judged by.
#[derive(Debug, Clone)]
pub struct PolicyInForce {
    pub policy: Policy,
    /// The text of its file, as it was accepted.
    pub text: Arc<str>,
    /// The policy on the disk, if it allows more and waits for a person. A call is allowed only if both allow it.
    pub waits: Option<Policy>,
}

impl PolicyInForce {
    /// All policies that must allow a call.
    pub fn all(&self) -> impl Iterator<Item = &Policy> {
        std::iter::once(&self.policy).chain(&self.waits)
    }

    /// The changes that wait for `reload`, in a few words each.
    pub fn waiting(&self) -> Vec<String> {
        let waits = self.waits.as_ref();
        waits.map_or_else(Vec::new, |waits| Policy::gains(&self.policy, waits))
    }
}

/// A policy that the program around the supervisor brings with it.
#[derive(Clone)]
pub struct OwnPolicy(Arc<dyn PermissionPolicy>);

impl OwnPolicy {
    pub fn new(policy: impl PermissionPolicy + 'static) -> OwnPolicy {
        OwnPolicy(Arc::new(policy))
    }

    /// The verdict of this policy; a policy that panics leaves the call to a person.
    fn decide(&self, ask: &Ask) -> Verdict {
        let decided = catch_unwind(AssertUnwindSafe(|| self.0.decide(ask)));
        decided.unwrap_or_else(|_| Verdict {
            decision: Decision::Ask,
            rule: None,
            why: "the program's own policy panicked".to_owned(),
        })
    }

    /// Why `always` adds no rule if there is such a policy: an allow rule in a file does not change its verdict.
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
    roles: BTreeMap<String, Role>,
    /// A policy of the program around the daemon, in addition to those of the roles.
    own: Option<OwnPolicy>,
    home: Option<PathBuf>,
    env: Env,
}

impl Rules {
    /// The policies of a config, with missiond's own files protected.
    pub fn new(config: &Config, context: &SlotContext) -> Rules {
        Rules::of(&config.policies, config, context)
    }

    /// Like [`Rules::new`], for policies that were not read with the config.
    pub(super) fn of(
        policies: &BTreeMap<String, RolePolicy>,
        config: &Config,
        context: &SlotContext,
    ) -> Rules {
        let protected = protected(config, context);
        let role = |read: &RolePolicy| Role {
            text: read.text.clone(),
            policy: Arc::new(Policy::clone(&read.policy).protecting(protected.clone())),
            waits: None,
        };
        let roles = policies.iter();
        Rules {
            roles: roles
                .map(|(name, read)| (name.clone(), role(read)))
                .collect(),
            own: None,
            home: std::env::home_dir(),
            env: context.env.clone(),
        }
    }

    /// The same rules, with this policy of the program or without one.
    pub fn beside(mut self, own: Option<OwnPolicy>) -> Rules {
        self.judge_beside(own);
        self
    }

    pub(super) fn judge_beside(&mut self, own: Option<OwnPolicy>) {
        self.own = own;
    }

    /// The policy of the program around the daemon.
    pub(super) fn own_policy(&self) -> Option<OwnPolicy> {
        self.own.clone()
    }

    pub(super) fn roles(&self) -> impl Iterator<Item = (&String, &Role)> {
        self.roles.iter()
    }

    pub(super) fn role(&self, name: &str) -> Option<&Role> {
        self.roles.get(name)
    }

    pub(super) fn put(&mut self, name: &str, role: Role) {
        self.roles.insert(name.to_owned(), role);
    }

    /// These rules, and those of roles that only earlier settings name: a program may run in such a role until it is
    /// restarted.
    pub(super) fn and_those_of(mut self, earlier: &Rules) -> Rules {
        for (name, role) in &earlier.roles {
            let known = self.roles.entry(name.clone());
            known.or_insert_with(|| role.clone());
        }
        self
    }

    /// The rules of a program that runs in this role, even if its slot has another role now.
    pub(super) fn of_role(
        &self,
        slot: &SlotConfig,
        role: &str,
        config: &Path,
    ) -> Arc<dyn SlotRules> {
        match self.roles.contains_key(role) {
            true => self.of_slot(&SlotConfig {
                role: role.to_owned(),
                ..slot.clone()
            }),
            false => Arc::new(AskEverything::of_role(config, role)),
        }
    }

    /// The policy of a slot whose program runs in this role; `None` if the role is unknown.
    pub fn of_running(&self, slot: &SlotConfig, role: &str) -> Option<PolicyInForce> {
        let is_known = slot.role == role || self.roles.contains_key(role);
        is_known.then(|| {
            self.in_force(&SlotConfig {
                role: role.to_owned(),
                ..slot.clone()
            })
        })
    }

    /// The policy of one slot. A role without a policy belongs to a plain program, which has no asks.
    pub fn in_force(&self, slot: &SlotConfig) -> PolicyInForce {
        let Some(known) = self.roles.get(&slot.role) else {
            return PolicyInForce {
                policy: Policy::asking(&slot.cwd, &slot.cwd),
                text: Arc::default(),
                waits: None,
            };
        };
        let waits = known.waits.as_ref();
        PolicyInForce {
            policy: known.policy.for_slot(&slot.name),
            text: known.text.clone(),
            waits: waits.map(|waits| waits.for_slot(&slot.name)),
        }
    }

    pub fn of_slot(&self, slot: &SlotConfig) -> Arc<dyn SlotRules> {
        let paths = RealPaths::new(self.home.clone());
        let PolicyInForce { policy, waits, .. } = self.in_force(slot);
        let policies = std::iter::once(policy).chain(waits);
        let rules = RealRules::new(policies, self.own.clone(), paths);
        Arc::new(rules.beside_daemons_in(self.env.clone()))
    }
}

/// The policies in force, for requests about a slot.
#[derive(Debug, Default)]
pub struct PoliciesInForce {
    rules: Option<Rules>,
    slots: Vec<SlotConfig>,
}

impl PoliciesInForce {
    pub(super) fn new(rules: Rules, slots: Vec<SlotConfig>) -> PoliciesInForce {
        PoliciesInForce {
            rules: Some(rules),
            slots,
        }
    }

    /// The policy in force for a slot whose program runs in this role, even if the config names another role now.
    pub fn of(&self, slot: &str, role: &str) -> Option<PolicyInForce> {
        let slot = self.slot(slot)?;
        self.rules.as_ref()?.of_running(slot, role)
    }

    /// The role of a slot in the config.
    pub fn configured_role(&self, slot: &str) -> Option<&str> {
        self.slot(slot).map(|slot| slot.role.as_str())
    }

    fn slot(&self, name: &str) -> Option<&SlotConfig> {
        self.slots.iter().find(|slot| slot.name == name)
    }

    /// The roles whose policy on the disk waits for `reload`.
    pub(super) fn roles_that_wait(&self) -> Vec<String> {
        let roles = self.rules.iter().flat_map(|rules| &rules.roles);
        let waiting = roles.filter(|(_, role)| role.waits.is_some());
        waiting.map(|(name, _)| name.clone()).collect()
    }
}

/// missiond's own files: no rule allows a slot to write them. The state of all daemons is in one directory.
fn protected(config: &Config, context: &SlotContext) -> Vec<PathBuf> {
    let named = config.daemon.own_files(&config.file).into_iter();
    named
        .chain([context.state.clone(), context.program.clone()])
        .chain(context.env.state_dir().ok())
        .collect()
}

#[derive(Debug)]
struct RealRules {
    /// The policy in force, and the one that waits: the stricter verdict counts. They have no defaults if there is a
    /// policy of the program around the daemon.
    policies: Vec<Arc<Policy>>,
    own: Option<OwnPolicy>,
    paths: RealPaths,
    others: Option<Others>,
}

/// The files of all daemons of this user. Another daemon may start at any time, so they are checked before each
/// verdict.
#[derive(Debug)]
struct Others {
    env: Env,
    /// The configs at the last check, and the policies that protect the files they name.
    found: Mutex<Option<(Configs, Vec<Arc<Policy>>)>>,
}

impl Others {
    fn protected_by(&self, policies: &[Arc<Policy>]) -> Vec<Arc<Policy>> {
        let configs = holder::configs(&self.env);
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        match &*found {
            Some((known, policies)) if *known == configs => policies.clone(),
            _ => {
                let files = holder::files_of(&configs);
                let protect = |policy: &Arc<Policy>| {
                    let policy = Policy::clone(policy);
                    Arc::new(policy.protecting(files.iter().cloned()))
                };
                let policies: Vec<Arc<Policy>> = policies.iter().map(protect).collect();
                *found = Some((configs, policies.clone()));
                policies
            }
        }
    }
}

impl RealRules {
    fn new(
        policies: impl IntoIterator<Item = Policy>,
        own: Option<OwnPolicy>,
        paths: RealPaths,
    ) -> RealRules {
        let policies = policies.into_iter().map(|policy| match own {
            Some(_) => policy.without_default(),
            None => policy,
        });
        RealRules {
            policies: policies.map(Arc::new).collect(),
            own,
            paths,
            others: None,
        }
    }

    /// The same rules, which also protect the files of each daemon with a lock in this environment.
    fn beside_daemons_in(self, env: Env) -> RealRules {
        let found = Mutex::default();
        RealRules {
            others: Some(Others { env, found }),
            ..self
        }
    }

    fn protected(&self) -> Vec<Arc<Policy>> {
        match &self.others {
            Some(others) => others.protected_by(&self.policies),
            None => self.policies.clone(),
        }
    }

    /// The verdict of the files: the stricter one counts; if they are equal, the one in force.
    fn by_file(&self, ask: &Ask) -> Verdict {
        let verdicts = self.protected().into_iter();
        let verdicts = verdicts.map(|policy| policy::decide(&policy, ask, &self.paths));
        let stricter = |one: Verdict, other: Verdict| match other.decision > one.decision {
            true => other,
            false => one,
        };
        let nothing = || Verdict::without_rule(Decision::Ask, "there is no policy");
        verdicts.reduce(stricter).unwrap_or_else(nothing)
    }
}

impl PermissionPolicy for RealRules {
    fn decide(&self, ask: &Ask) -> Verdict {
        let by_file = self.by_file(ask);
        let Some(own) = &self.own else {
            return by_file;
        };
        // The default of the role's file is not used, but its rules count, and what no file can allow is not allowed.
        let says = own.decide(ask);
        match by_file.decision {
            Decision::Ask | Decision::Deny if by_file.decision > says.decision => by_file,
            _ => says,
        }
    }
}

impl SlotRules for RealRules {
    fn only_reads_the_project(&self, ask: &Ask) -> bool {
        policy::only_reads_the_project(ask, &self.paths)
    }

    fn rule_for_always(&self, ask: &Ask) -> Result<String, String> {
        match self.own {
            Some(_) => Err(OwnPolicy::no_rule_for_always()),
            None => match &self.protected()[..] {
                [policy] => policy::rule_for_always(policy, ask, &self.paths),
                _ => Err("the policy on the disk waits; missiond reload takes it".to_owned()),
            },
        }
    }

    fn known(&self) -> KnownRules {
        let dialogs = self.policies.iter().map(|policy| policy.dialogs);
        let mut reasons = self.policies.iter().map(|policy| &policy.deny_reason);
        KnownRules {
            dialogs: dialogs.reduce(Dialogs::stricter).unwrap_or_default(),
            deny_reason: reasons.find_map(Option::clone),
        }
    }

    fn is_said(&self, ask: &Ask, shared: &[String]) -> bool {
        // A verdict made by code can't be expressed as a rule in Claude Code's settings.
        let is_said = |policy: &Arc<Policy>| policy::is_said(policy, ask, &self.paths, shared);
        self.own.is_some() || self.protected().iter().all(is_said)
    }

    fn for_settings(&self) -> SettingsRules {
        let each = self
            .policies
            .iter()
            .map(|policy| policy.rules_for_settings());
        let mut rules = each.reduce(SettingsRules::both).unwrap_or_default();
        if self.own.is_some() {
            rules.allow.clear();
        }
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::claude::reading::DialogKind;
    use serde_json::{Value, json};

    #[test]
    fn only_what_reads_inside_the_directory_is_reading_the_project() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().join("project");
        std::fs::create_dir_all(cwd.join("src")).unwrap();
        std::os::unix::fs::symlink("/etc", cwd.join("out")).unwrap();
        let paths = RealPaths::new(None);
        let judge = RealRules::new([Policy::asking(&cwd, &cwd)], None, paths);
        let reads = |tool: &str, input: Value| {
            let ask = Ask::whole(tool, input, cwd.clone());
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

    /// Until a person reloads, a call is allowed only if both policies allow it.
    #[test]
    fn beside_a_policy_that_waits_the_stricter_verdict_counts() {
        use Decision::{Allow, Ask as Asks, Deny, Silent};
        let cwd = Path::new("/proj");
        let policy = |text: &str| Policy::parse(text, Path::new("p.toml"), cwd).unwrap();
        let old = policy(
            "allow = [\"Bash(make *)\", \"Bash(git log *)\"]\nask = [\"Bash(git push *)\"]\n[dialogs]\nplan = \"allow\"\n",
        );
        let new = policy(
            "allow = [\"Bash(make *)\", \"Bash(git log -1)\", \"Bash(cargo *)\"]\ndeny = [\"Bash(make install)\", \"Bash(git push *)\"]\n[dialogs]\nquestion = \"deny\"\n",
        );
        let rules = RealRules::new([old, new], None, RealPaths::new(None));
        let decides = |command: &str| {
            let ask = Ask::bash(command, cwd);
            rules.decide(&ask).decision
        };
        for (command, decision) in [
            ("make all", Allow),
            ("make install", Deny),
            ("git log -1", Allow),
            ("git log -2", Silent),
            ("git push origin", Deny),
            ("cargo build", Asks),
        ] {
            assert_eq!(decides(command), decision, "{command}");
        }
        let known = rules.known().dialogs;
        let [plan, question] = [DialogKind::Plan, DialogKind::Question];
        assert_eq!(known.decision(plan), Asks);
        assert_eq!(known.decision(question), Deny);
        let given = rules.for_settings();
        assert_eq!(given.deny, ["Bash(make install)", "Bash(git push *)"]);
        assert_eq!(given.allow, ["Bash(make *)"], "only what both allow");
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
    fn the_files_of_every_daemon_are_protected_also_of_one_that_starts_later() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        let state = at("state/missiond");
        for folder in ["project", "state/missiond", "elsewhere/rules"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        let env = Env {
            state_home: Some(at("state")),
            ..Env::default()
        };
        let policy = Policy::parse("allow = [\"Write\", \"Edit(**)\"]", &at("p"), &at(""));
        let judge = RealRules::new(policy.ok(), None, RealPaths::new(None));
        let judge = judge.beside_daemons_in(env);
        let decides = |path: &str| {
            let ask = Ask::whole(
                "Write",
                json!({"file_path": at(path), "content": ""}),
                at("project"),
            );
            judge.decide(&ask).decision
        };
        let all = |expected: Decision, files: &[&str]| {
            for file in files {
                assert_eq!(decides(file), expected, "{file}");
            }
        };
        let config = "elsewhere/slots.toml";
        let named = ["elsewhere/rules/coder.toml", "elsewhere/notes/audit.jsonl"];
        let moved = "elsewhere/others/coder.toml";
        all(Decision::Allow, &[config, named[0], named[1], moved]);

        let text = |rules: &str| format!("[daemon]\npolicies = \"{rules}\"\nlogs = \"notes\"\n");
        std::fs::write(at(config), text("rules")).unwrap();
        let holder = crate::daemon::Holder {
            pid: 7,
            socket: at("s.sock"),
            config: at(config),
        };
        let lock = serde_json::to_string(&holder).unwrap();
        std::fs::write(state.join("other.lock"), lock).unwrap();
        all(Decision::Ask, &[config, named[0], named[1]]);
        all(Decision::Allow, &[moved]);

        // Its config names other paths now.
        std::fs::write(at(config), text("others")).unwrap();
        let later = std::time::SystemTime::now() + std::time::Duration::from_secs(5);
        let file = std::fs::File::options().append(true).open(at(config));
        file.unwrap().set_modified(later).unwrap();
        all(Decision::Ask, &[config, moved]);

        // A config that can't be read is protected itself.
        std::fs::write(at(config), "[daemon").unwrap();
        all(Decision::Ask, &[config]);
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
            RealRules::new([policy], own, RealPaths::new(None))
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
            // No rule matches: the program decides.
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
            // A rule on one part counts, with any default for the others.
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
