//! A slot's own files: `<slot>.log` for people, `<slot>.events.jsonl` for programs. A failure to write is told
//! once, its end is told too, and neither stops the slot.

use crate::core::claude::reading::State;
use crate::core::machine::about;
use crate::core::model::{Event, EventKind, NO_ANSWER};
use crate::core::policy::{Decision, RuleRef};
use crate::core::settings::Supervision;
use crate::core::text::secrets;
use crate::os::files;
use crate::os::log_file::{Cap, LogFile};
use chrono::{DateTime, Local, SecondsFormat, Utc};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

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

#[derive(Debug)]
pub struct Journal {
    log: LogFile,
    events: LogFile,
    /// Events that could not be written since writing began to fail.
    lost: Option<u64>,
    told: Told,
}

/// What whoever follows the events believes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Told {
    /// A program runs: no end of it was told.
    runs: bool,
    /// The dialog that is up.
    dialog: Option<String>,
}

/// What a person should know of the journal itself.
#[derive(Debug)]
pub enum JournalNews {
    Failing(io::Error),
    /// It is written again, and this many events are missing from it.
    Recovered {
        lost: u64,
    },
}

/// How much is kept of a slot's logs.
pub(super) fn cap_of(supervision: &Supervision) -> Cap {
    Cap {
        bytes: supervision.log_size,
        files: supervision.log_files.into(),
    }
}

impl Journal {
    /// `cap` holds for each of the two files.
    pub fn new(paths: &SlotPaths, cap: Cap) -> Journal {
        Journal {
            log: LogFile::new(&paths.log, cap),
            events: LogFile::new(&paths.events, cap),
            lost: None,
            told: Told::by(paths),
        }
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
        self.log.set_cap(cap);
        self.events.set_cap(cap);
    }

    /// Writes the event to both files. There is news when writing begins to fail and when it works again.
    pub fn note(&mut self, event: &Event) -> Option<JournalNews> {
        self.told.follow(&event.what);
        match (self.write(event), self.lost) {
            (Ok(()), None) => None,
            (Ok(()), Some(lost)) => {
                self.lost = None;
                Some(JournalNews::Recovered { lost })
            }
            (Err(_), Some(lost)) => {
                self.lost = Some(lost + 1);
                None
            }
            (Err(error), None) => {
                self.lost = Some(1);
                Some(JournalNews::Failing(error))
            }
        }
    }

    fn write(&mut self, event: &Event) -> io::Result<()> {
        let json = serde_json::to_value(event).map_err(io::Error::other)?;
        let mut line = secrets::mask_json(&json).to_string();
        line.push('\n');
        self.events.append(&line)?;
        match event.what {
            // The answer is logged when it is whole; what it has cost is for programs.
            EventKind::Text { .. } | EventKind::Cost { .. } => Ok(()),
            _ => self.log.append(&log_lines(event)),
        }
    }
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

/// The most that is read of a log to find the last message: what is written while an answer comes.
const MAX_TAIL: u64 = 1024 * 1024;

/// The last message of which the events tell no end, and when it was taken. The daemon that has told of the message may
/// have been killed before it was answered.
pub fn unanswered(paths: &SlotPaths) -> Option<(DateTime<Utc>, String)> {
    let tail = read_tail(&paths.events).ok()?;
    let events = tail.lines().rev().map(serde_json::from_str::<Event>);
    for event in events.filter_map(Result::ok) {
        match event.what {
            EventKind::Message { text } => return Some((event.time, text)),
            EventKind::Answer { .. } | EventKind::Failed { .. } | EventKind::Exit { .. } => {
                return None;
            }
            _ => {}
        }
    }
    None
}

fn read_tail(file: &Path) -> io::Result<String> {
    let mut file = files::open(file)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_TAIL)))?;
    let mut bytes = Vec::new();
    file.take(MAX_TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The event for a person: a timestamp and a line; what has more lines is indented below it.
pub fn log_lines(event: &Event) -> String {
    let time: DateTime<Local> = event.time.into();
    let stamp = time.to_rfc3339_opts(SecondsFormat::Millis, false);
    let (word, text) = words(&event.what);
    let text = secrets::mask(&plain(&text));
    let mut lines = text.trim_end().lines();
    let mut out = format!("{stamp}  {word:<9} {}", lines.next().unwrap_or_default());
    out.truncate(out.trim_end().len());
    out.push('\n');
    for line in lines {
        out.push_str(format!("{:width$}{line}", "", width = INDENT).trim_end());
        out.push('\n');
    }
    out
}

/// What happened, and where, in one line for a person who looks on.
pub fn log_summary(event: &Event) -> String {
    let (word, text) = words(&event.what);
    let text = secrets::mask(&plain(&text));
    let first = text.lines().next().unwrap_or_default();
    let time: DateTime<Local> = event.time.into();
    let slot = event.slot.as_deref().unwrap_or("daemon");
    format!("{} {slot}: {word} {first}", time.format("%H:%M:%S"))
}

/// The width of a timestamp and a word, so that further lines stand under the first.
const INDENT: usize = 41;

/// No control characters: a log is read on terminals.
fn plain(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\n' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

fn words(what: &EventKind) -> (&'static str, String) {
    match what {
        EventKind::Snapshot { status } => ("snapshot", status.state.name().to_owned()),
        EventKind::Spawned {
            pid,
            session_id,
            resumed,
        } => ("started", spawned(*pid, session_id.as_deref(), *resumed)),
        EventKind::Adopted { pid } => ("adopted", format!("pid {pid}, of an earlier daemon")),
        EventKind::State { from, to } => ("state", format!("{} -> {}", from.name(), to.name())),
        EventKind::Dialog { dialog } => ("dialog", dialog_text(dialog)),
        EventKind::DialogGone { id } => ("dialog", format!("{id} is gone")),
        EventKind::Message { text } => ("message", text.clone()),
        EventKind::Text { text, .. } => ("text", text.clone()),
        EventKind::Answer { text, duration_ms } => ("answer", answered(text, *duration_ms)),
        EventKind::Verdict { .. } => ("verdict", verdict(what)),
        EventKind::Ran { .. } => ("ran", ran(what)),
        EventKind::Key { key, reason } => ("key", format!("{key} — {reason}")),
        EventKind::Failed { text } => ("no answer", text.clone()),
        EventKind::Attached { .. } => ("attached", attached(what)),
        EventKind::Detached { uid } => ("detached", format!("uid {uid}")),
        EventKind::Typing { uid } => ("keyboard", typing(*uid)),
        EventKind::TypingOver => ("keyboard", "free again".to_owned()),
        EventKind::Interrupted => ("interrupt", "the turn was stopped".to_owned()),
        EventKind::Exit {
            cause, ended_at, ..
        } => ("exit", exit(cause, *ended_at)),
        EventKind::Data { text, .. } => ("data", text.clone()),
        EventKind::Closed { why } => ("closed", why.clone()),
        EventKind::BufferOverflow { kept } => {
            ("overflow", format!("the last {kept} bytes are kept"))
        }
        EventKind::Restart { attempt, delay_ms } => ("restart", restarts(*attempt, *delay_ms)),
        EventKind::Stopped { by } => ("stopped", stopped(by)),
        EventKind::Trouble { cause, text } => ("TROUBLE", format!("{cause}: {text}")),
        EventKind::Cost { dollars, total } => ("cost", cost(*dollars, *total)),
        EventKind::Mode { mode } => ("mode", format!("{mode} again")),
        EventKind::GaveUp { reason } => ("gave up", reason.clone()),
        EventKind::Session { session_id } => ("session", session_id.clone()),
        EventKind::Task { id, state, .. } => ("task", format!("{id} is {}", state.name())),
        EventKind::Config { ok, text } => (if *ok { "config" } else { "BAD CONF" }, text.clone()),
        EventKind::Doubtful { why } => ("DOUBTFUL", why.clone()),
        EventKind::DoubtGone => ("doubt", "the witnesses agree again".to_owned()),
        EventKind::Gap { after, first } => ("GAP", format!("between {after} and {first}")),
        EventKind::Warning { text } => ("WARNING", text.clone()),
    }
}

fn cost(dollars: f64, total: f64) -> String {
    format!("${dollars:.2}, ${total:.2} since its start")
}

fn verdict(what: &EventKind) -> String {
    let EventKind::Verdict {
        tool,
        target,
        verdict,
        rule,
        why,
        by,
        answer,
        agent,
        ..
    } = what
    else {
        return String::new();
    };
    let (word, by) = decided(*verdict, by, answer.as_deref());
    let end = grounds(rule.as_ref(), by, agent.as_deref());
    format!("{word} {tool}: {target} — {why}{end}")
}

fn ran(what: &EventKind) -> String {
    let EventKind::Ran {
        tool,
        target,
        error,
        ..
    } = what
    else {
        return String::new();
    };
    let call = match target.as_str() {
        "" => tool.clone(),
        target => format!("{tool}: {target}"),
    };
    match error {
        Some(error) => format!("{call} — failed: {error}"),
        None => call,
    }
}

fn stopped(by: &str) -> String {
    match by {
        "removal" => "since it is no longer in the config".to_owned(),
        by => format!("by a {by}"),
    }
}

/// What was decided, and by whom. What was left to Claude Code was decided by nobody here, unless the rules allow it: then
/// Claude Code checks it too.
fn decided<'a>(
    verdict: Decision,
    by: &'a str,
    answer: Option<&str>,
) -> (&'static str, Option<&'a str>) {
    match answer {
        Some(NO_ANSWER) if verdict != Decision::Allow => (NO_ANSWER, None),
        _ => (verdict.word(), Some(by)),
    }
}

/// The rule and where it stands, who decided, and for whom.
fn grounds(rule: Option<&RuleRef>, by: Option<&str>, agent: Option<&str>) -> String {
    let place = |rule: &RuleRef| format!(" [{} {}:{}]", rule.text, rule.file.display(), rule.line);
    let by = by.map(|by| format!("by {by}"));
    let agent = agent.map(|agent| format!("for agent {agent}"));
    let who: Vec<String> = by.into_iter().chain(agent).collect();
    let place = rule.map(place).unwrap_or_default();
    match who.is_empty() {
        true => place,
        false => format!("{place} ({})", who.join(", ")),
    }
}

fn answered(text: &str, duration_ms: u64) -> String {
    format!("({}) {text}", seconds(duration_ms))
}

fn restarts(attempt: u32, delay_ms: u64) -> String {
    format!("number {attempt} in {}", seconds(delay_ms))
}

fn attached(what: &EventKind) -> String {
    let EventKind::Attached {
        uid,
        read_only,
        cols,
        rows,
    } = what
    else {
        return String::new();
    };
    let how = if *read_only { ", read-only" } else { "" };
    format!("uid {uid}, {cols}x{rows}{how}")
}

fn typing(uid: u32) -> String {
    format!("uid {uid} types: answers by rule and messages wait")
}

fn spawned(pid: u32, session: Option<&str>, resumed: bool) -> String {
    let how = if resumed { "resumed" } else { "new" };
    match session {
        Some(session) => format!("pid {pid}, {how} session {session}"),
        None => format!("pid {pid}"),
    }
}

fn dialog_text(dialog: &crate::core::claude::reading::Dialog) -> String {
    let labels: Vec<&str> = dialog
        .options
        .iter()
        .map(|choice| choice.label.as_str())
        .collect();
    let cut = if dialog.complete {
        ""
    } else {
        " (not whole on the screen)"
    };
    format!(
        "{}{cut} [{}]\n{}",
        about(dialog),
        dialog.id,
        labels.join(" | ")
    )
}

fn exit(cause: &str, ended_at: Option<DateTime<Utc>>) -> String {
    match ended_at {
        Some(at) => {
            let at = DateTime::<Local>::from(at).to_rfc3339_opts(SecondsFormat::Secs, false);
            format!("{cause} (at {at}, while no daemon ran)")
        }
        None => cause.to_owned(),
    }
}

fn seconds(ms: u64) -> String {
    let whole = Duration::from_secs(ms / 1000);
    match whole.as_secs() {
        0..60 => format!("{:.1}s", ms as f64 / 1000.0),
        _ => humantime::format_duration(whole).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::settings::Supervision;

    #[test]
    fn a_log_line_has_a_stamp_a_word_and_the_text() {
        let line = log_lines(&Event::sample(EventKind::State {
            from: State::Idle,
            to: State::Thinking,
        }));
        assert!(line.ends_with("state     idle -> thinking\n"), "{line}");
        assert_eq!(line.find("state"), Some(31));
    }

    /// Only the last message counts, and only until something tells its end.
    #[test]
    fn a_message_is_unanswered_until_its_end_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let paths = SlotPaths::new(dir.path(), "a");
        assert_eq!(unanswered(&paths), None);
        let mut journal = Journal::new(&paths, cap_of(&Supervision::default()));
        let message = |text: &str| EventKind::Message { text: text.into() };
        let text = |text: &str| EventKind::Text {
            text: text.to_owned(),
            source: "screen".into(),
        };
        let answer = EventKind::Answer {
            text: "so".into(),
            duration_ms: 1,
        };
        let failed = EventKind::Failed { text: "no".into() };
        let open = |text: &str| Some(text.to_owned());
        for (what, expected) in [
            (text("so"), None),
            (message("one"), open("one")),
            (text("so"), open("one")),
            (EventKind::Adopted { pid: 7 }, open("one")),
            (answer, None),
            (message("two"), open("two")),
            (failed, None),
            (message("three"), open("three")),
        ] {
            let shown = format!("{what:?}");
            assert!(journal.note(&Event::sample(what)).is_none());
            let found = unanswered(&paths).map(|(_, text)| text);
            assert_eq!(found, expected, "{shown}");
        }
        // The end of a line that is longer than what is read, and one that is cut off, are no events.
        let long = text(&"x".repeat(2 * MAX_TAIL as usize));
        assert!(journal.note(&Event::sample(long)).is_none());
        assert_eq!(unanswered(&paths), None);
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
        assert!(
            journal
                .note(&Event::sample(EventKind::Message { text }))
                .is_none()
        );
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
        let note = |what: EventKind| assert!(journal().note(&Event::sample(what)).is_none());
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
