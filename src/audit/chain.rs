//! The hash chain in the file: each entry holds the hash of the previous one, so that a changed, missing or swapped
//! line is detected.

use super::{AuditEntry, AuditGap, Record, RecordKind, hash_of};
use crate::os::files::{self, LinesFromEnd};
use crate::os::log_file::{Cap, LogFile};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::str::FromStr;

/// How much is kept: about ten thousand entries per file, and years of heavy use in all files.
pub const KEPT: Cap = Cap {
    bytes: 16 << 20,
    files: 16,
};

/// The last entry of a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// 0 if there is no entry yet.
    pub seq: u64,
    pub hash: String,
}

impl fmt::Display for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

impl FromStr for Head {
    type Err = String;

    fn from_str(text: &str) -> Result<Head, String> {
        let wrong = || "a head is written as NUMBER:HASH, as the system log has it".to_owned();
        let (seq, hash) = text.split_once(':').ok_or_else(wrong)?;
        Ok(Head {
            seq: seq.parse().map_err(|_| wrong())?,
            hash: hash.to_owned(),
        })
    }
}

/// An error in the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct BrokenChain {
    /// The number of rotations since the file was current; 0 is the current file.
    pub rotations: usize,
    pub line: usize,
    pub fault: String,
}

/// A chain without errors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// The number of the oldest entry that is kept.
    pub first: Option<u64>,
    pub head: Head,
    /// The given heads that are in the chain.
    pub found: Vec<Head>,
    /// The periods in which the audit could not be written.
    pub holes: Vec<AuditGap>,
    /// The last line is incomplete: it was being written, or a crash cut it off. It is ignored.
    pub is_torn: bool,
}

/// Verifies the audit file at `path` and its rotated files.
pub fn verify_files(path: &Path, heads: &[Head]) -> io::Result<Result<Verified, BrokenChain>> {
    let files = files::with_rotated(path)?;
    verify(files.into_iter().map(BufReader::new).collect(), heads)
}

/// Verifies a whole audit, the oldest file first. `heads` are known from other sources: each one that is not older than
/// the kept entries must be in the chain.
pub fn verify(
    inputs: Vec<impl BufRead>,
    heads: &[Head],
) -> io::Result<Result<Verified, BrokenChain>> {
    let files = inputs.len();
    let mut check = ChainCheck::new(heads, files);
    for (at, input) in inputs.into_iter().enumerate() {
        let rotations = files - 1 - at;
        for (index, line) in lines(input).enumerate() {
            if let Err(fault) = check.line(line?, rotations == 0) {
                let line = index + 1;
                return Ok(Err(BrokenChain {
                    rotations,
                    line,
                    fault,
                }));
            }
        }
    }
    Ok(check.end())
}

/// The state of the verification.
struct ChainCheck<'h> {
    heads: &'h [Head],
    /// Whether entries may be missing before the first: rotation drops files beyond the limit.
    may_begin_late: bool,
    verified: Verified,
}

impl ChainCheck<'_> {
    fn new(heads: &[Head], files: usize) -> ChainCheck<'_> {
        ChainCheck {
            heads,
            may_begin_late: files >= KEPT.files,
            verified: Verified::default(),
        }
    }

    fn line(
        &mut self,
        ChainLine { text, is_torn }: ChainLine,
        in_present_file: bool,
    ) -> Result<(), String> {
        if is_torn && in_present_file {
            self.verified.is_torn = true;
            return Ok(());
        }
        let entry = entry_of(&text)?;
        if self.verified.first.is_none() {
            self.begin(&entry)?;
        }
        follows(&entry, &self.verified.head)?;
        if entry.record.what == RecordKind::Hole {
            let gap = serde_json::from_value(entry.record.call.input);
            let gap = gap.map_err(|error| format!("no hole: {error}"))?;
            self.verified.holes.push(gap);
        }
        self.verified.head = Head {
            seq: entry.seq,
            hash: entry.hash,
        };
        let is_head = |head: &&Head| **head == self.verified.head;
        let found = self.heads.iter().filter(is_head).cloned();
        self.verified.found.extend(found);
        Ok(())
    }

    /// The first kept entry defines its own predecessor.
    fn begin(&mut self, first: &AuditEntry) -> Result<(), String> {
        let seq = first.seq.saturating_sub(1);
        if seq > 0 && !self.may_begin_late {
            return Err(format!(
                "the entries before {} are missing: older files are dropped only where there are {}",
                first.seq, KEPT.files
            ));
        }
        self.verified.first = Some(first.seq);
        if seq > 0 {
            let hash = first.prev.clone();
            self.verified.head = Head { seq, hash };
        }
        Ok(())
    }

    fn end(self) -> Result<Verified, BrokenChain> {
        // The head of an empty chain has the number 0 and proves nothing.
        let first = self.verified.first.unwrap_or(1);
        let is_missing = |head: &&Head| head.seq >= first && !self.verified.found.contains(head);
        match self.heads.iter().find(is_missing) {
            None => Ok(self.verified),
            Some(head) => Err(BrokenChain {
                rotations: 0,
                line: usize::try_from(head.seq).unwrap_or(usize::MAX),
                fault: format!(
                    "entry {} is missing or is another one: the audit was cut or rewritten",
                    head.seq
                ),
            }),
        }
    }
}

/// Parses a line to its entry, and checks that it is unchanged.
fn entry_of(line: &str) -> Result<AuditEntry, String> {
    let entry: AuditEntry =
        serde_json::from_str(line).map_err(|error| format!("no entry: {error}"))?;
    match is_as_written(line, &entry.hash) {
        true => Ok(entry),
        false => Err(format!("entry {} was changed", entry.seq)),
    }
}

/// Checks that an entry can follow the previous one.
fn follows(entry: &AuditEntry, before: &Head) -> Result<(), String> {
    let wanted = before.seq + 1;
    if entry.seq != wanted {
        return Err(format!("entry {} stands where {wanted} belongs", entry.seq));
    }
    if entry.prev != before.hash {
        return Err(format!(
            "entry {} does not follow the one before it",
            entry.seq
        ));
    }
    Ok(())
}

/// Tells whether a line has the hash of its own text, with the last field emptied, and nothing after it. The text
/// counts, not the value: fields of a newer missiond count too, and so does a space.
fn is_as_written(line: &str, hash: &str) -> bool {
    let Some(open) = line.strip_suffix(&format!("{hash}\"}}")) else {
        return false;
    };
    open.ends_with(r#""hash":""#) && hash_of(format!("{open}\"}}").as_bytes()) == hash
}

/// The longest line that is read: an entry with the longest input of a hook, escaped twice.
const LONGEST_LINE: u64 = 32 << 20;

struct ChainLine {
    text: String,
    is_torn: bool,
}

fn lines(mut input: impl BufRead) -> impl Iterator<Item = io::Result<ChainLine>> {
    std::iter::from_fn(move || {
        let mut bytes = Vec::new();
        let read = input
            .by_ref()
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut bytes);
        match read {
            Ok(0) => None,
            Ok(_) => {
                let is_torn = bytes.pop_if(|last| *last == b'\n').is_none();
                // Invalid UTF-8 was not written by missiond, and must not pass as the text that was.
                let text = String::from_utf8(bytes).unwrap_or_default();
                Some(Ok(ChainLine { text, is_torn }))
            }
            Err(error) => Some(Err(error)),
        }
    })
}

/// The complete lines of a file that can be parsed. [`verify`] decides whether they are genuine.
pub fn entries(input: impl BufRead) -> impl Iterator<Item = io::Result<AuditEntry>> {
    lines(input).filter_map(|line| match line {
        Ok(line) if line.is_torn => None,
        Ok(line) => serde_json::from_str(&line.text).ok().map(Ok),
        Err(error) => Some(Err(error)),
    })
}

/// The writer's file and the head of its chain.
#[derive(Debug)]
pub(super) struct Chain {
    file: LogFile,
    pub head: Head,
}

impl Chain {
    /// Opens the chain. `kept` is the head known from another place. If the chain does not contain it, new entries
    /// continue from `kept`, so that the break stays visible.
    pub fn open(path: &Path, cap: Cap, kept: &Head) -> io::Result<Chain> {
        let mut present = files::append(path)?;
        files::drop_torn_line(&mut present)?;
        let before = || files::open(&files::rotated(path, 1)).ok();
        let head = match head_of(&mut present)? {
            Some(head) => head,
            // It was rotated, and nothing was written since.
            None => before()
                .map_or(Ok(None), |mut file| head_of(&mut file))?
                .unwrap_or_default(),
        };
        let head = match holds(path, kept, &head)? {
            true => head,
            false => kept.clone(),
        };
        let file = LogFile::new(path, cap);
        Ok(Chain { file, head })
    }

    pub fn append(&mut self, record: Record, time: DateTime<Utc>) -> io::Result<u64> {
        let entry = AuditEntry {
            seq: self.head.seq + 1,
            time,
            record,
            prev: self.head.hash.clone(),
            hash: String::new(),
        };
        let bare = serde_json::to_string(&entry).map_err(io::Error::other)?;
        let hash = hash_of(bare.as_bytes());
        let open = bare
            .strip_suffix("\"}")
            .ok_or_else(|| io::Error::other("the hash is not the last field"))?;
        self.file.append(&format!("{open}{hash}\"}}\n"))?;
        self.head = Head {
            seq: entry.seq,
            hash,
        };
        Ok(entry.seq)
    }
}

/// Tells whether an entry is in the files; the search begins at the end, where it is expected.
fn holds(path: &Path, wanted: &Head, head: &Head) -> io::Result<bool> {
    if wanted == head || wanted.seq == 0 {
        return Ok(true);
    }
    for file in files::with_rotated(path)?.into_iter().rev() {
        for line in LinesFromEnd::new(file, LONGEST_LINE)? {
            match serde_json::from_str::<AuditEntry>(&line) {
                Ok(entry) if entry.seq == wanted.seq => return Ok(entry.hash == wanted.hash),
                Ok(entry) if entry.seq < wanted.seq => return Ok(false),
                _ => {}
            }
        }
    }
    Ok(false)
}

/// The head of a file's chain; `None` if it has no entry.
fn head_of(file: &mut File) -> io::Result<Option<Head>> {
    let Some(line) = files::last_line(file)? else {
        return Ok(None);
    };
    let last = serde_json::from_str(&line)
        .map_err(|error| io::Error::other(format!("the last entry can't be read: {error}")))?;
    let AuditEntry { seq, hash, .. } = last;
    Ok(Some(Head { seq, hash }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn write(path: &Path, entries: std::ops::Range<usize>, cap: Cap) {
        for index in entries {
            let input = json!({"command": format!("echo {index} \"hash\":\"no\"")});
            let mut chain = Chain::open(path, cap, &Head::default()).unwrap();
            chain
                .append(Record::verdict("a", "Bash", &input), Utc::now())
                .unwrap();
        }
    }

    fn chain_of(count: usize) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        write(&path, 0..count, KEPT);
        std::fs::read_to_string(&path).unwrap()
    }

    fn verified(text: &str) -> Result<Verified, BrokenChain> {
        verify(vec![text.as_bytes()], &[]).unwrap()
    }

    #[test]
    fn a_chain_goes_on_across_openings() {
        assert_eq!(verified(&chain_of(5)).unwrap().head.seq, 5);
        assert_eq!(verified("").unwrap(), Verified::default());
    }

    #[test]
    fn a_changed_missing_swapped_or_foreign_line_is_named() {
        let text = chain_of(4);
        let lines: Vec<&str> = text.lines().collect();
        let cases = [
            text.replace("echo 1", "echo 9"),
            text.replacen("\"seq\":2", "\"seq\":2,\"more\":1", 1),
            text.replacen("\"seq\":2", " \"seq\":2", 1),
            [lines[0], lines[2], lines[3], ""].join("\n"),
            [lines[0], lines[2], lines[1], lines[3], ""].join("\n"),
            [lines[0], lines[0], lines[1], ""].join("\n"),
            [lines[0], "garbage", lines[1], ""].join("\n"),
            [lines[0], "", lines[1], ""].join("\n"),
        ];
        for case in cases {
            assert_eq!(verified(&case).unwrap_err().line, 2, "{case}");
        }
        assert_eq!(verified(&text[1..]).unwrap_err().line, 1);
    }

    #[test]
    fn no_byte_can_be_changed_or_added() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let replacement = "\u{fffd}";
        let record = Record::verdict("a", "Bash", &json!({ "command": replacement }));
        let mut chain = Chain::open(&path, KEPT, &Head::default()).unwrap();
        chain.append(record, Utc::now()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let line = text.trim_end().as_bytes();
        let found = |parts: &[&[u8]]| {
            let changed = [parts.concat().as_slice(), b"\n"].concat();
            verify(vec![changed.as_slice()], &[]).unwrap().is_err()
        };
        assert!(!found(&[line]));
        for at in 0..=line.len() {
            let (before, after) = line.split_at(at);
            for byte in *b" \t\r\0a0\xff" {
                assert!(found(&[before, &[byte], after]), "{at}: {byte} added");
                if after.first().is_some_and(|first| *first != byte) {
                    let changed = found(&[before, &[byte], &after[1..]]);
                    assert!(changed, "{at}: {byte} instead");
                }
            }
        }
        let at = text.find(replacement).unwrap();
        let rest = &line[at + replacement.len()..];
        assert!(found(&[&line[..at], b"\xff", rest]), "looks the same");
    }

    /// An attacker who rewrites the whole file can make a valid chain; the head in another place exposes that.
    #[test]
    fn a_rewritten_or_cut_file_does_not_hold_the_head_that_was_told() {
        let text = chain_of(4);
        let told = verified(&text).unwrap().head;
        let with = |text: &str| verify(vec![text.as_bytes()], std::slice::from_ref(&told)).unwrap();
        assert_eq!(with(&text).unwrap().found.len(), 1);
        let cut: String = text.split_inclusive('\n').take(3).collect();
        assert_eq!(verified(&cut).unwrap().head.seq, 3);
        assert_eq!(with(&cut).unwrap_err().line, 4);
        assert!(with(&chain_of(6)).is_err());
        assert_eq!(told.to_string().parse(), Ok(told));
        assert!("12".parse::<Head>().is_err());
        // The head of an empty chain is in every chain.
        for text in ["", text.as_str()] {
            let found = verify(vec![text.as_bytes()], &[Head::default()]).unwrap();
            assert!(found.is_ok(), "{found:?}");
        }
    }

    /// A daemon that continues after the end was cut, or the file was removed or rewritten, does not repair the chain.
    #[test]
    fn a_chain_that_lost_its_head_stays_broken() {
        let whole = chain_of(4);
        let line = |text: &str, count: usize| -> String {
            text.split_inclusive('\n').take(count).collect()
        };
        let kept = verified(&whole).unwrap().head;
        let cases = [
            (whole.clone(), true),
            (line(&whole, 3), false),
            (String::new(), false),
            (chain_of(4), false),
            (chain_of(6), false),
        ];
        for (text, is_good) in cases {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("audit.jsonl");
            std::fs::write(&path, &text).unwrap();
            for _ in 0..3 {
                let mut chain = Chain::open(&path, KEPT, &kept).unwrap();
                let record = Record::key("a", "1", "a test");
                chain.append(record, Utc::now()).unwrap();
            }
            let ok = verify_files(&path, &[]).unwrap().is_ok();
            assert_eq!(ok, is_good, "{text}");
        }
        // The head may lag behind: a daemon was killed between the entry and the head.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        std::fs::write(&path, &whole).unwrap();
        let earlier = verified(&line(&whole, 2)).unwrap().head;
        assert_eq!(Chain::open(&path, KEPT, &earlier).unwrap().head, kept);
    }

    #[test]
    fn a_torn_last_line_counts_for_nothing() {
        let text = chain_of(3);
        let torn = &text[..text.len() - 10];
        let verified = verified(torn).unwrap();
        assert_eq!((verified.head.seq, verified.is_torn), (2, true));
        assert_eq!(entries(torn.as_bytes()).count(), 2);
    }

    #[test]
    fn a_chain_goes_on_through_rotations() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let small = Cap {
            bytes: 1_500,
            ..KEPT
        };
        write(&path, 0..20, small);
        assert!(files::rotated(&path, 3).exists(), "it was rotated");
        let all = verify_files(&path, &[]).unwrap().unwrap();
        assert_eq!((all.first, all.head.seq), (Some(1), 20));
        // As after a crash between the rotation and the next entry.
        files::make_room(&path, KEPT.files).unwrap();
        std::fs::rename(&path, files::rotated(&path, 1)).unwrap();
        write(&path, 20..22, small);
        assert_eq!(verify_files(&path, &[]).unwrap().unwrap().head.seq, 22);

        let old = files::rotated(&path, 2);
        let text = std::fs::read_to_string(&old).unwrap();
        let mut changed: Vec<&str> = text.lines().collect();
        changed.remove(1);
        std::fs::write(&old, changed.join("\n") + "\n").unwrap();
        let broken = verify_files(&path, &[]).unwrap().unwrap_err();
        assert_eq!((broken.rotations, broken.line), (2, 2), "{broken}");
    }

    /// Only rotation drops the oldest entries, and then the number of files is at its limit.
    #[test]
    fn the_beginning_may_be_missing_only_where_rotation_has_dropped_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        let tiny = Cap { bytes: 1, ..KEPT };
        let told = |seq| {
            let whole = verify_files(&path, &[]).unwrap().unwrap();
            assert_eq!(whole.head.seq, seq);
            whole.head
        };
        write(&path, 0..3, tiny);
        let early = told(3);
        write(&path, 3..KEPT.files + 9, tiny);
        let late = told(KEPT.files as u64 + 9);
        let verified = verify_files(&path, &[early, late]).unwrap().unwrap();
        assert_eq!((verified.first, verified.found.len()), (Some(10), 1));
        std::fs::remove_file(files::rotated(&path, KEPT.files - 1)).unwrap();
        let broken = verify_files(&path, &[]).unwrap().unwrap_err();
        assert!(broken.fault.contains("before 11 are missing"), "{broken}");
    }
}
