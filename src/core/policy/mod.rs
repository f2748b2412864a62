//! `decide(&Policy, &Ask, &dyn Paths) -> Verdict`: the strictest verdict on any part wins. A [`Paths`] says where a path leads.
//!
//! A tool call is allowed only if that can be proven: a rule allows each part of it, no part has to be guessed, and no rule
//! denies it. If no rule matches, the policy's [`Fallback`] decides. A silent verdict leaves the call to Claude Code's own rules;
//! [`gate::answer`] turns some silent verdicts into *ask*.

mod command;
mod edit;
mod effect;
mod file;
mod gains;
pub mod gate;
pub(crate) mod git_hooks;
mod globs;
mod grants;
mod ground;
mod harm;
mod hosts;
mod index;
mod judge;
mod paths;
mod pattern;
mod protected;
mod quick;
mod rule;
mod schema;
mod secrets;
mod shell;
mod stacks;
mod summary;
mod tools;

pub use edit::{
    EditError, add_allow_rule, add_rule_for_always, general_rule_for, narrow_rule_for,
    rule_for_always, rules_that_allow,
};
pub use effect::{EFFECT_DAYS, RuleEffect};
pub use gate::{Asking, Circumstances};
pub use grants::{GRANTABLE, Grants};
pub use judge::{Explanation, PartVerdict, decide, explain, is_said, only_reads_the_project};
pub use paths::{LexicalPaths, Paths};
pub use rule::{Level, Rule};
pub use schema::schema;
pub use stacks::{Stack, policy_for_stacks, stacks_of};
pub use summary::{RuleInForce, Summary};
pub use tools::is_dialog;

use crate::core::claude::reading::DialogKind;
use crate::core::text::diagnostic::Problem;
use file::Example;
use index::Index;
use protected::Protected;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A tool call that needs a decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    pub tool: String,
    pub input: Value,
    /// The slot's working directory; bare path patterns are relative to it.
    pub cwd: PathBuf,
    /// The directory of the call, if the shell has changed its directory in an earlier call.
    pub at: Option<PathBuf>,
    /// False if only a part of the input is known (a cut-off command on the screen): such a call is never allowed.
    pub complete: bool,
}

impl Ask {
    /// A call in the slot's working directory whose input is completely known.
    pub fn whole(tool: impl Into<String>, input: Value, cwd: impl Into<PathBuf>) -> Ask {
        Ask {
            tool: tool.into(),
            input,
            cwd: cwd.into(),
            at: None,
            complete: true,
        }
    }

    /// A shell command.
    pub fn bash(command: &str, cwd: impl Into<PathBuf>) -> Ask {
        Ask::whole("Bash", json!({ "command": command }), cwd)
    }

    /// The directory that relative paths in the input are relative to.
    pub fn place(&self) -> &Path {
        self.at.as_deref().unwrap_or(&self.cwd)
    }
}

/// The decision on a call, the strictest last. A command gets the strictest decision on its parts.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allow,
    /// The policy does not decide: Claude Code's own rules and the user's settings do. No rule has this decision; it comes from
    /// [`Fallback::Claude`], and from calls that only read inside the slot's directory.
    #[serde(rename = "none")]
    Silent,
    Ask,
    Deny,
}

impl Decision {
    pub const ALL: [Decision; 4] = [
        Decision::Allow,
        Decision::Silent,
        Decision::Ask,
        Decision::Deny,
    ];

    /// The name in files and output.
    pub fn word(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Silent => "none",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        }
    }
}

/// `default` in a policy: what happens with a call that no rule matches, the strictest last. It never allows.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Fallback {
    /// Claude Code's own rules and the user's settings decide, in manual mode; in other modes a person is asked.
    Claude,
    /// A person is asked, except about calls that only read inside the slot's directory.
    Ask,
    Deny,
}

impl Fallback {
    /// The name in files and output.
    pub fn word(self) -> &'static str {
        match self {
            Fallback::Claude => "claude",
            Fallback::Ask => "ask",
            Fallback::Deny => "deny",
        }
    }
}

/// Rules in Claude Code's own syntax, for the settings that a slot is started with. Claude Code applies them if the gate stays
/// silent, and if the gate does not answer at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingsRules {
    /// Rules on commands and files. None of them allows more in Claude Code than here.
    pub allow: Vec<String>,
    pub ask: Vec<String>,
    pub deny: Vec<String>,
}

impl SettingsRules {
    /// The rules of two policies that are both in force.
    pub fn both(self, other: SettingsRules) -> SettingsRules {
        let all = |mut one: Vec<String>, mut other: Vec<String>| {
            other.retain(|rule| !one.contains(rule));
            one.append(&mut other);
            one
        };
        let mut allow = self.allow;
        allow.retain(|rule| other.allow.contains(rule));
        SettingsRules {
            allow,
            ask: all(self.ask, other.ask),
            deny: all(self.deny, other.deny),
        }
    }
}

/// Whether a rule is in the list; older versions of Claude Code write `Bash(git:*)` for `Bash(git *)`.
fn has_rule(rules: &[String], rule: &str) -> bool {
    let as_prefix = |rule: &str| {
        rule.strip_suffix(":*)")
            .map(|prefix| format!("{prefix} *)"))
    };
    let rule = as_prefix(rule).unwrap_or_else(|| rule.to_owned());
    let is_it = |other: &String| *other == rule || as_prefix(other).as_ref() == Some(&rule);
    rules.iter().any(is_it)
}

/// A decision, the rule that made it, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    #[serde(rename = "verdict")]
    pub decision: Decision,
    /// The rule that decided, or that would have allowed the call if nothing had overruled it. `None` if no rule matches the
    /// call.
    pub rule: Option<RuleRef>,
    /// The reason, in one sentence.
    pub why: String,
}

impl Verdict {
    /// A verdict that does not come from a rule.
    pub fn without_rule(decision: Decision, why: impl Into<String>) -> Verdict {
        Verdict {
            decision,
            rule: None,
            why: why.into(),
        }
    }
}

/// The text and the position of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RuleRef {
    /// The rule as written, such as `Bash(cargo test *)`.
    pub text: String,
    pub file: PathBuf,
    pub line: usize,
}

/// Decides on tool calls. A program that embeds missiond can provide its own implementation; the daemon's slots use
/// [`crate::slot::SlotRules`].
///
/// ```
/// use missiond::core::policy::{Ask, Decision, Judge, LexicalPaths, PermissionPolicy, Policy, Verdict};
/// use std::path::Path;
///
/// /// Applies the rules of a file, and turns *allow* into *ask* at night.
/// struct OfficeHours<P> {
///     rules: P,
///     night: bool,
/// }
///
/// impl<P: PermissionPolicy> PermissionPolicy for OfficeHours<P> {
///     fn decide(&self, ask: &Ask) -> Verdict {
///         let verdict = self.rules.decide(ask);
///         match self.night && verdict.decision == Decision::Allow {
///             true => Verdict {
///                 decision: Decision::Ask,
///                 why: "nobody is watching at this hour".to_owned(),
///                 ..verdict
///             },
///             false => verdict,
///         }
///     }
/// }
///
/// let file = Path::new("coder.toml");
/// let policy = Policy::parse(r#"allow = ["Bash(git *)"]"#, file, Path::new("/proj")).unwrap();
/// let rules = Judge { policy, paths: LexicalPaths };
/// let ask = Ask::bash("git diff | git apply --stat", "/proj");
/// assert_eq!(rules.decide(&ask).decision, Decision::Allow);
/// let office = OfficeHours { rules, night: true };
/// assert_eq!(office.decide(&ask).decision, Decision::Ask);
/// ```
pub trait PermissionPolicy: Send + Sync {
    fn decide(&self, ask: &Ask) -> Verdict;
}

/// A [`Policy`] with the file system that it judges on.
pub struct Judge<P: Paths> {
    pub policy: Policy,
    pub paths: P,
}

impl<P: Paths + Send + Sync> PermissionPolicy for Judge<P> {
    fn decide(&self, ask: &Ask) -> Verdict {
        decide(&self.policy, ask, &self.paths)
    }
}

/// A role's policy: one checked file with compiled rules.
#[derive(Debug, Clone)]
pub struct Policy {
    pub file: PathBuf,
    /// The directory that a leading `/` in a path rule is relative to.
    pub project: PathBuf,
    /// What happens with a call that no rule matches.
    pub default: Fallback,
    /// The reason that Claude gets with a denial.
    pub deny_reason: Option<String>,
    /// The requests that programs inside a slot may make to the daemon.
    pub grants: Grants,
    pub dialogs: Dialogs,
    rules: Vec<Rule>,
    index: Index,
    protected: Protected,
    /// The slot whose own overrides apply.
    slot: Option<String>,
    /// The file's own examples. Its rules must agree with them.
    examples: Arc<[Example]>,
}

/// What happens with dialogs that are not tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dialogs {
    trust: Decision,
    api_key: Decision,
    plan: Decision,
    question: Decision,
}

impl Default for Dialogs {
    fn default() -> Dialogs {
        Dialogs {
            trust: Decision::Ask,
            api_key: Decision::Ask,
            plan: Decision::Ask,
            question: Decision::Ask,
        }
    }
}

impl Dialogs {
    /// The policy's decision on a dialog that is not a tool call. [`decide`] decides permission dialogs, and a person decides
    /// unknown ones: both are `Ask` here.
    pub fn decision(self, kind: DialogKind) -> Decision {
        match kind {
            DialogKind::Trust => self.trust,
            DialogKind::ApiKey => self.api_key,
            DialogKind::Plan => self.plan,
            DialogKind::Question => self.question,
            DialogKind::Permission | DialogKind::Other => Decision::Ask,
        }
    }
}

impl Policy {
    /// Parses a policy file's text, compiles its rules and runs its examples. A leading `/` in a path rule means `project`. All
    /// errors are returned, not only the first.
    pub fn parse(text: &str, file: &Path, project: &Path) -> Result<Policy, Vec<Problem>> {
        file::parse(text, file, project)
    }

    /// A policy without rules: it asks about everything except reading inside the slot's directory.
    pub fn asking(file: &Path, project: &Path) -> Policy {
        Policy {
            file: file.to_owned(),
            project: project.to_owned(),
            default: Fallback::Ask,
            deny_reason: None,
            grants: Grants::default(),
            dialogs: Dialogs::default(),
            rules: Vec::new(),
            index: Index::default(),
            protected: Protected::default(),
            slot: None,
            examples: Arc::default(),
        }
    }

    /// The same policy with more protected paths (files, or whole directories), which no rule lets a slot write: missiond's own
    /// config, policies, logs, state and program. Claude Code's settings, git hooks and shell start-up files are always
    /// protected.
    pub fn protecting(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Policy {
        self.protected.add(paths);
        self
    }

    /// The same policy without a default: it is silent if no rule matches.
    pub fn without_default(mut self) -> Policy {
        self.default = Fallback::Claude;
        self
    }

    /// The same policy for one slot: only that slot's overrides apply.
    pub fn for_slot(&self, slot: &str) -> Policy {
        let mut policy = self.clone();
        policy.slot = Some(slot.to_owned());
        policy
    }

    /// The rules in force, for display.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(|rule| self.is_in_force(rule))
    }

    /// The rules that can never allow anything, with the reason.
    pub fn rules_without_effect(&self) -> impl Iterator<Item = (&RuleRef, String)> {
        let allows = |rule: &&Rule| rule.decision == Decision::Allow;
        let why = |rule: &Rule| command::never_allows(rule.command()?);
        let rules = self.rules.iter().filter(allows);
        rules.filter_map(move |rule| Some((&rule.at, why(rule)?)))
    }

    /// The rules that Claude Code gets in its own settings.
    pub fn rules_for_settings(&self) -> SettingsRules {
        let of = |decision| -> Vec<String> {
            let rules = self.rules().filter(|rule| rule.decision == decision);
            let rules = rules.filter(|rule| decision > Decision::Allow || rule.is_shared());
            let rules = rules.filter(|rule| decision == Decision::Allow || !self.gives_way(rule));
            rules.map(|rule| rule.for_settings(&self.project)).collect()
        };
        SettingsRules {
            allow: of(Decision::Allow),
            ask: of(Decision::Ask),
            deny: of(Decision::Deny),
        }
    }

    /// Whether a rule on a whole tool does not count because a nearer level has a rule on the same tool.
    fn gives_way(&self, rule: &Rule) -> bool {
        let is_over = |nearer: &Rule| {
            nearer.takes_the_place_of(rule) && nearer.meaning().includes(rule.meaning())
        };
        self.rules().any(is_over)
    }

    /// Whether Claude Code, with these rules in its settings, has every rule that allows something.
    fn shares_all(&self, shared: &[String]) -> bool {
        let allow = self.rules_for_settings().allow;
        allow.iter().all(|rule| has_rule(shared, rule))
    }

    /// The same policy without the rules that Claude Code does not have.
    fn sharing_only(&self, shared: &[String]) -> Policy {
        let is_kept = |rule: &&Rule| {
            rule.decision != Decision::Allow || has_rule(shared, &rule.for_settings(&self.project))
        };
        let rules = self.rules.iter().filter(is_kept).cloned().collect();
        self.clone().with_rules(rules)
    }

    /// The same policy with other rules.
    fn with_rules(mut self, rules: Vec<Rule>) -> Policy {
        self.index = Index::new(&rules);
        self.rules = rules;
        self
    }

    /// The rules in force that may match one of these commands.
    fn rules_for_commands(&self, commands: &[String]) -> impl Iterator<Item = &Rule> {
        let places = self.index.for_commands(commands);
        places
            .into_iter()
            .map(|at| &self.rules[at])
            .filter(|rule| self.is_in_force(rule))
    }

    fn is_in_force(&self, rule: &Rule) -> bool {
        match &rule.level {
            Level::Slot(name) => self.slot.as_deref() == Some(name),
            Level::Role | Level::Default => true,
        }
    }

    /// Whether `new` might allow something that `old` did not. True unless `new` is certainly not more permissive.
    pub fn widens(old: &Policy, new: &Policy) -> bool {
        !Policy::gains(old, new).is_empty()
    }
}

impl Dialogs {
    /// The stricter decision of the two for each kind.
    pub fn stricter(self, other: Dialogs) -> Dialogs {
        Dialogs {
            trust: self.trust.max(other.trust),
            api_key: self.api_key.max(other.api_key),
            plan: self.plan.max(other.plan),
            question: self.question.max(other.question),
        }
    }
}
