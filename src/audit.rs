//! `audit.jsonl`: every verdict and key, each entry chained to the one before by its hash, written before the
//! answer leaves.

use crate::policy::{Decision, RuleRef};
use crate::{files, secrets};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use tokio::sync::{mpsc, oneshot};

/// What is written down.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub slot: String,
    pub session: Option<String>,
    /// `verdict` or `key`.
    pub what: String,
    pub tool: Option<String>,
    /// Secrets masked.
    pub input: Value,
    /// Of the whole input, as it was.
    pub input_hash: Option<String>,
    pub verdict: Option<Decision>,
    pub rule: Option<RuleRef>,
    pub why: String,
    /// `policy`, `person`.
    pub by: String,
    /// The key that was pressed.
    pub key: Option<String>,
}

/// A record in its place in the chain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    pub seq: u64,
    pub time: DateTime<Utc>,
    #[serde(flatten)]
    pub record: Record,
    /// The hash of the entry before; of nothing at the beginning.
    pub prev: String,
    /// Of this entry, without this field.
    #[serde(default)]
    pub hash: String,
}

impl Record {
    pub fn verdict(slot: &str, tool: &str, input: &Value) -> Record {
        Record {
            slot: slot.to_owned(),
            session: None,
            what: "verdict".to_owned(),
            tool: Some(tool.to_owned()),
            input: secrets::mask_json(input),
            input_hash: Some(hash_of(input.to_string().as_bytes())),
            verdict: None,
            rule: None,
            why: String::new(),
            by: "policy".to_owned(),
            key: None,
        }
    }

    pub fn key(slot: &str, key: &str, why: &str) -> Record {
        Record {
            what: "key".to_owned(),
            tool: None,
            input: Value::Null,
            input_hash: None,
            why: secrets::mask(why),
            key: Some(key.to_owned()),
            ..Record::verdict(slot, "", &Value::Null)
        }
    }
}

/// Hex of SHA-256.
pub fn hash_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

impl Entry {
    fn seal(mut self) -> Entry {
        self.hash = self.own_hash();
        self
    }

    fn own_hash(&self) -> String {
        let mut bare = self.clone();
        bare.hash = String::new();
        hash_of(serde_json::to_string(&bare).unwrap_or_default().as_bytes())
    }
}

/// A fault in the chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct Broken {
    pub line: usize,
    pub fault: String,
}

/// Checks a whole audit file; the number of entries where nothing is wrong.
pub fn verify(text: &str) -> Result<usize, Broken> {
    let mut prev = String::new();
    let mut count = 0;
    for (index, line) in text.lines().enumerate() {
        let broken = |fault: String| Broken {
            line: index + 1,
            fault,
        };
        let entry: Entry =
            serde_json::from_str(line).map_err(|error| broken(format!("no entry: {error}")))?;
        if entry.seq != index as u64 + 1 {
            return Err(broken(format!(
                "entry {} stands where {} belongs",
                entry.seq,
                index + 1
            )));
        }
        if entry.prev != prev {
            return Err(broken(format!(
                "entry {} does not follow the one before it",
                entry.seq
            )));
        }
        if entry.hash != entry.own_hash() {
            return Err(broken(format!("entry {} was changed", entry.seq)));
        }
        prev = entry.hash;
        count += 1;
    }
    Ok(count)
}

/// The one writer's file and where its chain stands.
#[derive(Debug)]
struct Chain {
    file: File,
    seq: u64,
    prev: String,
}

impl Chain {
    fn open(path: &Path) -> io::Result<Chain> {
        let mut file = files::append(path)?;
        files::drop_torn_line(&mut file)?;
        let last = files::last_line(&mut file)?
            .map(|line| serde_json::from_str::<Entry>(&line))
            .transpose();
        let last = last
            .map_err(|error| io::Error::other(format!("the last entry can't be read: {error}")))?;
        let (seq, prev) = last.map_or((0, String::new()), |entry| (entry.seq, entry.hash));
        Ok(Chain { file, seq, prev })
    }

    fn append(&mut self, record: Record, time: DateTime<Utc>) -> io::Result<u64> {
        let entry = Entry {
            seq: self.seq + 1,
            time,
            record,
            prev: self.prev.clone(),
            hash: String::new(),
        }
        .seal();
        let mut line = serde_json::to_string(&entry).map_err(io::Error::other)?;
        line.push('\n');
        let before = self.file.metadata()?.len();
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            let _ = self.file.set_len(before);
            return Err(error);
        }
        self.seq = entry.seq;
        self.prev = entry.hash;
        Ok(entry.seq)
    }
}

type Job = (Record, oneshot::Sender<io::Result<u64>>);

/// Jobs that may wait for the writer: one for each slot that decides at the same moment, with room to spare.
const MAX_JOBS: usize = 256;

/// The way to the one writer.
#[derive(Debug, Clone)]
pub struct Audit {
    jobs: mpsc::Sender<Job>,
}

impl Audit {
    /// Opens the file and starts the writer.
    pub fn open(path: &Path) -> io::Result<Audit> {
        let mut chain = Chain::open(path)?;
        let (jobs, mut queue) = mpsc::channel::<Job>(MAX_JOBS);
        tokio::spawn(async move {
            while let Some((record, done)) = queue.recv().await {
                let _ = done.send(chain.append(record, now()));
            }
        });
        Ok(Audit { jobs })
    }

    /// Returns when the entry is with the kernel.
    pub async fn write(&self, record: Record) -> io::Result<u64> {
        let gone = || io::Error::other("the audit writer is gone");
        let (done, written) = oneshot::channel();
        self.jobs.send((record, done)).await.map_err(|_| gone())?;
        written.await.map_err(|_| gone())?
    }
}

/// To the microsecond, so that the text in the file reads back as the same value.
fn now() -> DateTime<Utc> {
    let now = Utc::now();
    now.to_rfc3339_opts(SecondsFormat::Micros, true)
        .parse()
        .unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chain_of(count: usize) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        for index in 0..count {
            let mut chain = Chain::open(&path).unwrap();
            chain
                .append(
                    Record::verdict("a", "Bash", &json!({"command": format!("echo {index}")})),
                    now(),
                )
                .unwrap();
        }
        std::fs::read_to_string(&path).unwrap()
    }

    #[test]
    fn a_chain_goes_on_across_openings() {
        assert_eq!(verify(&chain_of(5)), Ok(5));
    }

    #[test]
    fn a_changed_missing_or_swapped_line_is_named() {
        let text = chain_of(4);
        let lines: Vec<&str> = text.lines().collect();
        let changed = text.replace("echo 1", "echo 9");
        assert_eq!(verify(&changed).unwrap_err().line, 2);
        let missing = [lines[0], lines[2], lines[3]].join("\n");
        assert_eq!(verify(&missing).unwrap_err().line, 2);
        let swapped = [lines[0], lines[2], lines[1], lines[3]].join("\n");
        assert_eq!(verify(&swapped).unwrap_err().line, 2);
    }

    #[test]
    fn secrets_are_masked_and_the_whole_is_hashed() {
        let input = json!({"command": "curl -H 'Authorization: Bearer abcdefgh12345'"});
        let record = Record::verdict("a", "Bash", &input);
        assert!(!record.input.to_string().contains("abcdefgh12345"));
        assert_eq!(
            record.input_hash,
            Some(hash_of(input.to_string().as_bytes()))
        );
    }
}
