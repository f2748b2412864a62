//! The conversation of a slot, read from the transcripts that Claude Code keeps.
//!
//! A transcript may have hundreds of megabytes and may lie on a file system that does not answer. So the slot's task
//! only names the transcripts; a thread of its own reads them, from the end where only the last entries are wanted.

use super::Slot;
use super::handle::Answer;
use super::kind::ProgramKind;
use crate::core::claude::transcript;
use crate::core::model::{Fault, HistoryAnswer, Matches, RpcError, Turn};
use crate::core::text::excerpt;
use crate::core::text::secrets;
use crate::launch;
use crate::os::blocking;
use crate::os::files::{self, LinesFromEnd};
use regex::Regex;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Lines of scrollback that a search reads: all that the terminal keeps.
const ALL_LINES: usize = 10_000;

/// The entries of one answer, as JSON: the answer must fit into a line of the control socket ([`crate::core::model::MAX_LINE`]).
const MAX_ANSWER: usize = 7 << 20;

/// Characters of one entry's text; the middle of a longer one is left out. As JSON a character has at most six bytes, so
/// that two entries always fit into an answer.
const MAX_TEXT: usize = 512 << 10;

/// Bytes of a line in a transcript. A longer one (a tool's result with pictures in it) is skipped.
const MAX_ENTRY: u64 = 16 << 20;

/// Which transcripts hold a slot's conversation, oldest first.
#[derive(Debug, Clone)]
struct Transcripts {
    env: Vec<(String, String)>,
    cwd: PathBuf,
    /// The id of each session, with the path that a hook told for it.
    sessions: Vec<(Uuid, Option<PathBuf>)>,
}

impl Transcripts {
    fn files(&self) -> impl DoubleEndedIterator<Item = File> {
        self.sessions.iter().filter_map(|(id, told)| {
            let path = told
                .clone()
                .or_else(|| launch::transcript_path(&self.env, &self.cwd, *id));
            files::open(&path?).ok()
        })
    }

    /// The last entries, at most `last` of them and [`MAX_ANSWER`] bytes. Nothing more is read when the client has gone.
    fn last_turns(&self, last: Option<usize>, gone: &CancellationToken) -> HistoryAnswer {
        let mut newest_first = Newest::new(last);
        for file in self.files().rev() {
            let Ok(lines) = LinesFromEnd::new(file, MAX_ENTRY) else {
                continue;
            };
            for line in lines.take_while(|_| !gone.is_cancelled()) {
                for turn in transcript::turns_of_line(&line).into_iter().rev() {
                    if !newest_first.take(masked(turn)) {
                        return newest_first.answer();
                    }
                }
            }
        }
        newest_first.answer()
    }

    /// The lines of the conversation, oldest first.
    fn lines(&self) -> impl Iterator<Item = String> {
        self.files()
            .flat_map(|file| files::lines(BufReader::new(file), MAX_ENTRY))
            .flat_map(|line| transcript::turns_of_line(&line))
            .flat_map(|turn| {
                let text = secrets::mask(&turn.text);
                text.lines().map(str::to_owned).collect::<Vec<_>>()
            })
    }
}

/// The newest entries of a conversation, collected from the newest to the oldest.
struct Newest {
    turns: Vec<Turn>,
    bytes: usize,
    most: usize,
    left_out: bool,
}

impl Newest {
    fn new(last: Option<usize>) -> Newest {
        Newest {
            turns: Vec::new(),
            bytes: 0,
            most: last.unwrap_or(usize::MAX),
            left_out: false,
        }
    }

    /// Takes the next older entry. False once there is no room for it.
    fn take(&mut self, turn: Turn) -> bool {
        if self.turns.len() >= self.most {
            return false;
        }
        self.bytes = self.bytes.saturating_add(size(&turn));
        if self.bytes > MAX_ANSWER {
            self.left_out = true;
            return false;
        }
        self.turns.push(turn);
        true
    }

    fn answer(mut self) -> HistoryAnswer {
        self.turns.reverse();
        HistoryAnswer {
            turns: self.turns,
            left_out: self.left_out,
        }
    }
}

/// The bytes of an entry as JSON.
fn size(turn: &Turn) -> usize {
    serde_json::to_vec(turn).map_or(MAX_ANSWER, |json| json.len())
}

/// The entry without secrets, and no longer than [`MAX_TEXT`].
fn masked(mut turn: Turn) -> Turn {
    turn.text = excerpt::ends(&secrets::mask(&turn.text), MAX_TEXT);
    turn.input = turn.input.map(|input| {
        let input = secrets::mask_json(&input);
        let json = input.to_string();
        match json.len() > MAX_TEXT {
            true => serde_json::json!({ "excerpt": excerpt::ends(&json, MAX_TEXT) }),
            false => input,
        }
    });
    turn
}

impl<K: ProgramKind> Slot<K> {
    /// Answers with the conversation. Claude Code writes the end of a turn into the transcript a moment after it has
    /// drawn it: a client that asks in between waits for it.
    pub(super) fn tell_history(&mut self, last: Option<usize>, reply: Answer<HistoryAnswer>) {
        let now = match self.machine.awaits_answer() {
            true => self.clients.hold((last, reply)),
            false => Some((last, reply)),
        };
        if let Some((last, reply)) = now {
            self.read_history(last, reply);
        }
    }

    pub(super) fn tell_readers(&mut self) {
        if self.machine.awaits_answer() {
            return;
        }
        for (last, reply) in self.clients.take_readers() {
            self.read_history(last, reply);
        }
    }

    fn read_history(&self, last: Option<usize>, reply: Answer<HistoryAnswer>) {
        let transcripts = self.transcripts();
        answer_from_thread(reply, move |gone| transcripts.last_turns(last, gone));
    }

    /// Answers with the lines of the screen, its scrollback and the conversation that match.
    pub(super) fn search(&self, pattern: Regex, limit: usize, reply: Answer<Matches>) {
        let screen = self.screen.terminal().lines(ALL_LINES);
        let transcripts = self.transcripts();
        answer_from_thread(reply, move |gone| {
            let mut found = Matches::new(limit);
            // Masked first: a pattern must not find out what it is not shown.
            found.search("screen", secrets::mask_rows(&screen).iter(), &pattern);
            let history = transcripts.lines().take_while(|_| !gone.is_cancelled());
            found.search("history", history, &pattern);
            found
        });
    }

    fn transcripts(&self) -> Transcripts {
        let sessions = self.memory.sessions.iter();
        Transcripts {
            env: self.slot_environment(),
            cwd: self.program.settings().cwd.clone(),
            sessions: sessions
                .map(|session| (session.id, session.transcript.clone()))
                .collect(),
        }
    }
}

/// Does the work on a thread where it may block, and answers with its result. The work sees when the client has gone, who
/// needs no answer.
fn answer_from_thread<T: Send + 'static>(
    mut reply: Answer<T>,
    work: impl FnOnce(&CancellationToken) -> T + Send + 'static,
) {
    tokio::spawn(async move {
        let gone = CancellationToken::new();
        let seen = gone.clone();
        let done = tokio::select! {
            done = blocking::run(move || work(&seen)) => done,
            () = reply.closed() => return gone.cancel(),
        };
        let answer = done.map_err(|error| RpcError::new(Fault::Failed, error.to_string()));
        // It may have gone in this moment.
        let _ = reply.send(answer);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::io::Write;

    /// A transcript with a message for each of `texts`.
    fn transcripts_of(texts: impl IntoIterator<Item = String>) -> (tempfile::TempDir, Transcripts) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.jsonl");
        let mut file = std::io::BufWriter::new(File::create(&path).unwrap());
        for text in texts {
            let entry = json!({"type": "user", "message": {"role": "user", "content": text}});
            writeln!(file, "{entry}").unwrap();
        }
        file.flush().unwrap();
        let transcripts = Transcripts {
            env: Vec::new(),
            cwd: "/".into(),
            sessions: vec![(Uuid::nil(), Some(path))],
        };
        (directory, transcripts)
    }

    fn whole(transcripts: &Transcripts, last: Option<usize>) -> HistoryAnswer {
        transcripts.last_turns(last, &CancellationToken::new())
    }

    fn texts(answer: &HistoryAnswer) -> Vec<&str> {
        answer.turns.iter().map(|turn| turn.text.as_str()).collect()
    }

    #[test]
    fn the_last_entries_are_those_of_the_newest_transcript_first() {
        let (_old, mut all) = transcripts_of(["one", "two"].map(str::to_owned));
        let (_new, newer) = transcripts_of(["three", "four"].map(str::to_owned));
        all.sessions.extend(newer.sessions);
        assert_eq!(texts(&whole(&all, Some(3))), ["two", "three", "four"]);
        let every = whole(&all, None);
        assert_eq!(texts(&every), ["one", "two", "three", "four"]);
        assert!(!every.left_out);
        assert!(!whole(&all, Some(0)).left_out);
    }

    #[test]
    fn an_answer_fits_into_a_line_and_says_what_it_leaves_out() {
        // Each of these characters has six bytes in JSON.
        let large = "\u{1}".repeat(2 * MAX_TEXT);
        let (_directory, transcripts) = transcripts_of(std::iter::repeat_n(large, 8));
        let answer = whole(&transcripts, None);
        assert!(answer.left_out && answer.turns.len() >= 2);
        let json = serde_json::to_vec(&answer).unwrap();
        assert!(json.len() < crate::core::model::MAX_LINE - (64 << 10));
        assert!(answer.turns[0].text.contains("were left out"));
    }

    #[test]
    fn secrets_are_masked_before_a_pattern_sees_them() {
        let key = format!("sk-ant-api03-{}", "a1B2".repeat(8));
        let (_directory, transcripts) = transcripts_of([format!("take {key}, please\nand go")]);
        assert!(!whole(&transcripts, None).turns[0].text.contains(&key));
        let found = |pattern: &str| {
            let mut found = Matches::new(9);
            let pattern = Regex::new(pattern).unwrap();
            found.search("history", transcripts.lines(), &pattern);
            found.answer().unwrap()
        };
        assert!(found("a1B2").is_empty());
        assert_eq!(found("and go")[0].line, 2);
    }
}
