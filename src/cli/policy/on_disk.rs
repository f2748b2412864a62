//! The policies of a config, as its daemon reads them.

use super::{load, report};
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::target;
use crate::config::{self, Config};
use crate::control::dispatch::{no_such_name, no_such_role, several_slots};
use crate::core::policy::{self, Policy};
use crate::core::settings::SlotConfig;
use crate::daemon::{configs, files_of};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub fn config(context: &Context) -> Result<Config, Failure> {
    Ok(config::load(&target::config_to_run(context)?)?)
}

/// The slot of this name, or the only one of `@role`.
pub fn slot<'a>(config: &'a Config, name: &str) -> Result<&'a SlotConfig, Failure> {
    let role = name.strip_prefix('@');
    let is_meant = |slot: &&SlotConfig| match role {
        Some(role) => slot.role == role,
        None => slot.name == name,
    };
    let found: Vec<&SlotConfig> = config.slots.iter().filter(is_meant).collect();
    let names = |slots: &[&'a SlotConfig]| -> Vec<&'a str> {
        slots.iter().map(|slot| slot.name.as_str()).collect()
    };
    match (found.as_slice(), role) {
        ([slot], _) => Ok(slot),
        ([], Some(role)) => Err(no_such_role(role, &roles(config)).into()),
        ([], None) => {
            let all: Vec<&SlotConfig> = config.slots.iter().collect();
            Err(no_such_name(name, &names(&all), &[]).into())
        }
        (several, _) => Err(several_slots(name, &names(several)).into()),
    }
}

/// Each role of the config once.
pub fn roles(config: &Config) -> Vec<&str> {
    let roles = config.slots.iter().map(|slot| slot.role.as_str());
    roles.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The policy of a role; none for plain programs, which have no policy.
pub fn policy(config: &Config, role: &str) -> Option<Policy> {
    let read = config.policies.get(role)?;
    Some(protecting(Policy::clone(&read.policy), config))
}

/// The policy of a role as it would be with one more rule; `None` where it could not have it.
pub fn with_rule(config: &Config, role: &str, rule: &str) -> Option<Policy> {
    let read = config.policies.get(role)?;
    let text = policy::add_allow_rule(&read.text, rule).ok()?;
    Policy::parse(&text, &read.policy.file, project(config))
        .ok()
        .map(|policy| protecting(policy, config))
}

fn project(config: &Config) -> &Path {
    config.file.parent().unwrap_or(&config.file)
}

fn protecting(policy: Policy, config: &Config) -> Policy {
    policy.protecting(config.daemon.own_files(&config.file))
}

/// What a call is judged by beside the policy itself, where a config is named; nothing where none is.
#[derive(Default)]
pub struct Configured {
    /// What the daemon of the config protects.
    pub protected: Vec<PathBuf>,
    /// What a leading `/` in a path rule stands for.
    pub project: Option<PathBuf>,
    pub slot: Option<SlotConfig>,
    /// The policy file of the slot's role.
    pub policy: Option<PathBuf>,
}

/// What the config in this file says of a call, and of a slot if one is named.
pub fn configured(
    context: &Context,
    file: &Path,
    name: Option<&str>,
) -> Result<Configured, Failure> {
    let file = context.env.cwd.join(file);
    let daemon = config::load_daemon(&file)?;
    let mut protected = daemon.own_files(&file).to_vec();
    protected.extend(context.env.state_dir().ok());
    protected.extend(files_of(&configs(&context.env)));
    protected.extend(std::env::current_exe().ok());
    let slot = match name {
        Some(name) => {
            let config = config::load(&file)?;
            let worktrees = daemon.worktrees_in(&context.env)?;
            Some(daemon.settled(slot(&config, name)?, &worktrees))
        }
        None => None,
    };
    let policy = slot
        .as_ref()
        .map(|slot: &SlotConfig| daemon.policy_file(&slot.role));
    Ok(Configured {
        protected,
        project: file.parent().map(Path::to_owned),
        slot,
        policy,
    })
}

/// A policy file, judged as one of this config.
pub fn read(context: &Context, config: &Config, file: &Path) -> Result<Policy, Failure> {
    let policy = match load(file, project(config)) {
        Ok(policy) => policy,
        Err(problems) => {
            report(context, file, &problems)?;
            return Err(Failure::usage(format!("{} can't be used", file.display())));
        }
    };
    Ok(protecting(policy, config))
}
