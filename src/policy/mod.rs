//! `decide(&Policy, &Ask) -> Verdict`: the strictest rule wins, silence means ask. Pure.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// A tool call that somebody has to decide on.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    pub tool: String,
    pub input: Value,
    /// The slot's working directory; bare path patterns are relative to it.
    pub cwd: PathBuf,
    /// False where only a part of the input is known (a cut-off command on the screen): never allowed.
    pub complete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Allow,
    Ask,
    Deny,
}

/// What was decided, by which rule, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    #[serde(rename = "verdict")]
    pub decision: Decision,
    pub rule: Option<RuleRef>,
    pub why: String,
}

/// Where a rule stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleRef {
    /// The rule as written, such as `Bash(cargo test *)`.
    pub text: String,
    pub file: PathBuf,
    pub line: usize,
}
