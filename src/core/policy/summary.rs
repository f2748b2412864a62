//! A policy for display: each rule with its source.

use super::{Decision, Dialogs, Fallback, Level, Policy};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Summary {
    pub file: PathBuf,
    pub default: Fallback,
    pub deny_reason: Option<String>,
    /// The strictest first; equally strict ones in the order of the file.
    pub rules: Vec<RuleInForce>,
    /// What happens with dialogs that are not tool calls.
    pub dialogs: BTreeMap<String, Decision>,
    /// The requests that programs inside the slot may make to the daemon, and on which slots.
    pub mcp: BTreeSet<String>,
    pub mcp_slots: Option<BTreeSet<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RuleInForce {
    pub decision: Decision,
    pub rule: String,
    pub file: PathBuf,
    pub line: usize,
    /// `default`, `role`, or the name of the slot.
    pub level: String,
}

impl Policy {
    /// The rules in force, for display.
    pub fn summary(&self) -> Summary {
        let mut rules: Vec<RuleInForce> = self
            .rules()
            .map(|rule| RuleInForce {
                decision: rule.decision,
                rule: rule.at.text.clone(),
                file: rule.at.file.clone(),
                line: rule.at.line,
                level: match &rule.level {
                    Level::Default => "default".to_owned(),
                    Level::Role => "role".to_owned(),
                    Level::Slot(name) => format!("slot {name}"),
                },
            })
            .collect();
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.decision));
        Summary {
            file: self.file.clone(),
            default: self.default,
            deny_reason: self.deny_reason.clone(),
            rules,
            dialogs: words(&self.dialogs),
            mcp: self.grants.allow.clone(),
            mcp_slots: self.grants.slots.clone(),
        }
    }
}

fn words(dialogs: &Dialogs) -> BTreeMap<String, Decision> {
    let Dialogs {
        trust,
        api_key,
        plan,
        question,
    } = *dialogs;
    let pairs = [
        ("trust", trust),
        ("api_key", api_key),
        ("plan", plan),
        ("question", question),
    ];
    pairs
        .map(|(kind, decision)| (kind.to_owned(), decision))
        .into()
}
