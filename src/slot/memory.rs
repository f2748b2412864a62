//! What a slot remembers across restarts of its program and of the daemon.

use super::answer::TurnPlace;
use super::entered::KeptTurn;
use super::removed::Launched;
use crate::core::claude::reading::State;
use crate::core::machine::{DesiredState, OwnText, Past};
use crate::os::files;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Conversations that a slot remembers for `history`; older ones are still in Claude Code's own files.
const MAX_SESSIONS: usize = 32;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Memory {
    /// The conversations, the present one last.
    #[serde(default)]
    pub sessions: Vec<KeptSession>,
    /// The process whose gate was heard.
    #[serde(default)]
    pub gated: Option<u32>,
    /// The process whose screens were never rehearsed.
    #[serde(default)]
    pub unrehearsed: Option<u32>,
    /// The conversation that the next start goes on with, in place of the present one.
    #[serde(default)]
    pub adopted: Option<Uuid>,
    /// The size that its terminal gets back when nobody is attached any more.
    #[serde(default)]
    pub own_size: Option<(u16, u16)>,
    /// Up to where an agent has read all output of a session, in microseconds of recorded time.
    #[serde(default)]
    pub read: Option<u64>,
    /// The message that was typed last, so that it is known as our own if it was never entered.
    #[serde(default)]
    pub draft: Option<KeptDraft>,
    /// The message whose Enter was pressed last, until the end of its turn is told.
    #[serde(default)]
    pub turn: Option<KeptTurn>,
    #[serde(default)]
    pub past: Past,
    /// Whether it was to run when it was last heard of; `None` after an end in order.
    #[serde(default)]
    pub standing: Option<DesiredState>,
    /// The state that it was last in.
    #[serde(default)]
    pub state: Option<StateSince>,
    /// When the usage limit is lifted for which messages wait.
    #[serde(default)]
    pub held_until: Option<DateTime<Utc>>,
    /// What its program was started with, for a daemon that finds it when the slot has left the config.
    #[serde(default)]
    pub launched: Option<Launched>,
    /// The settings file that the program was started with, which it may read again. It is a file of its own.
    #[serde(skip)]
    pub settings: Option<String>,
    /// What a newer missiond wrote is kept.
    #[serde(flatten)]
    pub unknown: Map<String, Value>,
}

/// What missiond has typed, and the numbers of the inputs that have typed and cleared it. The shim knows which of them it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptDraft {
    pub own: OwnText,
    pasted: u64,
    cleared: u64,
}

impl KeptDraft {
    /// The input `number` types it, or clears it.
    pub fn by_input(own: OwnText, number: u64, last: Option<KeptDraft>) -> KeptDraft {
        let (pasted, cleared) = match own.is_cleared() {
            true => (last.map_or(0, |last| last.pasted), number),
            false => (number, 0),
        };
        KeptDraft {
            own,
            pasted,
            cleared,
        }
    }

    /// What is known of it by now.
    pub fn following(own: OwnText, last: Option<KeptDraft>) -> KeptDraft {
        let (pasted, cleared) = last.map_or((0, 0), |last| (last.pasted, last.cleared));
        KeptDraft {
            own,
            pasted,
            cleared,
        }
    }

    /// What of it reached a program whose shim has all inputs up to this number, and no other.
    pub fn reached(self, last_input: u64) -> Option<OwnText> {
        match (self.pasted <= last_input, self.cleared <= last_input) {
            (false, _) => self.own.never_pasted(),
            (true, false) => Some(self.own.never_cleared()),
            (true, true) => Some(self.own),
        }
    }
}

/// A state, and since when a slot is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateSince {
    pub state: State,
    pub since: DateTime<Utc>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptSession {
    pub id: Uuid,
    pub transcript: Option<PathBuf>,
    /// Whether a message was ever taken in it: then it has a transcript.
    #[serde(default)]
    pub begun: bool,
}

/// The transcripts of the conversations that a slot remembers, by its file in a daemon's state directory, oldest first. The file is
/// only looked at: the daemon may be writing it.
pub fn transcripts_of(state: &Path, slot: &str) -> Vec<PathBuf> {
    let sessions = conversations_of(state, slot).into_iter();
    sessions.filter_map(|session| session.transcript).collect()
}

/// Whether the state directory of a daemon has conversations of a slot of this name.
pub fn has_conversations(state: &Path, slot: &str) -> bool {
    !conversations_of(state, slot).is_empty()
}

fn conversations_of(state: &Path, slot: &str) -> Vec<KeptSession> {
    let text = files::read(&memory_file(state, slot)).unwrap_or_default();
    let memory: Memory = serde_json::from_slice(&text).unwrap_or_default();
    memory.sessions
}

/// What a slot remembers, in the state directory of its daemon.
pub fn memory_file(state: &Path, slot: &str) -> PathBuf {
    state.join(format!("{slot}.json"))
}

impl Memory {
    /// Reads the file. One that can't be read is set aside, and its reason comes back beside an empty memory.
    pub fn load(path: &Path) -> (Memory, Option<String>) {
        let text = match files::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return (Memory::default(), None);
            }
            Err(error) => return (Memory::default(), Some(error.to_string())),
        };
        match serde_json::from_slice(&text) {
            Ok(memory) => (memory, None),
            Err(error) => {
                let aside = path.with_extension("broken");
                let _ = std::fs::rename(path, &aside);
                let why = format!(
                    "{} can't be read ({error}); it is kept as {}",
                    path.display(),
                    aside.display()
                );
                (Memory::default(), Some(why))
            }
        }
    }

    pub fn save(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        files::save(path, &text)
    }

    /// Where in the transcript the turn of the last message begins.
    pub fn turn_place(&self) -> Option<TurnPlace> {
        self.turn.as_ref().and_then(KeptTurn::place)
    }

    /// Whether this was ever one of its conversations.
    pub fn knows(&self, id: Uuid) -> bool {
        self.sessions.iter().any(|session| session.id == id)
    }

    pub fn session(&self) -> Option<&KeptSession> {
        self.sessions.last()
    }

    /// A message was taken in the present conversation; whether it was the first.
    pub fn begin(&mut self) -> bool {
        let last = self.sessions.last_mut();
        last.is_some_and(|session| !std::mem::replace(&mut session.begun, true))
    }

    pub fn has_begun(&self, id: Uuid) -> bool {
        let mut known = self.sessions.iter();
        known.any(|session| session.id == id && session.begun)
    }

    /// Makes this the present conversation; whether anything changed.
    pub fn enter(&mut self, id: Uuid, transcript: Option<PathBuf>) -> bool {
        match self.sessions.last_mut() {
            Some(last) if last.id == id => {
                let changed = transcript.is_some() && last.transcript != transcript;
                last.transcript = transcript.or(last.transcript.take());
                changed
            }
            _ => {
                self.sessions.retain(|session| session.id != id);
                self.sessions.push(KeptSession {
                    id,
                    transcript,
                    begun: false,
                });
                if self.sessions.len() > MAX_SESSIONS {
                    self.sessions.remove(0);
                }
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_with_what_it_does_not_know() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        std::fs::write(&path, r#"{"sessions":[],"mood":"good"}"#).unwrap();
        let (mut memory, fault) = Memory::load(&path);
        assert_eq!(fault, None);
        let id = Uuid::new_v4();
        assert!(memory.enter(id, None));
        assert!(memory.enter(id, Some("/t.jsonl".into())));
        assert!(!memory.enter(id, None));
        memory.save(&path).unwrap();
        let (again, _) = Memory::load(&path);
        assert_eq!(
            again.session().map(|s| (s.id, s.transcript.clone())),
            Some((id, Some("/t.jsonl".into())))
        );
        assert_eq!(again.unknown["mood"], "good");
    }

    #[test]
    fn garbage_is_set_aside_and_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        std::fs::write(&path, "{\"sess").unwrap();
        let (memory, fault) = Memory::load(&path);
        assert_eq!(memory, Memory::default());
        assert!(fault.unwrap().contains("a.broken"));
        assert!(dir.path().join("a.broken").exists());
    }
}
