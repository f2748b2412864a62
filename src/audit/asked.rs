//! Tool calls in the audit: the calls that were decided on, and people's earlier answers to the same request.

use super::{AuditEntry, Record, RecordKind, hash_of};
use crate::core::machine::target_of;
use crate::core::policy::{Ask, Decision};
use crate::core::text::secrets;
use crate::os::files::{self, LinesFromEnd};
use chrono::{DateTime, Utc};
use serde_json::Value;
use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The maximum bytes of an entry that [`recent`] reads; a longer one is skipped.
const LONGEST_RECENT: u64 = 1 << 20;

/// Passes on the entries since a time, the newest first, until `each` has enough or about `budget` bytes are read.
/// Returns whether all of them were read.
pub fn recent(
    path: &Path,
    since: DateTime<Utc>,
    mut budget: usize,
    mut each: impl FnMut(AuditEntry) -> ControlFlow<()>,
) -> io::Result<bool> {
    for file in files::with_rotated(path)?.into_iter().rev() {
        for line in LinesFromEnd::new(file, LONGEST_RECENT)? {
            let Some(left) = budget.checked_sub(line.len()) else {
                return Ok(false);
            };
            budget = left;
            // `verify` reports a line that is not an entry.
            let Ok(entry) = serde_json::from_str::<AuditEntry>(&line) else {
                continue;
            };
            if entry.time < since {
                return Ok(true);
            }
            if each(entry).is_break() {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// A tool call that was decided on, and how often.
#[derive(Debug)]
pub struct AskedCall {
    pub slot: String,
    pub ask: Ask,
    pub count: usize,
    /// How often the answer was a yes or a no that had effect.
    pub answers: AnswerCounts,
    /// The last verdict on it; `last` has its time.
    pub decision: Decision,
    pub last: DateTime<Utc>,
    /// Whether a secret in it is masked: then the call differs from the one that was judged.
    pub is_masked: bool,
}

/// How often a call was allowed and denied.
#[derive(Debug, Default)]
pub struct AnswerCounts {
    pub allowed: usize,
    pub denied: usize,
}

impl AnswerCounts {
    /// Counts a verdict; `Ask` takes the one before it back, which had no effect.
    fn add(&mut self, verdict: Decision, before: Option<Decision>) {
        match (verdict, before) {
            (Decision::Allow, _) => self.allowed += 1,
            (Decision::Deny, _) => self.denied += 1,
            (Decision::Ask, Some(Decision::Allow)) => self.allowed = self.allowed.saturating_sub(1),
            (Decision::Ask, Some(Decision::Deny)) => self.denied = self.denied.saturating_sub(1),
            _ => {}
        }
    }
}

impl AskedCall {
    /// The call, in one line.
    pub fn shown(&self) -> String {
        match target_of(&self.ask.input) {
            Some(target) => format!("{}: {target}", self.ask.tool),
            None => self.ask.tool.clone(),
        }
    }
}

/// Distinct calls, in the order in which they were added first.
#[derive(Debug, Default)]
pub struct AskedCalls {
    calls: Vec<AskedCall>,
    places: HashMap<(String, String, String, Option<PathBuf>), usize>,
}

impl AskedCalls {
    pub fn calls(self) -> Vec<AskedCall> {
        self.calls
    }

    /// How many distinct calls there are.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds an entry. Entries that are not about a whole tool call do not count.
    pub fn add(&mut self, entry: AuditEntry) {
        let AuditEntry { time, record, .. } = entry;
        let is_masked = record.is_masked();
        let (RecordKind::Verdict, Some(tool), Some(decision), false) = (
            record.what,
            record.call.tool,
            record.verdict,
            record.call.partial,
        ) else {
            return;
        };
        // A dialog that is not a tool call has no input.
        if !record.call.input.is_object() {
            return;
        }
        let key = (
            record.slot.clone(),
            tool.clone(),
            record.call.input.to_string(),
            record.call.cwd.clone(),
        );
        let place = *self.places.entry(key).or_insert(self.calls.len());
        if let Some(known) = self.calls.get_mut(place) {
            known.count += 1;
            known.answers.add(decision, Some(known.decision));
            if time >= known.last {
                (known.decision, known.last) = (decision, time);
            }
            return;
        }
        let mut answers = AnswerCounts::default();
        answers.add(decision, None);
        self.calls.push(AskedCall {
            slot: record.slot,
            answers,
            ask: Ask {
                tool,
                input: record.call.input,
                cwd: record.call.cwd.unwrap_or_else(|| Path::new("/").to_owned()),
                at: record.call.at,
                complete: true,
            },
            count: 1,
            decision,
            last: time,
            is_masked,
        });
    }
}

/// People's answers to one request. Entries are added the newest first.
#[derive(Debug)]
pub struct EarlierAnswers {
    request: SameRequest,
    /// Slots whose last answer had no effect, as a later entry says.
    taken_back: Vec<String>,
    /// The newest first.
    kept: Vec<(DateTime<Utc>, Record)>,
    most: usize,
    count: usize,
}

impl EarlierAnswers {
    /// Keeps at most `most` answers to this request.
    pub fn new(ask: &Ask, most: usize) -> EarlierAnswers {
        EarlierAnswers {
            request: SameRequest::new(ask),
            taken_back: Vec::new(),
            kept: Vec::new(),
            most,
            count: 0,
        }
    }

    pub fn add(&mut self, entry: &AuditEntry) {
        let record = &entry.record;
        let by_person = record.what == RecordKind::Verdict && record.actor.by == "person";
        if !by_person || !self.request.is_of(record) {
            return;
        }
        if record.verdict == Some(Decision::Ask) {
            self.taken_back.push(record.slot.clone());
        } else if let Some(at) = self.taken_back.iter().position(|slot| *slot == record.slot) {
            self.taken_back.remove(at);
        } else {
            self.count += 1;
            if self.kept.len() < self.most {
                self.kept.push((entry.time, record.clone()));
            }
        }
    }

    /// The number of answers, and the newest of them, the newest first.
    pub fn found(self) -> (usize, impl Iterator<Item = (DateTime<Utc>, Record)>) {
        (self.count, self.kept.into_iter())
    }
}

/// A field of a tool's input in which the model describes the call. Two calls that differ only in this field are the
/// same.
const DESCRIPTION: &str = "description";

/// What makes two requests the same: the tool, and the input without the model's description of it. Secrets are masked
/// in the audit, so a masked input counts as the same only if its hash is.
#[derive(Debug)]
struct SameRequest {
    tool: String,
    hash: String,
    /// `None` if it contains a secret.
    input: Option<Value>,
}

impl SameRequest {
    fn new(ask: &Ask) -> SameRequest {
        let is_plain = secrets::mask_input(&ask.input) == ask.input;
        SameRequest {
            tool: ask.tool.clone(),
            hash: hash_of(ask.input.to_string().as_bytes()),
            input: is_plain.then(|| without_description(&ask.input)),
        }
    }

    fn is_of(&self, record: &Record) -> bool {
        if record.call.tool.as_ref() != Some(&self.tool) || !record.call.input.is_object() {
            return false;
        }
        let same_hash = record.call.input_hash.as_ref() == Some(&self.hash);
        let same_input = || {
            let input = without_description(&record.call.input);
            self.input.as_ref() == Some(&input) && !record.is_masked()
        };
        same_hash || same_input()
    }
}

fn without_description(input: &Value) -> Value {
    let mut input = input.clone();
    if let Some(fields) = input.as_object_mut() {
        fields.remove(DESCRIPTION);
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::model::Person;
    use serde_json::json;

    fn entry(seq: u64, record: Record) -> AuditEntry {
        let time = DateTime::from_timestamp(1_000 + seq as i64, 0).unwrap();
        AuditEntry {
            seq,
            time,
            record,
            prev: String::new(),
            hash: String::new(),
        }
    }

    fn by_person(slot: &str, input: &Value, verdict: Decision, why: &str) -> Record {
        let person = Person {
            uid: 7,
            pid: None,
            via: "web".to_owned(),
        };
        Record {
            verdict: Some(verdict),
            why: why.to_owned(),
            ..Record::verdict(slot, "Bash", input).by(&person)
        }
    }

    #[test]
    fn only_people_s_answers_to_the_same_request_count() {
        use Decision::{Allow, Ask as Asks, Deny};
        let same = json!({"command": "make", "description": "Build it"});
        let other_words = json!({"command": "make", "description": "Run make"});
        let other = json!({"command": "make install"});
        let secret = json!({"command": "curl -H 'Authorization: Bearer abcdefgh12345'"});
        let other_secret = json!({"command": "curl -H 'Authorization: Bearer zyxwvuts98765'"});
        // The newest first.
        let records = [
            by_person("a", &same, Asks, "not answered: the dialog went away"),
            by_person("b", &other_words, Deny, "no"),
            by_person("a", &same, Allow, "taken back"),
            by_person("a", &same, Allow, "yes"),
            by_person("a", &other, Allow, "another"),
            Record::verdict("a", "Bash", &same),
            by_person("a", &secret, Allow, "a secret"),
        ];
        let entries: Vec<AuditEntry> = (0..)
            .zip(records)
            .map(|(at, one)| entry(9 - at, one))
            .collect();
        let found = |input: &Value, most| {
            let mut answers = EarlierAnswers::new(&Ask::whole("Bash", input.clone(), "/"), most);
            entries.iter().for_each(|entry| answers.add(entry));
            let (count, kept) = answers.found();
            let kept: Vec<String> = kept.map(|(_, record)| record.why).collect();
            (count, kept)
        };
        assert_eq!(
            found(&same, 9),
            (2, vec!["no".to_owned(), "yes".to_owned()])
        );
        assert_eq!(found(&same, 1), (2, vec!["no".to_owned()]));
        assert_eq!(found(&secret, 9), (1, vec!["a secret".to_owned()]));
        assert_eq!(found(&other_secret, 9), (0, Vec::new()));
    }

    #[test]
    fn the_audit_is_read_back_to_a_time_and_no_further_than_the_budget() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(super::super::FILE);
        let line = |seq| {
            let text = serde_json::to_string(&entry(seq, Record::key("a", "1", ""))).unwrap();
            text + "\n"
        };
        std::fs::write(files::rotated(&path, 1), line(1) + &line(2)).unwrap();
        std::fs::write(&path, line(3) + "no entry\n" + &line(4)).unwrap();
        let read = |since: i64, budget| {
            let mut seen = Vec::new();
            let since = DateTime::from_timestamp(1_000_i64 + since, 0).unwrap();
            let whole = recent(&path, since, budget, |entry| {
                seen.push(entry.seq);
                ControlFlow::Continue(())
            })
            .unwrap();
            (whole, seen)
        };
        assert_eq!(read(0, 1 << 20), (true, vec![4, 3, 2, 1]));
        assert_eq!(read(2, 1 << 20), (true, vec![4, 3, 2]));
        let two = 2 * line(4).len() + 20;
        assert_eq!(read(0, two), (false, vec![4, 3]));
    }
}
