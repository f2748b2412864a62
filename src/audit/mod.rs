//! `audit.jsonl`: every verdict, key and refusal. Each entry is chained to the previous one by its hash, and is written
//! before the answer leaves. Only files of that name in the log directory are touched.

mod asked;
mod chain;
mod kept;
mod witness;
mod writer;

pub use asked::{AskedCall, AskedCalls, EarlierAnswers, recent};
pub use chain::{BrokenChain, Head, Verified, entries, verify, verify_files};
pub use kept::KeptHead;
pub use writer::{Audit, AuditFault};

use crate::core::claude::HookEvent;
use crate::core::model::NO_ANSWER;
use crate::core::model::Person;
use crate::core::policy::{Decision, RuleRef};
use crate::core::text::{hex, secrets};
use crate::os::peer::Peer;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// The file's name in the log directory.
pub const FILE: &str = "audit.jsonl";

/// The content of an entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub slot: String,
    pub session: Option<String>,
    pub what: RecordKind,
    #[serde(flatten)]
    pub call: RecordedCall,
    pub verdict: Option<Decision>,
    pub rule: Option<RuleRef>,
    pub why: String,
    #[serde(flatten)]
    pub actor: RecordedActor,
    /// The key that was pressed, or was withheld.
    pub key: Option<String>,
    /// The hook's answer to Claude Code; [`NO_ANSWER`] leaves the call to Claude Code's own rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// The subject of an entry: a tool call, or another request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedCall {
    pub tool: Option<String>,
    /// The input, with secrets masked.
    pub input: Value,
    /// The hash of the whole original input.
    pub input_hash: Option<String>,
    /// The directory that relative paths in the input are relative to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The shell's current directory, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<PathBuf>,
    /// The agent of Claude Code that made the call; `None` if the conversation itself did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Whether only a part of the input was visible.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
}

/// Who has decided, or was refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedActor {
    /// `policy`, `person` or, if neither decided, `missiond`.
    pub by: String,
    /// The person's user id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// The person's process, or the one that was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<i32>,
    /// The person's client, as it names itself: `cli confirm`, `mcp`, `library`, `attach`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
}

impl RecordedActor {
    /// An actor of whom only the kind is known.
    fn only(by: &str) -> RecordedActor {
        RecordedActor {
            by: by.to_owned(),
            uid: None,
            pid: None,
            via: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// A decision on a tool call or a dialog.
    Verdict,
    /// A key was pressed.
    Key,
    /// The action of an earlier entry was not done, or had no effect.
    NoEffect,
    /// A client requested something that it may not do.
    Refused,
    /// A tool call is not the one that the gate has judged.
    Alarm,
    /// Entries are missing here because they could not be written; the input is an [`AuditGap`].
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

/// A period in which the audit could not be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditGap {
    /// Lost entries of actions that were done anyway, such as a denial.
    pub lost: u64,
    /// Entries whose actions were therefore not done.
    pub refused: u64,
    pub from: DateTime<Utc>,
    pub to: DateTime<Utc>,
}

impl AuditGap {
    /// Adds a gap to another, of which it may be the begin, the end or a part.
    fn join(gap: &mut Option<AuditGap>, more: AuditGap) {
        *gap = Some(match gap.take() {
            None => more,
            Some(before) => AuditGap {
                lost: before.lost + more.lost,
                refused: before.refused + more.refused,
                from: before.from.min(more.from),
                to: before.to.max(more.to),
            },
        });
    }
}

/// A record at its position in the chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditEntry {
    pub seq: u64,
    pub time: DateTime<Utc>,
    #[serde(flatten)]
    pub record: Record,
    /// The hash of the previous entry; empty at the beginning.
    pub prev: String,
    /// The hash of this entry's text with this field empty. It is the last field, so that it can be found in the text.
    pub hash: String,
}

impl Record {
    fn new(slot: &str, what: RecordKind) -> Record {
        Record {
            slot: slot.to_owned(),
            session: None,
            what,
            call: RecordedCall::default(),
            verdict: None,
            rule: None,
            why: String::new(),
            actor: RecordedActor::only("missiond"),
            key: None,
            answer: None,
        }
    }

    /// The same record, as a person's action if there is a person.
    pub fn by_any(self, person: Option<&Person>) -> Record {
        match person {
            Some(person) => self.by(person),
            None => self,
        }
    }

    /// The same record, as a person's action.
    pub fn by(self, person: &Person) -> Record {
        let actor = RecordedActor {
            by: "person".to_owned(),
            uid: Some(person.uid),
            pid: person.pid,
            via: Some(person.via.clone()),
        };
        Record { actor, ..self }
    }

    fn hole(gap: &AuditGap) -> Record {
        let AuditGap { lost, refused, .. } = gap;
        let mut record = Record::new("", RecordKind::Hole);
        record.call.input = json!(gap);
        record.why = format!(
            "the audit could not be written: {lost} entries are lost, {refused} deeds were refused"
        );
        record
    }

    /// Tells whether missiond decided nothing, so that Claude Code's own rules decide.
    pub fn is_left_open(&self) -> bool {
        self.answer.as_deref() == Some(NO_ANSWER) && self.verdict != Some(Decision::Allow)
    }

    pub fn verdict(slot: &str, tool: &str, input: &Value) -> Record {
        Record {
            actor: RecordedActor::only("policy"),
            ..Record::new(slot, RecordKind::Verdict).with_call(Some(tool), input)
        }
    }

    pub fn key(slot: &str, key: &str, why: &str) -> Record {
        Record {
            why: why.to_owned(),
            key: Some(key.to_owned()),
            ..Record::new(slot, RecordKind::Key)
        }
    }

    /// The entry for a key in the audit that was not pressed, or had no effect, or whose next key was not pressed.
    pub fn no_effect(slot: &str, key: &str, why: &str) -> Record {
        Record {
            why: why.to_owned(),
            key: Some(key.to_owned()),
            ..Record::new(slot, RecordKind::NoEffect)
        }
    }

    /// The entry for a client that requested something that it may not do.
    pub fn refused(slot: &str, peer: &Peer, method: &str, params: &Value, why: &str) -> Record {
        let input = json!({ "method": method, "params": params });
        Record {
            verdict: Some(Decision::Deny),
            why: why.to_owned(),
            actor: RecordedActor {
                uid: Some(peer.uid),
                pid: peer.pid,
                via: Some(peer.via.clone()),
                ..RecordedActor::only("missiond")
            },
            ..Record::new(slot, RecordKind::Refused).with_call(None, &input)
        }
    }

    /// The entry for a tool call that bypassed the gate, or another program that imitates Claude Code.
    pub fn alarm(slot: &str, tool: &str, input: &Value, why: &str) -> Record {
        Record {
            why: why.to_owned(),
            ..Record::new(slot, RecordKind::Alarm).with_call(Some(tool), input)
        }
    }

    /// The entry for a hook event from a conversation that is not the slot's.
    pub fn stranger(slot: &str, hook: &HookEvent, why: &str) -> Record {
        let input = json!({ "hook": format!("{:?}", hook.what) });
        Record {
            verdict: Some(Decision::Deny),
            session: hook.session_id.clone(),
            why: why.to_owned(),
            ..Record::new(slot, RecordKind::Refused).with_call(None, &input)
        }
    }

    fn with_call(self, tool: Option<&str>, input: &Value) -> Record {
        let call = RecordedCall {
            tool: tool.map(str::to_owned),
            input: secrets::mask_input(input),
            input_hash: Some(hash_of(input.to_string().as_bytes())),
            ..RecordedCall::default()
        };
        Record { call, ..self }
    }

    /// Tells whether something in the input was masked, so that it is no longer the judged input.
    pub fn is_masked(&self) -> bool {
        let RecordedCall {
            input, input_hash, ..
        } = &self.call;
        let unmasked = hash_of(input.to_string().as_bytes());
        input_hash.as_ref().is_some_and(|hash| *hash != unmasked)
    }
}

/// The SHA-256 in hex.
pub fn hash_of(bytes: &[u8]) -> String {
    hex::encode(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_the_whole_is_hashed() {
        let input = json!({"command": "curl -H 'Authorization: Bearer abcdefgh12345'"});
        let record = Record::verdict("a", "Bash", &input);
        assert!(!record.call.input.to_string().contains("abcdefgh12345"));
        assert_eq!(
            record.call.input_hash,
            Some(hash_of(input.to_string().as_bytes()))
        );
        assert!(record.is_masked());
        assert!(!Record::verdict("a", "Bash", &json!({"command": "ls"})).is_masked());
        assert!(!Record::key("a", "1", "").is_masked());
    }

    /// The groups of a record do not appear in the file: all keys are on one level, in this order.
    #[test]
    fn an_entry_of_the_file_has_its_keys_side_by_side() {
        let person = Person {
            uid: 7,
            pid: Some(8),
            via: "cli confirm".to_owned(),
        };
        let mut record = Record::verdict("a", "Bash", &json!({"command": "ls"})).by(&person);
        record.call.cwd = Some("/w".into());
        record.call.input_hash = Some("0f".to_owned());
        record.answer = Some("ask".to_owned());
        let text = serde_json::to_string(&record).unwrap();
        let written = r#"{"slot":"a","session":null,"what":"verdict","tool":"Bash","input":{"command":"ls"},"input_hash":"0f","cwd":"/w","verdict":null,"rule":null,"why":"","by":"person","uid":7,"pid":8,"via":"cli confirm","key":null,"answer":"ask"}"#;
        assert_eq!(text, written);
        assert_eq!(serde_json::from_str::<Record>(written).unwrap(), record);
    }
}
