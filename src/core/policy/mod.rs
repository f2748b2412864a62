//! `decide(&Policy, &Ask, &dyn Paths) -> Verdict`: the strictest of all parts wins. Where a path leads
//! is asked of a [`Paths`].
//!
//! A tool call is allowed only where that can be proven: a rule allows each part of it, nothing in it is
//! left to guess, and nothing denies it. Where no rule speaks, the policy's [`Fallback`] decides. What remains
//! silent is left to Claude Code's own rules, and [`gate::answer`] says where even that is asked about.

mod command;
mod edit;
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
pub use gate::{Asking, Circumstances};
pub use grants::{GRANTABLE, Grants};
pub use judge::{Explanation, PartVerdict, decide, explain, only_reads_the_project};
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
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A tool call that somebody has to decide on.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    pub tool: String,
    pub input: Value,
    /// The slot's working directory; bare path patterns are relative to it.
    pub cwd: PathBuf,
    /// Where the call is made, if not there: the shell has changed its directory in an earlier call.
    pub at: Option<PathBuf>,
    /// False where only a part of the input is known (a cut-off command on the screen): never allowed.
    pub complete: bool,
}

impl Ask {
    /// The directory that relative paths in the input are meant in.
    pub fn place(&self) -> &Path {
        self.at.as_deref().unwrap_or(&self.cwd)
    }
}

/// What is decided on a call, the strictest last. A command gets the strictest decision of its parts.
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
    /// The policy says nothing: Claude Code's own rules and the user's settings decide. No rule says this; it
    /// comes of [`Fallback::Claude`], and of calls that only read inside the slot's directory.
    #[serde(rename = "none")]
    Silent,
    Ask,
    Deny,
}

impl Decision {
    /// The word that files and output use.
    pub fn word(self) -> &'static str {
        match self {
            Decision::Allow => "allow",
            Decision::Silent => "none",
            Decision::Ask => "ask",
            Decision::Deny => "deny",
        }
    }

    /// The decision that a word means.
    pub fn from_word(word: &str) -> Option<Decision> {
        [
            Decision::Allow,
            Decision::Silent,
            Decision::Ask,
            Decision::Deny,
        ]
        .into_iter()
        .find(|decision| decision.word() == word)
    }
}

/// `default` in a policy: what happens with calls about which no rule speaks, the strictest last. It never allows.
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
    /// Claude Code's own rules and the user's settings decide, in manual mode; else a person is asked.
    Claude,
    /// A person is asked, but about calls that only read inside the slot's directory.
    Ask,
    Deny,
}

impl Fallback {
    /// The word that files and output use.
    pub fn word(self) -> &'static str {
        match self {
            Fallback::Claude => "claude",
            Fallback::Ask => "ask",
            Fallback::Deny => "deny",
        }
    }
}

/// What was decided, by which rule, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    #[serde(rename = "verdict")]
    pub decision: Decision,
    /// The rule that decided, or that would have allowed it if nothing stood against it. None where no rule
    /// speaks about the call at all.
    pub rule: Option<RuleRef>,
    /// One sentence.
    pub why: String,
}

impl Verdict {
    /// A verdict that no rule gives.
    pub fn without_rule(decision: Decision, why: impl Into<String>) -> Verdict {
        Verdict {
            decision,
            rule: None,
            why: why.into(),
        }
    }
}

/// Where a rule stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RuleRef {
    /// The rule as written, such as `Bash(cargo test *)`.
    pub text: String,
    pub file: PathBuf,
    pub line: usize,
}

/// Whatever can decide on a tool call. A program that embeds missiond can bring its own; the slots of the daemon
/// are judged by one as well (see [`crate::slot::SlotRules`]).
///
/// ```
/// use missiond::core::policy::{Ask, Decision, Judge, LexicalPaths, PermissionPolicy, Policy, Verdict};
/// use std::path::Path;
///
/// /// Leaves everything to the rules of a file, and to nobody what happens at night.
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
/// let ask = Ask {
///     tool: "Bash".to_owned(),
///     input: serde_json::json!({"command": "git diff | git apply --stat"}),
///     cwd: "/proj".into(),
///     at: None,
///     complete: true,
/// };
/// assert_eq!(rules.decide(&ask).decision, Decision::Allow);
/// let office = OfficeHours { rules, night: true };
/// assert_eq!(office.decide(&ask).decision, Decision::Ask);
/// ```
pub trait PermissionPolicy: Send + Sync {
    fn decide(&self, ask: &Ask) -> Verdict;
}

/// A [`Policy`] together with the paths that it judges on.
pub struct Judge<P: Paths> {
    pub policy: Policy,
    pub paths: P,
}

impl<P: Paths + Send + Sync> PermissionPolicy for Judge<P> {
    fn decide(&self, ask: &Ask) -> Verdict {
        decide(&self.policy, ask, &self.paths)
    }
}

/// A role's policy: one checked file, its rules compiled.
#[derive(Debug, Clone)]
pub struct Policy {
    pub file: PathBuf,
    /// What a leading `/` in a path rule is relative to.
    pub project: PathBuf,
    /// What happens with a call about which no rule speaks.
    pub default: Fallback,
    /// Told to Claude with a denial.
    pub deny_reason: Option<String>,
    /// What the programs inside a slot may ask of the daemon.
    pub grants: Grants,
    pub dialogs: Dialogs,
    rules: Vec<Rule>,
    index: Index,
    protected: Protected,
    /// The slot whose own overrides apply.
    slot: Option<String>,
    /// The file's own examples, which its rules must fulfil.
    examples: Arc<[Example]>,
}

/// What happens with dialogs that are no tool call.
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
    /// What the policy says about a dialog that is not about a tool call. Permission dialogs are decided by
    /// [`decide`], and a person decides on what is not known: both are `Ask` here.
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
    /// Reads a policy file's text, compiles its rules and runs its examples. `project` is what a leading `/`
    /// in a path rule stands for. Every fault that is found is returned, not only the first.
    pub fn parse(text: &str, file: &Path, project: &Path) -> Result<Policy, Vec<Problem>> {
        file::parse(text, file, project)
    }

    /// A policy with no rules: it asks about everything but reading inside the slot's directory.
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

    /// The same policy with paths (files, or directories with all that is in them) that no rule lets a slot
    /// write: missiond's own config, policies, logs, state and program. Claude Code's settings, git hooks and
    /// shell start-up files are protected always.
    pub fn protecting(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Policy {
        self.protected.add(paths);
        self
    }

    /// The same policy where its rules alone speak: about all else it is silent.
    pub fn without_default(mut self) -> Policy {
        self.default = Fallback::Claude;
        self
    }

    /// The same policy as it holds for one slot: that slot's own overrides count, those of others don't.
    pub fn for_slot(&self, slot: &str) -> Policy {
        let mut policy = self.clone();
        policy.slot = Some(slot.to_owned());
        policy
    }

    /// The rules in force, for showing them.
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

    /// The deny rules in Claude Code's own syntax, for the settings that a slot is started with.
    pub fn deny_rules_for_settings(&self) -> Vec<String> {
        self.rules()
            .filter(|rule| rule.decision == Decision::Deny)
            .map(|rule| rule.for_settings(&self.project))
            .collect()
    }

    /// The same policy with other rules.
    fn with_rules(mut self, rules: Vec<Rule>) -> Policy {
        self.index = Index::new(&rules);
        self.rules = rules;
        self
    }

    /// The rules in force that may speak about one of these commands.
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

    /// Whether `new` might allow something that `old` did not. Anything that is not plainly narrower counts
    /// as wider.
    pub fn widens(old: &Policy, new: &Policy) -> bool {
        !Policy::gains(old, new).is_empty()
    }
}

impl Dialogs {
    /// The stricter of both for each kind.
    pub fn stricter(self, other: Dialogs) -> Dialogs {
        Dialogs {
            trust: self.trust.max(other.trust),
            api_key: self.api_key.max(other.api_key),
            plan: self.plan.max(other.plan),
            question: self.question.max(other.question),
        }
    }
}
