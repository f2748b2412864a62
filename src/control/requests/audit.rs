use super::*;
use crate::audit::{self, AuditEntry};
use crate::core::machine::target_of;
use crate::core::policy::{Decision, RuleRef};
use std::ops::ControlFlow;
use std::path::Path;

/// Bytes of the audit that are read for one answer.
const MAX_READ: usize = 16 << 20;
/// The default number of entries in an answer, and the maximum.
const ENTRIES: usize = 100;
const MAX_ENTRIES: usize = 1000;

request! {
    /// Shows the last entries of the audit, the newest first: what was decided, by which rule or whom, and why.
    AuditTail = "audit", AuditParams => AuditAnswer;
    access: PersonOnly;
    scope: Scope::View;
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditParams {
    /// Only entries of these slots, by name; empty means all slots, also those that are gone.
    #[serde(default)]
    pub of: Vec<String>,
    /// Only entries with this verdict.
    #[serde(default)]
    pub verdict: Option<Decision>,
    /// Only entries decided by `policy`, `person` or `missiond`.
    #[serde(default)]
    pub by: Option<String>,
    /// Only entries with a number below this one.
    #[serde(default)]
    pub before: Option<u64>,
    /// The maximum number of entries: 100 by default, 1000 at most.
    #[serde(default)]
    pub limit: Option<usize>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditAnswer {
    /// The newest first.
    pub entries: Vec<AuditLine>,
    /// True if there may be older entries that match.
    pub more: bool,
}

/// An entry of the audit. The whole input of a call is in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditLine {
    pub seq: u64,
    pub time: DateTime<Utc>,
    pub slot: String,
    /// `verdict`, `key`, `no_effect`, `refused`, `alarm` or `hole`.
    pub what: String,
    pub tool: Option<String>,
    /// What the call is about (its command, path or address), in one line.
    pub target: Option<String>,
    pub verdict: Option<Decision>,
    pub rule: Option<RuleRef>,
    pub why: String,
    /// `policy`, `person` or `missiond`.
    pub by: String,
    /// The person's client, as it names itself.
    pub via: Option<String>,
    pub key: Option<String>,
}

async fn answer(call: Call<'_>, params: AuditParams) -> Result<AuditAnswer, RpcError> {
    let file = call.daemon().pong().logs.join(audit::FILE);
    let read = call
        .dispatcher()
        .reading()
        .run(move || read(&file, &params));
    let failed = |error| RpcError::new(Fault::Failed, format!("the audit can't be read: {error}"));
    read.await.map_err(failed)?.map_err(failed)
}

fn read(file: &Path, params: &AuditParams) -> std::io::Result<AuditAnswer> {
    let most = params.limit.unwrap_or(ENTRIES).min(MAX_ENTRIES);
    let mut entries = Vec::new();
    let whole = audit::recent(file, DateTime::UNIX_EPOCH, MAX_READ, |entry| {
        if !params.wants(&entry) {
            return ControlFlow::Continue(());
        }
        if entries.len() == most {
            return ControlFlow::Break(());
        }
        entries.push(line(entry));
        ControlFlow::Continue(())
    })?;
    Ok(AuditAnswer {
        entries,
        more: !whole,
    })
}

impl AuditParams {
    fn wants(&self, entry: &AuditEntry) -> bool {
        let record = &entry.record;
        let is_before = self.before.is_none_or(|before| entry.seq < before);
        let is_of = self.of.is_empty() || self.of.contains(&record.slot);
        let is_so = self.verdict.is_none_or(|one| record.verdict == Some(one));
        let is_by = self.by.as_ref().is_none_or(|by| record.actor.by == *by);
        is_before && is_of && is_so && is_by
    }
}

fn line(entry: AuditEntry) -> AuditLine {
    let AuditEntry {
        seq, time, record, ..
    } = entry;
    AuditLine {
        seq,
        time,
        slot: record.slot,
        what: record.what.word().to_owned(),
        tool: record.call.tool,
        target: target_of(&record.call.input),
        verdict: record.verdict,
        rule: record.rule,
        why: record.why,
        by: record.actor.by,
        via: record.actor.via,
        key: record.key,
    }
}
