use super::*;
use crate::audit::{self, AskedCalls, EarlierAnswers, Record};
use crate::core::claude::reading::DialogKind;
use crate::core::policy::{
    Ask, Decision, EFFECT_DAYS, Explanation, PartVerdict, RuleEffect, RuleRef, Verdict,
};
use crate::daemon::Policies;
use chrono::TimeDelta;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// The maximum of audit bytes read for one explanation: about the entries of a team of slots in a week.
const MAX_AUDIT: usize = 16 << 20;
/// The maximum of distinct calls that a rule is tried on, the newest first; each is judged twice.
const MAX_CALLS: usize = 2000;
/// The maximum of earlier answers in an explanation.
const MAX_EARLIER: usize = 10;
/// The maximum of a command's parts in an explanation.
const MAX_PARTS: usize = 64;

request! {
    /// Explains what a slot asks a person: the verdict on each part of it, how people answered the same request in the
    /// last days, and what `always` would write and would have changed.
    Explain = "explain", OneSlot => ExplainAnswer;
    access: PersonOnly;
    scope: Scope::View;
    names: Accepts::Slots("missiond session info ID");
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainAnswer {
    pub slot: String,
    /// The id of the explained dialog; `null` if the screen shows no dialog about the call.
    pub dialog: Option<String>,
    pub tool: String,
    /// Each part of a command with its verdict; one part for any other tool; empty for a dialog that is not a tool
    /// call.
    pub parts: Vec<ExplainedPart>,
    /// How often people answered the same request in the last days.
    pub answered: usize,
    /// The latest of those answers, the newest first.
    pub earlier: Vec<EarlierAnswer>,
    /// What `always` would write; `null` if it would write nothing.
    pub always: Option<AlwaysEffect>,
    /// The number of days that were searched.
    pub days: u32,
    /// Why older entries of the audit are missing here, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedPart {
    pub part: String,
    pub verdict: Decision,
    /// The rule that decided, or that would have allowed the part if nothing had overruled it.
    pub rule: Option<RuleRef>,
    pub why: String,
}

/// A person's answer to the same request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EarlierAnswer {
    pub time: DateTime<Utc>,
    pub slot: String,
    /// `allow` or `deny`.
    pub verdict: Decision,
    /// The name that the person's client gives itself.
    pub via: Option<String>,
    /// What the person chose, with their reason.
    pub why: String,
}

/// A rule, and what it would have changed in the last days.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AlwaysEffect {
    /// The policy file that the rule would be written to.
    pub file: PathBuf,
    /// The new rule in `allow`.
    pub rule: String,
    /// What it would have changed; `null` if that is unknown.
    #[serde(flatten)]
    pub effect: Option<RuleEffect>,
}

async fn answer(call: Call<'_>, one: OneSlot) -> Result<ExplainAnswer, RpcError> {
    let slot = call.slot(&one.slot)?;
    let ask = slot.request(|reply| SlotCommand::Asked { reply }).await?;
    let status = slot.status();
    let ask = ask.ok_or_else(|| {
        let text = format!("{} asks nothing", status.slot);
        RpcError::new(Fault::Refused, text).next("see which slots ask you: missiond pending")
    })?;
    let case = ExplainCase {
        policies: call.daemon().policies(),
        audit: call.daemon().pong().logs.join(audit::FILE),
        since: Utc::now() - TimeDelta::days(EFFECT_DAYS.into()),
        status,
        ask,
    };
    // One at a time: a client that asks often waits, and takes one thread.
    let explained = call.dispatcher().reading().run(move || case.explain());
    let failed = |error| {
        RpcError::new(
            Fault::Failed,
            format!("the request can't be explained: {error}"),
        )
    };
    explained.await.map_err(failed)
}

/// The inputs of an explanation.
struct ExplainCase {
    policies: Policies,
    audit: PathBuf,
    since: DateTime<Utc>,
    status: SlotStatus,
    ask: Ask,
}

impl ExplainCase {
    /// Reads the audit and resolves real paths, which blocks: run it on a separate thread.
    fn explain(self) -> ExplainAnswer {
        let ExplainCase { status, ask, .. } = &self;
        let mut calls = AskedCalls::default();
        let mut answers = EarlierAnswers::new(ask, MAX_EARLIER);
        let read = audit::recent(&self.audit, self.since, MAX_AUDIT, |entry| {
            answers.add(&entry);
            if entry.record.actor.by == "policy" && calls.len() < MAX_CALLS {
                calls.add(entry);
            }
            ControlFlow::Continue(())
        });
        let incomplete = match read {
            Ok(true) => None,
            Ok(false) => Some(format!(
                "only the last {} MiB of the audit were read",
                MAX_AUDIT >> 20
            )),
            Err(error) => Some(format!("the audit can't be read: {error}")),
        };
        let (answered, earlier) = answers.found();
        let rule = status
            .always
            .as_ref()
            .and_then(|always| always.rule.clone());
        let calls = calls.calls();
        let always = rule.and_then(|rule| {
            Some(AlwaysEffect {
                file: self.policies.file(&status.role)?.to_owned(),
                effect: self.policies.effect(&status.role, &rule, &calls),
                rule,
            })
        });
        ExplainAnswer {
            slot: status.slot.clone(),
            dialog: status.dialog.as_ref().map(|dialog| dialog.id.clone()),
            tool: ask.tool.clone(),
            parts: self.parts(),
            answered,
            earlier: earlier.filter_map(earlier_answer).collect(),
            always,
            days: EFFECT_DAYS,
            incomplete,
        }
    }

    fn parts(&self) -> Vec<ExplainedPart> {
        let ExplainCase { status, ask, .. } = self;
        let is_call = |kind| kind == DialogKind::Permission;
        if !status
            .dialog
            .as_ref()
            .is_none_or(|dialog| is_call(dialog.kind))
        {
            return Vec::new();
        }
        let explained = self.policies.explain(&status.slot, &status.role, ask);
        let Some(Explanation { verdict, parts }) = explained else {
            return Vec::new();
        };
        if parts.is_empty() {
            return vec![explained_part(ask.tool.clone(), verdict)];
        }
        let part = |part: PartVerdict| explained_part(part.text, part.verdict);
        parts.into_iter().take(MAX_PARTS).map(part).collect()
    }
}

fn explained_part(part: String, verdict: Verdict) -> ExplainedPart {
    ExplainedPart {
        part,
        verdict: verdict.decision,
        rule: verdict.rule,
        why: verdict.why,
    }
}

fn earlier_answer((time, record): (DateTime<Utc>, Record)) -> Option<EarlierAnswer> {
    Some(EarlierAnswer {
        time,
        slot: record.slot,
        verdict: record.verdict?,
        via: record.actor.via,
        why: record.why,
    })
}
