use super::{on_disk, word};
use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::cli::{complete, sanitise};
use crate::control::requests::{InForce, PolicyAnswer};
use crate::core::model::OneSlot;
use crate::core::policy::{Decision, Fallback, Policy, RuleInForce};

/// Prints what is in force for a slot.
///
/// With no daemon it is what the files say, which is what the next one will take.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// The slot
    #[arg(add = complete::slots())]
    slot: String,
}

impl Show {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let slot = self.slot.clone();
        let answer = match context.ask::<InForce>(OneSlot { slot }).await {
            Err(failure) if failure.blame == Blame::NoDaemon => {
                context
                    .out
                    .note("no daemon answers: this is what the files say");
                self.as_on_disk(context)?
            }
            answer => answer?,
        };
        if context.out.json {
            return context.out.json(&answer);
        }
        context.out.line(for_people(&answer))?;
        note_what_waits(context, &answer);
        Ok(())
    }

    fn as_on_disk(&self, context: &Context) -> Result<PolicyAnswer, Failure> {
        let config = on_disk::config(context)?;
        let slot = on_disk::slot(&config, &self.slot)?;
        let policy = on_disk::policy(&config, &slot.role)
            .unwrap_or_else(|| Policy::asking(&slot.cwd, &slot.cwd));
        Ok(PolicyAnswer {
            slot: slot.name.clone(),
            role: slot.role.clone(),
            next_role: None,
            waits: false,
            waiting: Vec::new(),
            stricter: Vec::new(),
            text: None,
            policy: policy.for_slot(&slot.name).summary(),
        })
    }
}

/// What is in force for a slot, if a daemon runs. Without one the files are what the next daemon takes.
pub async fn in_force(context: &Context, slot: &str) -> Option<PolicyAnswer> {
    let slot = slot.to_owned();
    context.ask::<InForce>(OneSlot { slot }).await.ok()
}

/// Tells what the files say and the running daemon does not do yet.
pub fn note_what_waits(context: &Context, answer: &PolicyAnswer) {
    for note in waiting(answer, &context.target()) {
        context.out.note(note);
    }
}

/// What stands on the disk and does not hold yet, with the next step.
fn waiting(answer: &PolicyAnswer, target: &str) -> Vec<String> {
    let slot = &answer.slot;
    let waits = answer.waits.then(|| {
        let more = sanitise::one_line(&answer.waiting.join(", "));
        format!(
            "the file on the disk has changed: what is stricter in it holds, and what may allow more ({more}) waits: \
             missiond reload{target}"
        )
    });
    let role = answer.next_role.as_ref().map(|next| {
        let (role, next) = (sanitise::one_line(&answer.role), sanitise::one_line(next));
        format!(
            "the config names the role {next} by now; the program runs in the role {role} until \
             missiond restart {slot}{target}"
        )
    });
    waits.into_iter().chain(role).collect()
}

fn by_default(default: Fallback) -> String {
    let (decision, what) = match default {
        Fallback::Claude => (
            Decision::Silent,
            "where no rule speaks: Claude Code's own rules and your settings decide (default = \"claude\")",
        ),
        Fallback::Ask => (
            Decision::Ask,
            "where no rule speaks, but about what only reads inside the slot's directory",
        ),
        Fallback::Deny => (Decision::Deny, "where no rule speaks"),
    };
    format!("{}  {what}", word(decision))
}

fn for_people(answer: &PolicyAnswer) -> String {
    let policy = &answer.policy;
    let mut lines = vec![format!(
        "{} (role {}, {})",
        answer.slot,
        answer.role,
        policy.file.display()
    )];
    let mut rules: Vec<&RuleInForce> = policy.rules.iter().chain(&answer.stricter).collect();
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.decision));
    for rule in rules {
        let level = match rule.level.as_str() {
            "role" => String::new(),
            level => format!("  ({level})"),
        };
        lines.push(format!(
            "  {}  {}  {}:{}{level}",
            word(rule.decision),
            sanitise::one_line(&rule.rule),
            rule.file.display(),
            rule.line
        ));
    }
    lines.push(format!("  {}", by_default(policy.default)));
    for (kind, decision) in &policy.dialogs {
        lines.push(format!("  {}  dialog: {kind}", word(*decision)));
    }
    if let Some(reason) = &policy.deny_reason {
        lines.push(format!("  told with a no: {}", sanitise::one_line(reason)));
    }
    if !policy.mcp.is_empty() {
        let methods: Vec<&str> = policy.mcp.iter().map(String::as_str).collect();
        let slots = match &policy.mcp_slots {
            None => "every other slot".to_owned(),
            Some(slots) => slots.iter().cloned().collect::<Vec<_>>().join(", "),
        };
        lines.push(format!(
            "  granted to its programs: {} (on {})",
            methods.join(", "),
            sanitise::one_line(&slots)
        ));
    }
    lines.join("\n")
}
