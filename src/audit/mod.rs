//! `audit.jsonl`: every verdict, key and refusal, each entry chained to the one before by its hash, written
//! before the answer leaves. Only files of that name in the log directory are touched.

mod chain;
mod kept;
mod witness;
mod writer;

pub use chain::{BrokenChain, Head, Verified, entries, verify, verify_files};
pub use kept::KeptHead;
pub use writer::Audit;

use crate::core::claude::HookEvent;
use crate::core::model::NO_ANSWER;
use crate::core::model::Person;
use crate::core::policy::{Decision, RuleRef};
use crate::core::text::secrets;
use crate::os::peer::Peer;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// The file's name in the log directory.
pub const FILE: &str = "audit.jsonl";

/// What is written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub slot: String,
    pub session: Option<String>,
    pub what: RecordKind,
    pub tool: Option<String>,
    /// Secrets masked.
    pub input: Value,
    /// Of the whole input, as it was.
    pub input_hash: Option<String>,
    /// What relative paths in the input are meant in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The directory that a shell had changed to by then, where it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<PathBuf>,
    /// The agent of Claude Code that made the call; none where it was the slot itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only a part of the input was to be seen.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    pub verdict: Option<Decision>,
    pub rule: Option<RuleRef>,
    pub why: String,
    /// `policy`, `person` or, where it was no decision of theirs, `missiond`.
    pub by: String,
    /// The person's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The person's process, or the one that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// What the person used, as their program says: `cli confirm`, `mcp`, `library`, `attach`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// The key that was pressed, or was not.
    pub key: Option<String>,
    /// What Claude Code's hook was told; [`NO_ANSWER`] leaves it to Claude Code's own flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// A decision on a tool call or a dialog.
    Verdict,
    /// A key was pressed.
    Key,
    /// What an entry before tells of was not done, or had no effect.
    NoEffect,
    /// Somebody asked for what they may not do.
    Refused,
    /// A tool call is not what the gate has judged.
    Alarm,
    /// Entries are missing here, since they could not be written; the input is a [`AuditGap`].
    Hole,
}

impl RecordKind {
    pub fn word(self) -> &'static str {
        match self {
            RecordKind::Verdict => "verdict",
            RecordKind::Key => "key",
            RecordKind::NoEffect => "no_effect",
            RecordKind::Refused => "refused",
            RecordKind::Alarm => "alarm",
            RecordKind::Hole => "hole",
        }
    }
}

/// A time in which the audit could not be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditGap {
    /// Entries of what was done all the same, such as a denial.
    pub lost: u64,
    /// Entries of what was therefore not done.
    pub refused: u64,
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
}

/// A record in its place in the chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub seq: u64,
    pub time: DateTime<Utc>,
    #[serde(flatten)]
    pub record: Record,
    /// The hash of the entry before; of nothing at the beginning.
    pub prev: String,
    /// Of this entry's text with this field empty. The last field, so that it is found in the text.
    pub hash: String,
}

impl Record {
    fn new(slot: &str, what: RecordKind) -> Record {
        Record {
            slot: slot.to_owned(),
            session: None,
            what,
            tool: None,
            input: Value::Null,
            input_hash: None,
            cwd: None,
            at: None,
            agent: None,
            partial: false,
            verdict: None,
            rule: None,
            why: String::new(),
            by: "missiond".to_owned(),
            uid: None,
            pid: None,
            via: None,
            key: None,
            answer: None,
        }
    }

    /// The same, as the deed of a person if it is one's.
    pub fn by_any(self, person: Option<&Person>) -> Record {
        match person {
            Some(person) => self.by(person),
            None => self,
        }
    }

    /// The same, as the deed of a person.
    pub fn by(self, person: &Person) -> Record {
        Record {
            by: "person".to_owned(),
            uid: Some(person.uid),
            pid: person.pid,
            via: Some(person.via.clone()),
            ..self
        }
    }

    fn hole(gap: &AuditGap) -> Record {
        let AuditGap { lost, refused, .. } = gap;
        Record {
            why: format!(
                "the audit could not be written: {lost} entries are lost, {refused} deeds were refused"
            ),
            input: json!(gap),
            ..Record::new("", RecordKind::Hole)
        }
    }

    /// Whether nothing was decided here: it was left to Claude Code's own rules.
    pub fn is_left_open(&self) -> bool {
        self.answer.as_deref() == Some(NO_ANSWER)
    }

    pub fn verdict(slot: &str, tool: &str, input: &Value) -> Record {
        Record {
            tool: Some(tool.to_owned()),
            by: "policy".to_owned(),
            ..Record::new(slot, RecordKind::Verdict).with_input(input)
        }
    }

    pub fn key(slot: &str, key: &str, why: &str) -> Record {
        Record {
            why: why.to_owned(),
            key: Some(key.to_owned()),
            ..Record::new(slot, RecordKind::Key)
        }
    }

    /// A key that is in the audit was not pressed, or the one that had to follow it, or it had no effect.
    pub fn no_effect(slot: &str, key: &str, why: &str) -> Record {
        Record {
            why: why.to_owned(),
            key: Some(key.to_owned()),
            ..Record::new(slot, RecordKind::NoEffect)
        }
    }

    /// A client asked for what it may not do.
    pub fn refused(slot: &str, peer: &Peer, method: &str, params: &Value, why: &str) -> Record {
        Record {
            verdict: Some(Decision::Deny),
            why: why.to_owned(),
            uid: Some(peer.uid),
            pid: peer.pid,
            via: Some(peer.via.clone()),
            ..Record::new(slot, RecordKind::Refused)
                .with_input(&json!({ "method": method, "params": params }))
        }
    }

    /// A tool call went past the gate, or somebody plays Claude Code's part.
    pub fn alarm(slot: &str, tool: &str, input: &Value, why: &str) -> Record {
        Record {
            tool: Some(tool.to_owned()),
            why: why.to_owned(),
            ..Record::new(slot, RecordKind::Alarm).with_input(input)
        }
    }

    /// A hook spoke of a conversation that is not the slot's.
    pub fn stranger(slot: &str, hook: &HookEvent, why: &str) -> Record {
        let session = &hook.session_id;
        Record {
            verdict: Some(Decision::Deny),
            session: session.clone(),
            why: why.to_owned(),
            ..Record::new(slot, RecordKind::Refused)
                .with_input(&json!({ "hook": format!("{:?}", hook.what) }))
        }
    }

    fn with_input(self, input: &Value) -> Record {
        Record {
            input: secrets::mask_json(input),
            input_hash: Some(hash_of(input.to_string().as_bytes())),
            ..self
        }
    }

    /// Whether something in the input was masked, so that it is no longer what was judged.
    pub fn is_masked(&self) -> bool {
        self.input_hash
            .as_ref()
            .is_some_and(|hash| *hash != hash_of(self.input.to_string().as_bytes()))
    }
}

/// Hex of SHA-256.
pub fn hash_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_the_whole_is_hashed() {
        let input = json!({"command": "curl -H 'Authorization: Bearer abcdefgh12345'"});
        let record = Record::verdict("a", "Bash", &input);
        assert!(!record.input.to_string().contains("abcdefgh12345"));
        assert_eq!(
            record.input_hash,
            Some(hash_of(input.to_string().as_bytes()))
        );
        assert!(record.is_masked());
        assert!(!Record::verdict("a", "Bash", &json!({"command": "ls"})).is_masked());
        assert!(!Record::key("a", "1", "").is_masked());
    }
}
