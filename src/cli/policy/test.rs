use super::{asked, on_disk, word};
use crate::audit::AskedCall;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::sanitise;
use crate::config::Config;
use crate::control::dispatch::no_such_role;
use crate::core::policy::{
    Circumstances, Decision, Policy, Verdict, decide, gate, only_reads_the_project,
};
use crate::core::settings::SlotConfig;
use crate::os::real_paths::RealPaths;
use serde_json::json;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Says what a policy would have decided on everything that was asked so far, and what that changes.
///
/// The calls come from the audit. Another file than the one in force is compared with the one in force; the one
/// in force, with what was decided at the time.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond policy test --policy policies/coder.toml            after an edit, before `missiond reload`
  missiond policy test --policy new.toml --role coder --from logs/
  missiond policy test --policy new.toml --role coder --json | jq 'select(.changed)'")]
pub struct Test {
    /// The policy file to try
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// The role that it is for [default: the name of the file]
    #[arg(long)]
    role: Option<String>,
    /// The audit file, or the log directory that it is in [default: that of the daemon]
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

/// What a call is compared with.
enum BeforeChange {
    Policy(Box<Policy>),
    /// What was decided at the time.
    Then,
}

struct Trial {
    new: Policy,
    before: BeforeChange,
    paths: RealPaths,
    /// Of each slot.
    circumstances: HashMap<String, Circumstances>,
}

impl Test {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let config = on_disk::config(context)?;
        let role = self.role()?;
        let slots = slots_of(&config, &role)?;
        let trial = Trial {
            new: on_disk::read(context, &config, &self.policy)?,
            before: self.before(&config, &role)?,
            paths: RealPaths::new(std::env::home_dir()),
            circumstances: circumstances(&config),
        };
        let mut calls = asked::calls(context, self.from, "policy", None).await?;
        calls.retain(|call| slots.contains(&call.slot.as_str()));
        let (mut changed, mut masked) = (0, 0);
        for call in &calls {
            let (before, after) = trial.on(call);
            let changes = before != after.decision;
            changed += usize::from(changes);
            masked += usize::from(call.is_masked);
            print(context, call, before, &after)?;
        }
        if context.out.json {
            return Ok(());
        }
        summarise(context, &calls, changed, masked, &trial.before)
    }

    fn role(&self) -> Result<String, Failure> {
        let stem = || Some(self.policy.file_stem()?.to_string_lossy().into_owned());
        self.role.clone().or_else(stem).ok_or_else(|| {
            Failure::usage("which role is this policy for?").next("say it with --role ROLE")
        })
    }

    fn before(&self, config: &Config, role: &str) -> Result<BeforeChange, Failure> {
        let own = config.daemon.policy_file(role);
        if same_file(&own, &self.policy) {
            return Ok(BeforeChange::Then);
        }
        let policy = on_disk::policy(config, role).ok_or_else(|| {
            Failure::usage(format!(
                "the slots of `{role}` are plain programs, which have no policy"
            ))
        })?;
        Ok(BeforeChange::Policy(Box::new(policy)))
    }
}

pub fn same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn slots_of<'a>(config: &'a Config, role: &str) -> Result<Vec<&'a str>, Failure> {
    let slots = config.slots.iter().filter(|slot| slot.role == role);
    let slots: Vec<&str> = slots.map(|slot| slot.name.as_str()).collect();
    if !slots.is_empty() {
        return Ok(slots);
    }
    let unknown = no_such_role(role, &on_disk::roles(config));
    let next = unknown.next.clone().unwrap_or_default();
    Err(Failure::from(unknown).next(format!("{next}; say which it is for: --role ROLE")))
}

fn circumstances(config: &Config) -> HashMap<String, Circumstances> {
    let of = |slot: &SlotConfig| Circumstances::configured(&slot.mode, slot.project_settings);
    let slots = config.slots.iter();
    slots.map(|slot| (slot.name.clone(), of(slot))).collect()
}

impl Trial {
    fn on(&self, call: &AskedCall) -> (Decision, Verdict) {
        let circumstances = self.circumstances.get(&call.slot).copied();
        let by = |policy: &Policy| {
            let verdict = decide(&policy.for_slot(&call.slot), &call.ask, &self.paths);
            let only_reads = || only_reads_the_project(&call.ask, &self.paths);
            gate::answer(verdict, circumstances.unwrap_or_default(), only_reads)
        };
        let before = match &self.before {
            BeforeChange::Then => call.decision,
            BeforeChange::Policy(policy) => by(policy).decision,
        };
        (before, by(&self.new))
    }
}

/// For people only what changes.
fn print(
    context: &Context,
    call: &AskedCall,
    before: Decision,
    after: &Verdict,
) -> Result<(), Failure> {
    let changed = before != after.decision;
    if context.out.json {
        return context.out.json(&json!({
            "slot": call.slot, "tool": call.ask.tool, "input": call.ask.input, "cwd": call.ask.cwd,
            "count": call.count, "last": call.last, "before": before, "after": after.decision,
            "changed": changed, "rule": after.rule, "why": after.why, "masked": call.is_masked,
        }));
    }
    if !changed {
        return Ok(());
    }
    let rule = after.rule.as_ref().map_or(String::new(), |rule| {
        format!("  {}:{}", rule.file.display(), rule.line)
    });
    let (shown, why) = (call.shown(), sanitise::one_line(&after.why));
    context.out.line(format!(
        "{} -> {} {}  ({}, {})\n    {why}{rule}",
        before.word(),
        word(after.decision),
        sanitise::one_line(&shown),
        call.slot,
        times(call.count),
    ))
}

pub fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        _ => format!("{count} times"),
    }
}

fn summarise(
    context: &Context,
    calls: &[AskedCall],
    changed: usize,
    masked: usize,
    before: &BeforeChange,
) -> Result<(), Failure> {
    let against = match before {
        BeforeChange::Then => "what was decided then".to_owned(),
        BeforeChange::Policy(policy) => policy.file.display().to_string(),
    };
    let (kinds, all) = (
        calls.len(),
        calls.iter().map(|call| call.count).sum::<usize>(),
    );
    context.out.line(format!(
        "{all} calls, {kinds} of them different: {} as before, {changed} changed, against {against}",
        kinds - changed
    ))?;
    if masked > 0 {
        context.out.note(format!(
            "in {masked} of them a secret is masked, and was judged as such"
        ));
    }
    Ok(())
}
