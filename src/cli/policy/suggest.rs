use super::asked::{self, recent_calls};
use super::on_disk;
use super::test::times;
use crate::audit::AskedCall;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::sanitise;
use crate::cli::tail::parse_since;
use crate::config::Config;
use crate::core::policy::{
    Decision, RuleEffect, decide, general_rule_for, is_dialog, narrow_rule_for,
};
use crate::core::settings::SlotConfig;
use crate::os::real_paths::RealPaths;
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::path::PathBuf;

/// Suggests rules for what a person has confirmed, as text to paste into a policy.
///
/// Each rule is the narrowest that would have allowed the call. Where several calls of the same kind were confirmed, such as
/// `npm run lint` and `npm run build`, one rule for all of them is suggested, unless the tables of harm know anything about
/// one of them. No rule is suggested that would allow a call to which a person has said no. Nothing is changed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond policy suggest
  missiond policy suggest --since 7d           for what you have confirmed in the last 7 days
  missiond policy suggest --from logs/ --at-least 3")]
pub struct Suggest {
    /// The audit file, or the log directory that it is in [default: that of the daemon]
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Only what was confirmed so many times
    #[arg(long, value_name = "N", default_value_t = 1)]
    at_least: usize,
    /// Only what was confirmed since then: a time (RFC 3339 or 09:37), or how long ago (7d)
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<DateTime<Utc>>,
}

/// A rule that would have spared a person some questions.
#[derive(Debug, Clone, Serialize)]
struct Suggestion {
    role: String,
    file: PathBuf,
    /// `None` where no rule could allow it.
    rule: Option<String>,
    call: String,
    confirmed: usize,
    /// How many different calls it would have allowed.
    calls: usize,
    last: DateTime<Utc>,
    /// What it would have changed lately.
    would_change: Option<RuleEffect>,
    #[serde(skip)]
    general: Option<String>,
}

/// So many different calls of one kind, and a rule for that kind is suggested instead of one for each.
const ENOUGH_CALLS: usize = 3;

/// Suggestions for calls of the same kind as one, if there are enough of them.
fn generalised(found: Vec<Suggestion>) -> Vec<Suggestion> {
    let mut out: Vec<Suggestion> = Vec::new();
    for one in &found {
        let is_same = |other: &&Suggestion| {
            other.role == one.role && other.general.is_some() && other.general == one.general
        };
        let same: Vec<&Suggestion> = found.iter().filter(is_same).collect();
        if same.len() < ENOUGH_CALLS {
            out.push(one.clone());
        } else if !out
            .iter()
            .any(|known| known.role == one.role && known.rule == one.general)
        {
            out.push(Suggestion {
                rule: one.general.clone(),
                confirmed: same.iter().map(|other| other.confirmed).sum(),
                calls: same.len(),
                last: same
                    .iter()
                    .map(|other| other.last)
                    .max()
                    .unwrap_or(one.last),
                ..one.clone()
            });
        }
    }
    out
}

impl Suggest {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let config = on_disk::config(context)?;
        let paths = RealPaths::new(std::env::home_dir());
        let mut found: Vec<Suggestion> = Vec::new();
        let calls = asked::calls(context, self.from.clone(), "person", self.since).await?;
        let declined: Vec<&AskedCall> = calls
            .iter()
            .filter(|call| call.answers.denied > 0)
            .collect();
        for call in &calls {
            let slot = config.slots.iter().find(|slot| slot.name == call.slot);
            // A slot that is no longer there, or is a plain program by now, needs no rule, and a question follows none.
            let is_yes = call.decision == Decision::Allow && call.answers.denied == 0;
            let wanted = is_yes && !is_dialog(&call.ask.tool);
            let Some(slot) = slot.filter(|_| wanted) else {
                continue;
            };
            let Some(policy) = on_disk::policy(&config, &slot.role) else {
                continue;
            };
            let policy = policy.for_slot(&slot.name);
            if decide(&policy, &call.ask, &paths).decision != Decision::Allow {
                add(
                    &mut found,
                    suggestion(call, &declined, &config, slot, &paths),
                );
            }
        }
        let mut found = generalised(found);
        found.retain(|suggestion| suggestion.confirmed >= self.at_least);
        found.sort_by(|a, b| (&a.role, b.confirmed).cmp(&(&b.role, a.confirmed)));
        let recent = recent_calls(context, self.from).await?;
        for one in &mut found {
            one.would_change = effect(one, &config, &recent);
        }
        print(context, &found)
    }
}

fn effect(one: &Suggestion, config: &Config, recent: &[AskedCall]) -> Option<RuleEffect> {
    let policy = on_disk::policy(config, &one.role)?;
    let rule = one.rule.clone()?;
    asked::effect(config, &one.role, &policy, &[rule], recent)
}

fn suggestion(
    call: &AskedCall,
    declined: &[&AskedCall],
    config: &Config,
    slot: &SlotConfig,
    paths: &RealPaths,
) -> Suggestion {
    let is_of_role = |other: &&&AskedCall| {
        let mut slots = config.slots.iter();
        slots.any(|one| one.role == slot.role && one.name == other.slot)
    };
    // A rule for a masked call would never fit, and one that something stricter overrules would change nothing.
    let helps = |rule: &String| {
        on_disk::with_rule(config, &slot.role, rule).is_some_and(|policy| {
            let allows = |call: &AskedCall| {
                let policy = policy.for_slot(&call.slot);
                decide(&policy, &call.ask, paths).decision == Decision::Allow
            };
            allows(call)
                && !declined
                    .iter()
                    .filter(is_of_role)
                    .any(|other| allows(other))
        })
    };
    let rule = narrow_rule_for(&call.ask).filter(|rule| !call.is_masked && helps(rule));
    let general = general_rule_for(&call.ask).filter(|rule| !call.is_masked && helps(rule));
    Suggestion {
        role: slot.role.clone(),
        file: config.daemon.policy_file(&slot.role),
        call: call.shown(),
        confirmed: call.answers.allowed,
        calls: 1,
        last: call.last,
        would_change: None,
        general: general.filter(|_| rule.is_some()),
        rule,
    }
}

/// Calls that the same rule would allow, such as pages of one host, are one suggestion.
fn add(found: &mut Vec<Suggestion>, new: Suggestion) {
    let same = found
        .iter_mut()
        .find(|known| known.role == new.role && known.rule.is_some() && known.rule == new.rule);
    match same {
        Some(known) => {
            known.confirmed += new.confirmed;
            known.last = known.last.max(new.last);
        }
        None => found.push(new),
    }
}

fn print(context: &Context, found: &[Suggestion]) -> Result<(), Failure> {
    if context.out.json {
        return found.iter().try_for_each(|one| context.out.json(one));
    }
    let mut role = None;
    for one in found {
        if role != Some(&one.role) {
            let file = one.file.display();
            context.out.line(format!("# for `allow` in {file}"))?;
            role = Some(&one.role);
        }
        context.out.line(line(one))?;
    }
    if found.is_empty() {
        context
            .out
            .note("a person has confirmed nothing that a narrow rule would allow");
    }
    Ok(())
}

fn line(one: &Suggestion) -> String {
    let confirmed = times(one.confirmed);
    match &one.rule {
        Some(rule) => {
            let quoted = toml::Value::from(rule.as_str());
            let effect = one.would_change.map(RuleEffect::shown);
            let effect = effect.map_or_else(String::new, |effect| format!("; {effect}"));
            match one.calls {
                1 => format!("  {quoted},  # confirmed {confirmed}{effect}"),
                calls => {
                    format!("  {quoted},  # {calls} different calls, confirmed {confirmed}{effect}")
                }
            }
        }
        None => format!(
            "  # no narrow rule for: {} (confirmed {confirmed})",
            sanitise::one_line(&one.call)
        ),
    }
}
