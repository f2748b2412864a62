//! Policy files, and what is done with them.

use missiond::core::claude::reading::DialogKind;
use missiond::core::policy::{
    Ask, Decision, Judge, LexicalPaths, PermissionPolicy, Policy, add_allow_rule,
    add_rule_for_always, decide, explain, general_rule_for, narrow_rule_for, rule_for_always,
    rules_that_allow,
};
use missiond::core::text::diagnostic::Problem;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[path = "policy/beside.rs"]
mod beside;
#[path = "policy/cases.rs"]
mod cases;
#[path = "policy/cli.rs"]
mod cli;
#[path = "policy/commands.rs"]
mod commands;
#[path = "policy/corpus.rs"]
mod corpus;
#[path = "policy/files.rs"]
mod files;
#[path = "policy/lists.rs"]
mod lists;
#[path = "policy/on_disk.rs"]
mod on_disk;
#[path = "policy/order.rs"]
mod order;
#[path = "policy/rules.rs"]
mod rules;

fn parse(text: &str) -> Result<Policy, Vec<Problem>> {
    Policy::parse(text, Path::new("policies/coder.toml"), Path::new("/proj"))
}

fn policy(text: &str) -> Policy {
    parse(text).unwrap_or_else(|problems| panic!("{text}\n{problems:?}"))
}

fn ask(tool: &str, input: Value) -> Ask {
    Ask::whole(tool, input, "/proj/sub")
}

fn bash(command: &str) -> Ask {
    ask("Bash", json!({ "command": command }))
}

fn decision(policy: &Policy, ask: &Ask) -> Decision {
    decide(policy, ask, &LexicalPaths).decision
}
