//! A slot's own files: `<slot>.log` for people, `<slot>.events.jsonl` for programs. A failure to write is told
//! once, its end is told too, and neither stops the slot.

mod behind;
mod lines;

pub use behind::catch_up;
pub use lines::{log_lines, log_lines_of, log_summary};

use crate::core::claude::reading::State;
use crate::core::model::{Event, EventKind};
use crate::core::settings::Supervision;
use crate::events::{EventFile, FileNews, SharedEvent};
use crate::os::files;
use crate::os::log_file::{Cap, LogFile};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Where a slot's files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotPaths {
    pub log: PathBuf,
    pub events: PathBuf,
    pub recording: PathBuf,
}

impl SlotPaths {
    /// Slot names are checked when the config is loaded: they hold no path.
    pub fn new(logs: &Path, slot: &str) -> SlotPaths {
        SlotPaths {
            log: logs.join(format!("{slot}.log")),
            events: logs.join(format!("{slot}.events.jsonl")),
            recording: logs.join(format!("{slot}.cast")),
        }
    }

    pub fn all(&self) -> [PathBuf; 3] {
        [&self.log, &self.events, &self.recording].map(PathBuf::clone)
    }
}

/// What a slot knows of its files. Another thread writes them.
#[derive(Debug)]
pub struct Journal {
    files: Arc<JournalFiles>,
    told: Told,
}

#[derive(Debug)]
pub struct JournalFiles {
    shown: PathBuf,
    /// Whoever holds this may hang.
    open: Mutex<OpenFiles>,
    cap: Mutex<Cap>,
    /// Events that did not fit into the queue of the thread.
    missing: AtomicU64,
}

#[derive(Debug)]
struct OpenFiles {
    log: LogFile,
    events: LogFile,
    /// Events that could not be written since writing began to fail.
    lost: Option<u64>,
}

/// What whoever follows the events believes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    /// A program runs: no end of it was told.
    runs: bool,
    /// The dialog that is up.
    dialog: Option<String>,
}

/// How much is kept of a slot's logs.
pub fn cap_of(supervision: &Supervision) -> Cap {
    Cap {
        bytes: supervision.log_size,
        files: supervision.log_files.into(),
    }
}

impl Journal {
    /// `cap` holds for each of the two files.
    pub fn new(paths: &SlotPaths, cap: Cap) -> Journal {
        let open = OpenFiles {
            log: LogFile::new(&paths.log, cap),
            events: LogFile::new(&paths.events, cap),
            lost: None,
        };
        let files = JournalFiles {
            shown: paths.log.clone(),
            open: Mutex::new(open),
            cap: Mutex::new(cap),
            missing: AtomicU64::new(0),
        };
        Journal {
            files: Arc::new(files),
            told: Told::by(paths),
        }
    }

    /// What the thread writes to.
    pub fn files(&self) -> Arc<JournalFiles> {
        self.files.clone()
    }

    /// Whether no end was told of the last program that was told of.
    pub fn tells_of_a_program(&self) -> bool {
        self.told.runs
    }

    /// The dialog that is to be told as gone before this is told: the daemon that told of the dialog may have been killed.
    pub fn gone_before(&self, what: &EventKind) -> Option<String> {
        let ends = match what {
            EventKind::Exit { .. } => true,
            EventKind::State { to, .. } => !matches!(to, State::Starting | State::Confirming),
            EventKind::Dialog { dialog } => self.told.dialog.as_ref() != Some(&dialog.id),
            _ => false,
        };
        self.told.dialog.clone().filter(|_| ends)
    }

    pub fn set_cap(&mut self, cap: Cap) {
        *locked(&self.files.cap) = cap;
    }

    /// This is told.
    pub fn follow(&mut self, what: &EventKind) {
        self.told.follow(what);
    }
}

impl EventFile for JournalFiles {
    /// Writes the event to both files. There is news when writing begins to fail and when it works again.
    fn write(&self, event: &SharedEvent) -> Option<FileNews> {
        let cap = *locked(&self.cap);
        let mut open = locked(&self.open);
        open.log.set_cap(cap);
        open.events.set_cap(cap);
        let written = open.append(event);
        let missing = self.missing.swap(0, Ordering::Relaxed);
        let lost = open.lost.unwrap_or(0) + missing + u64::from(written.is_err());
        let lost = (lost > 0).then_some(lost);
        let lost_before = std::mem::replace(&mut open.lost, lost);
        match written {
            Ok(()) => {
                open.lost = None;
                let lost = lost?;
                Some(FileNews {
                    text: format!("the log goes on; {lost} events are missing from it"),
                    is_over: true,
                })
            }
            Err(error) if lost_before.is_none() => Some(FileNews {
                text: format!(
                    "the log can't be written ({}): {error}",
                    self.shown.display()
                ),
                is_over: false,
            }),
            Err(_) => None,
        }
    }

    fn miss(&self) {
        self.missing.fetch_add(1, Ordering::Relaxed);
    }
}

impl OpenFiles {
    fn append(&mut self, shared: &SharedEvent) -> io::Result<()> {
        self.events.append(&format!("{}\n", shared.json()))?;
        let lines = log_lines_of(&shared.event);
        lines.map_or(Ok(()), |lines| self.log.append(&lines))
    }
}

/// For a lock of which nobody panics halfway through a change.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Told {
    /// By the events that daemons before this one have written.
    fn by(paths: &SlotPaths) -> Told {
        let tail = read_tail(&paths.events).unwrap_or_default();
        let mut told = Told {
            // If the tail does not have its start, it has its end or none was told.
            runs: tail.len() as u64 >= MAX_TAIL,
            dialog: None,
        };
        let events = tail.lines().map(serde_json::from_str::<Event>);
        let events = events.filter_map(Result::ok);
        events.for_each(|event| told.follow(&event.what));
        told
    }

    fn follow(&mut self, what: &EventKind) {
        match what {
            EventKind::Spawned { .. } | EventKind::Adopted { .. } => self.runs = true,
            EventKind::Exit { .. } => *self = Told::default(),
            EventKind::Dialog { dialog } => self.dialog = Some(dialog.id.clone()),
            EventKind::DialogGone { id } if self.dialog.as_ref() == Some(id) => self.dialog = None,
            _ => {}
        }
    }
}

/// The most that is read of a log to find what was told last: what is written while an answer comes.
const MAX_TAIL: u64 = 1024 * 1024;

fn read_tail(file: &Path) -> io::Result<String> {
    let mut file = files::open(file)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_TAIL)))?;
    let mut bytes = Vec::new();
    file.take(MAX_TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::lines::INDENT;
    use super::*;
    use crate::core::policy::Decision;
    use crate::core::settings::Supervision;

    fn note(journal: &mut Journal, what: EventKind) {
        journal.follow(&what);
        let written = journal
            .files()
            .write(&SharedEvent::new(Event::sample(what)));
        assert!(written.is_none(), "{written:?}");
    }

    #[test]
    fn a_log_line_has_a_stamp_a_word_and_the_text() {
        let line = log_lines(&Event::sample(EventKind::State {
            from: State::Idle,
            to: State::Thinking,
        }));
        assert!(line.ends_with("state     idle -> thinking\n"), "{line}");
        assert_eq!(line.find("state"), Some(31));
    }

    #[test]
    fn what_is_left_to_claude_code_is_said_to_be() {
        let verdict = |answer: &str| {
            log_lines(&Event::sample(EventKind::Verdict {
                tool: "Bash".into(),
                target: "date +%F".into(),
                verdict: Decision::Ask,
                rule: None,
                why: "why".into(),
                by: "policy".into(),
                via: None,
                answer: Some(answer.into()),
                agent: None,
            }))
        };
        let (none, ask) = (verdict("none"), verdict("ask"));
        assert!(
            none.ends_with("verdict   none Bash: date +%F — why\n"),
            "{none}"
        );
        assert!(
            ask.ends_with("verdict   ask Bash: date +%F — why (by policy)\n"),
            "{ask}"
        );
    }

    #[test]
    fn further_lines_stand_under_the_first_and_nothing_controls_a_terminal() {
        let text = "one\n\x1b]0;title\x07two".to_owned();
        let lines = log_lines(&Event::sample(EventKind::Message { text }));
        let second = lines.lines().nth(1).unwrap();
        assert_eq!(second.find('\u{fffd}'), Some(INDENT));
        assert!(!lines.contains('\x1b'));
    }

    #[test]
    fn secrets_do_not_reach_either_file() {
        let dir = tempfile::tempdir().unwrap();
        let paths = SlotPaths::new(dir.path(), "a");
        let mut journal = Journal::new(&paths, cap_of(&Supervision::default()));
        let text = "use sk-ant-api03-abcdefghijkl".to_owned();
        note(&mut journal, EventKind::Message { text });
        for path in [&paths.log, &paths.events] {
            let written = std::fs::read_to_string(path).unwrap();
            assert!(
                written.contains("[masked]") && !written.contains("abcdefghijkl"),
                "{written}"
            );
        }
    }

    /// Whatever becomes of daemons, a follower is told that a dialog is gone before anything that can't be beside it.
    #[test]
    fn a_dialog_is_told_as_gone_also_by_the_next_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let paths = SlotPaths::new(dir.path(), "a");
        let journal = || Journal::new(&paths, cap_of(&Supervision::default()));
        let state = |to| EventKind::State {
            from: State::Confirming,
            to,
        };
        let dialog = |id: &str| {
            EventKind::Dialog {
            dialog: serde_json::from_value(serde_json::json!({
                "id": id, "kind": "permission", "tool": "Bash", "input": null, "text": "", "options": [],
                "selected": null, "complete": true
            }))
            .unwrap(),
        }
        };
        let exit = || EventKind::Exit {
            code: Some(1),
            signal: None,
            cause: String::new(),
            ended_at: None,
        };
        let note = |what: EventKind| note(&mut journal(), what);
        let gone = |what: EventKind| journal().gone_before(&what);
        assert!(!journal().tells_of_a_program());
        note(EventKind::Adopted { pid: 7 });
        note(dialog("d1"));
        assert!(journal().tells_of_a_program());
        for stays in [
            dialog("d1"),
            state(State::Starting),
            state(State::Confirming),
            EventKind::Adopted { pid: 7 },
        ] {
            assert_eq!(gone(stays), None);
        }
        let d1 = || Some("d1".to_owned());
        for ends in [dialog("d2"), state(State::Idle), exit()] {
            assert_eq!(gone(ends), d1());
        }
        note(EventKind::DialogGone { id: "d0".into() });
        assert_eq!(gone(exit()), d1(), "another one is gone");
        note(EventKind::DialogGone { id: "d1".into() });
        assert_eq!(gone(exit()), None);
        note(exit());
        assert!(!journal().tells_of_a_program());
    }
}
