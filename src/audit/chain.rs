//! The chain in the file: each entry holds the hash of the one before, so that a changed, missing or swapped
//! line shows.

use super::{Entry, Record, hash_of};
use crate::files;
use chrono::{DateTime, Utc};
use serde::Serialize;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;
use std::str::FromStr;

/// Where a chain stands: its last entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Head {
    /// 0 where there is no entry yet.
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

/// A fault in the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("line {line}: {fault}")]
pub struct Broken {
    pub line: usize,
    pub fault: String,
}

/// A chain in which nothing is wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    pub head: Head,
    /// Of the heads that were asked about, those that stand in it.
    pub found: Vec<Head>,
    /// The last line has no end: it was being written, or a crash cut it off. It counts for nothing.
    pub is_torn: bool,
}

/// Checks a whole audit file. `heads` are what is known of it from elsewhere: each must stand in it.
pub fn verify(input: impl BufRead, heads: &[Head]) -> io::Result<Result<Verified, Broken>> {
    let mut verified = Verified::default();
    for (index, line) in lines(input).enumerate() {
        let Line { text, is_torn } = line?;
        if is_torn {
            verified.is_torn = true;
            break;
        }
        let next = match follows(&text, &verified.head) {
            Ok(next) => next,
            Err(fault) => {
                let line = index + 1;
                return Ok(Err(Broken { line, fault }));
            }
        };
        verified.head = next;
        verified
            .found
            .extend(heads.iter().filter(|head| **head == verified.head).cloned());
    }
    Ok(
        match heads.iter().find(|head| !verified.found.contains(head)) {
            None => Ok(verified),
            Some(head) => Err(Broken {
                line: usize::try_from(head.seq).unwrap_or(usize::MAX),
                fault: format!(
                    "entry {} is not the one that was told: the file was rewritten or cut",
                    head.seq
                ),
            }),
        },
    )
}

/// The head after this line, or why it can't follow the one before.
fn follows(line: &str, before: &Head) -> Result<Head, String> {
    let entry: Entry = serde_json::from_str(line).map_err(|error| format!("no entry: {error}"))?;
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
    if hash_of_line(line).as_deref() != Some(entry.hash.as_str()) {
        return Err(format!("entry {} was changed", entry.seq));
    }
    Ok(Head {
        seq: entry.seq,
        hash: entry.hash,
    })
}

/// The hash of an entry's own text, as it stands there, with the last field emptied. The text and not the
/// value: what a newer missiond added counts too.
fn hash_of_line(line: &str) -> Option<String> {
    const FIELD: &str = r#""hash":""#;
    let end = line.rfind(FIELD)? + FIELD.len();
    Some(hash_of(format!("{}\"}}", &line[..end]).as_bytes()))
}

/// The longest line that is looked at: an entry with the longest input that a hook passes on, twice escaped.
const LONGEST_LINE: u64 = 32 << 20;

struct Line {
    text: String,
    is_torn: bool,
}

fn lines(mut input: impl BufRead) -> impl Iterator<Item = io::Result<Line>> {
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
                let text = String::from_utf8_lossy(&bytes).into_owned();
                Some(Ok(Line { text, is_torn }))
            }
            Err(error) => Some(Err(error)),
        }
    })
}

/// The entries of a file that can be read as such, whole lines only. Whether they are true is for [`verify`].
pub fn entries(input: impl BufRead) -> impl Iterator<Item = io::Result<Entry>> {
    lines(input).filter_map(|line| match line {
        Ok(line) if line.is_torn => None,
        Ok(line) => serde_json::from_str(&line.text).ok().map(Ok),
        Err(error) => Some(Err(error)),
    })
}

/// The one writer's file and where its chain stands.
#[derive(Debug)]
pub(super) struct Chain {
    pub file: File,
    pub head: Head,
}

impl Chain {
    pub fn open(path: &Path) -> io::Result<Chain> {
        let mut file = files::append(path)?;
        files::drop_torn_line(&mut file)?;
        let last = files::last_line(&mut file)?
            .map(|line| serde_json::from_str::<Entry>(&line))
            .transpose();
        let last = last
            .map_err(|error| io::Error::other(format!("the last entry can't be read: {error}")))?;
        let head = last.map_or_else(Head::default, |Entry { seq, hash, .. }| Head { seq, hash });
        Ok(Chain { file, head })
    }

    pub fn append(&mut self, record: Record, time: DateTime<Utc>) -> io::Result<u64> {
        let entry = Entry {
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
        self.write(&format!("{open}{hash}\"}}\n"))?;
        self.head = Head {
            seq: entry.seq,
            hash,
        };
        Ok(entry.seq)
    }

    /// A line that could not be written whole is taken back.
    fn write(&mut self, line: &str) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        let written = self.file.write_all(line.as_bytes());
        if written.is_err() {
            let _ = self.file.set_len(before);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn chain_of(count: usize) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit.jsonl");
        for index in 0..count {
            let input = json!({"command": format!("echo {index} \"hash\":\"no\"")});
            let mut chain = Chain::open(&path).unwrap();
            chain
                .append(Record::verdict("a", "Bash", &input), Utc::now())
                .unwrap();
        }
        std::fs::read_to_string(&path).unwrap()
    }

    fn verified(text: &str) -> Result<Verified, Broken> {
        verify(text.as_bytes(), &[]).unwrap()
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

    /// Whoever rewrites the whole file can make a good chain; what was told elsewhere gives him away.
    #[test]
    fn a_rewritten_or_cut_file_does_not_hold_the_head_that_was_told() {
        let text = chain_of(4);
        let told = verified(&text).unwrap().head;
        let with = |text: &str| verify(text.as_bytes(), std::slice::from_ref(&told)).unwrap();
        assert_eq!(with(&text).unwrap().found.len(), 1);
        let cut: String = text.split_inclusive('\n').take(3).collect();
        assert_eq!(verified(&cut).unwrap().head.seq, 3);
        assert_eq!(with(&cut).unwrap_err().line, 4);
        assert!(with(&chain_of(6)).is_err());
        assert_eq!(told.to_string().parse(), Ok(told));
        assert!("12".parse::<Head>().is_err());
    }

    #[test]
    fn a_torn_last_line_counts_for_nothing() {
        let text = chain_of(3);
        let torn = &text[..text.len() - 10];
        let verified = verified(torn).unwrap();
        assert_eq!((verified.head.seq, verified.is_torn), (2, true));
        assert_eq!(entries(torn.as_bytes()).count(), 2);
    }
}
