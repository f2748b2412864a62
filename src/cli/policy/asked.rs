//! What was asked so far, from the audit.

use crate::audit::{self, AskedCall, AskedCalls};
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::follow::unreadable;
use crate::config::Config;
use crate::core::policy::{EFFECT_DAYS, Policy, RuleEffect};
use crate::os::files;
use crate::os::real_paths::RealPaths;
use chrono::{DateTime, TimeDelta, Utc};
use std::io::BufReader;
use std::path::PathBuf;

/// The distinct calls that `by` (`policy` or `person`) decided on, in the order in which they first came; of all times, or
/// `since` one.
pub async fn calls(
    context: &Context,
    from: Option<PathBuf>,
    by: &str,
    since: Option<DateTime<Utc>>,
) -> Result<Vec<AskedCall>, Failure> {
    let file = crate::cli::audit::file(context, from).await?;
    let broken = |error| unreadable(&file, &error);
    let files = files::with_rotated(&file).map_err(broken)?;
    let inputs = files.into_iter().map(BufReader::new);
    let mut asked = AskedCalls::default();
    for entry in inputs.flat_map(audit::entries) {
        let entry = entry.map_err(broken)?;
        let is_new = since.is_none_or(|since| entry.time >= since);
        if entry.record.actor.by == by && is_new {
            asked.add(entry);
        }
    }
    Ok(asked.calls())
}

/// The calls that the policies decided on in the last days.
pub async fn recent_calls(
    context: &Context,
    from: Option<PathBuf>,
) -> Result<Vec<AskedCall>, Failure> {
    let since = Utc::now() - TimeDelta::days(EFFECT_DAYS.into());
    calls(context, from, "policy", Some(since)).await
}

/// What some allow rules in the policy of a role would have changed among these calls; `None` if one of them is no rule.
pub fn effect(
    config: &Config,
    role: &str,
    policy: &Policy,
    rules: &[String],
    calls: &[AskedCall],
) -> Option<RuleEffect> {
    let is_of_role = |call: &&AskedCall| {
        let mut slots = config.slots.iter();
        slots.any(|slot| slot.role == role && slot.name == call.slot)
    };
    let calls = calls.iter().filter(is_of_role);
    let calls = calls.map(|call| (call.slot.as_str(), &call.ask, call.count));
    RuleEffect::of(policy, rules, calls, &RealPaths::new(std::env::home_dir()))
}
