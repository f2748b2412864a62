//! What can be learned of a slot beside its screen, read where it lies.

use super::Slot;
use super::claude::Claude;
use super::handle::Answer;
use super::lookups::{ClaudeFiles, LookedUp};
use super::task::until;
use crate::core::claude::HookWhat;
use crate::core::claude::reading::witness::{self, Weighed, Witness};
use crate::core::claude::reading::{Dialog, Login, State};
use crate::core::claude::transcript;
use crate::core::claude::transcript::{Figures, Turn};
use crate::core::machine::{Input, Known, call_in_a_line};
use crate::core::model::{Conversation, Evidence};
use crate::core::settings::Gate;
use crate::core::text::secrets;
use crate::os::directory_watch::DirectoryWatch;
use crate::os::process_stat::Stat;
use crate::os::{files, local_time};
use chrono::{DateTime, Utc};
use serde_json::Value;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// How soon the witnesses are asked again while they differ: Claude Code notes a change within 0.2 s.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// What is read of a file at most: a record has less than 1 KB, and the last line of a transcript is
/// cut where it is longer.
const MAX_READ: u64 = 64 * 1024;

/// How often the transcript is looked at while a request is under way: it is tried again for minutes.
const LOOK_FOR_LOGIN: Duration = Duration::from_secs(2);

/// The last hook that was heard.
#[derive(Debug)]
pub(super) struct LastHook {
    time: DateTime<Utc>,
    says: String,
    /// No turn has begun since one ended.
    between_turns: bool,
}

/// What is remembered of the witnesses between two times of asking.
#[derive(Debug, Default)]
pub(super) struct Witnesses {
    hook: Option<LastHook>,
    /// What the machine was told last.
    doubt: Option<String>,
    /// As the last answer had them.
    figures: Option<Figures>,
    ask_again: Option<Instant>,
    /// The look at the files that is under way, by when it was asked for.
    looking: Option<Instant>,
    /// Something has happened since that began.
    look_again: bool,
    /// What the files said last, or why they said nothing.
    files: FileEvidence,
    unanswered: Option<String>,
    /// When the transcript was last looked at for the login.
    looked_for_login: Option<Instant>,
    /// Where Claude Code keeps its records, once it has begun to.
    records: Option<DirectoryWatch>,
}

/// The files that can tell something of a program.
#[derive(Debug)]
struct EvidenceFiles {
    pid: u32,
    records: Option<PathBuf>,
    transcript: Option<PathBuf>,
    /// To hear of changes of the records.
    watch: Option<Handle>,
}

/// What they say.
#[derive(Debug, Default)]
pub(crate) struct FileEvidence {
    /// What Claude Code notes of the session. Absent before its first screen, and in older versions.
    record: Option<Witness>,
    /// The end of the transcript, if that was asked for.
    transcript: Option<TranscriptEnd>,
    watch: Option<DirectoryWatch>,
}

#[derive(Debug, Default)]
struct TranscriptEnd {
    /// Calls without a result.
    open_calls: Vec<(String, Value)>,
    /// The last entry, in a line.
    last: Option<String>,
    /// Why a request is tried again.
    login: Option<Login>,
}

impl EvidenceFiles {
    /// May hang with the file system. A record that exists and can't be read is an error: somebody may have put something
    /// else in its place.
    fn read(self) -> io::Result<FileEvidence> {
        let records = self.records.as_deref();
        let record = match records.map(|records| self.record_in(records)) {
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            found => found.and_then(Result::ok).flatten(),
        };
        // Older versions keep none. Without a watch, where the kernel has no more of them to give, the record is read
        // whenever the screen changes.
        let watch = records.filter(|place| self.watch.is_some() && place.is_dir());
        let watch = watch.and_then(|place| {
            let _runtime = self.watch.as_ref()?.enter();
            DirectoryWatch::for_changes(place).ok()
        });
        Ok(FileEvidence {
            record,
            transcript: self.transcript.map(|file| TranscriptEnd::read(&file)),
            watch,
        })
    }

    fn record_in(&self, records: &Path) -> io::Result<Option<Witness>> {
        let json = read_end(&records.join(format!("{}.json", self.pid)))?;
        let start = process_start(self.pid);
        Ok(witness::record(&json, start.as_deref()))
    }
}

impl TranscriptEnd {
    fn read(file: &Path) -> TranscriptEnd {
        let text = read_end(file).unwrap_or_default();
        let turns = transcript::turns(text.lines());
        let waiting = turns
            .iter()
            .rev()
            .take_while(|turn| turn.role == "tool_call");
        let open_calls = waiting.filter_map(|turn| Some((turn.tool.clone()?, turn.input.clone()?)));
        let why = transcript::tried_again(text.lines());
        TranscriptEnd {
            open_calls: open_calls.collect(),
            last: turns.last().map(in_a_line),
            login: why.and_then(|why| Login::read(&why)),
        }
    }
}

fn in_a_line(turn: &Turn) -> String {
    let said: String = secrets::mask(&turn.text).chars().take(80).collect();
    let tool = turn.tool.as_ref().map(|tool| format!(" {tool}"));
    format!("{}{}: {said}", turn.role, tool.unwrap_or_default())
}

impl Witnesses {
    pub(super) fn heard(&mut self, what: &HookWhat) {
        if matches!(what, HookWhat::Displayed { .. }) {
            return;
        }
        let before = self.hook.as_ref().is_some_and(|hook| hook.between_turns);
        let between_turns = match what {
            HookWhat::SessionStart | HookWhat::TurnOver { .. } => true,
            HookWhat::PromptTaken | HookWhat::BeforeTool { .. } | HookWhat::AfterTool { .. } => {
                false
            }
            HookWhat::Cost(_) | HookWhat::Displayed { .. } | HookWhat::Other => before,
        };
        self.hook = Some(LastHook {
            time: Utc::now(),
            says: what.to_string().chars().take(120).collect(),
            between_turns,
        });
    }

    /// Whether a look at the files is under way.
    pub(super) fn are_looking(&self) -> bool {
        self.looking.is_some()
    }

    /// What the last answer tells of the conversation.
    pub(super) fn told(&mut self, figures: Option<Figures>) {
        self.figures = figures.or(self.figures.take());
    }

    /// Returns when Claude Code has noted something: a record may change with nothing new on the screen.
    async fn noted(&self) {
        match &self.records {
            Some(records) => records.changed().await,
            None => std::future::pending().await,
        }
    }

    /// Returns when they are to be asked again, though nothing has changed on the screen.
    pub(super) async fn have_news(&self) {
        let again = self.ask_again.filter(|_| !self.are_looking());
        tokio::select! {
            () = until(again) => {}
            () = self.noted() => {}
        }
    }

    /// What the files said. If they were not read, what they said before is old.
    fn take(&mut self, found: io::Result<FileEvidence>) {
        self.looking = None;
        self.unanswered = found
            .as_ref()
            .err()
            .map(|error| format!("what Claude Code notes of itself can't be read: {error}"));
        self.files = found.unwrap_or_default();
        self.records = self.files.watch.take().or(self.records.take());
    }
}

impl Slot<Claude> {
    /// Asks everyone, and tells the machine if the outcome has changed: at once, or when the files were looked at.
    pub(super) async fn ask_witnesses(&mut self) {
        if self.own.witnesses().are_looking() {
            self.own.witnesses_mut().look_again = true;
            return;
        }
        let Some(files) = self.evidence_files(self.wants_transcript()) else {
            return self.weigh_witnesses().await;
        };
        let now = Instant::now();
        self.own.witnesses_mut().looking = Some(now);
        self.lookups.of_claude(
            move || files.read(),
            move |found| LookedUp::Claude(ClaudeFiles::Evidence(now, found.flatten())),
        );
    }

    /// The files were looked at. What waited for that, because it must rest on what they say now, is done.
    pub(super) async fn looked_at_files(&mut self, at: Instant, found: io::Result<FileEvidence>) {
        if self.own.witnesses().looking != Some(at) {
            // It was for a program that has ended.
            return;
        }
        self.own.witnesses_mut().take(found);
        if self.catching.is_some() {
            return;
        }
        self.weigh_witnesses().await;
        let due = self.machine.poll_timeout();
        let due = due.filter(|due| *due <= Instant::now());
        if due.is_some_and(|due| due <= at) {
            self.input(Input::TimePassed).await;
        }
        if std::mem::take(&mut self.own.witnesses_mut().look_again) {
            self.ask_witnesses().await;
        }
    }

    async fn weigh_witnesses(&mut self) {
        let doubt = match witness::weigh(&self.witness_all(&self.own.witnesses().files)) {
            _ if self.machine.is_up() && self.own.witnesses().unanswered.is_some() => {
                self.own.witnesses().unanswered.clone()
            }
            Weighed::Doubt { why } if self.machine.is_up() => Some(why),
            _ => self.machine.strange_options(),
        };
        self.own.witnesses_mut().ask_again = doubt.as_ref().map(|_| Instant::now() + ASK_AGAIN);
        if self.own.witnesses().doubt != doubt {
            self.own.witnesses_mut().doubt = doubt.clone();
            self.input(Input::Witnessed(doubt)).await;
        }
    }

    /// The files that are to be looked at; `None` if there is nothing to be found in them.
    fn evidence_files(&self, with_transcript: bool) -> Option<EvidenceFiles> {
        let pid = self.machine.pid()?;
        let watches = self.machine.is_up() && self.own.witnesses().records.is_none();
        Some(EvidenceFiles {
            pid,
            records: self.records_of_home(),
            transcript: self.transcript().filter(|_| with_transcript),
            watch: watches.then(Handle::current),
        })
    }

    /// Answers with what each witness says.
    pub(super) fn tell_why(&mut self, reply: Answer<Vec<Evidence>>) {
        match self.evidence_files(true) {
            None => {
                let evidence = self.evidence(&Ok(FileEvidence::default()));
                drop(reply.send(Ok(evidence)));
            }
            Some(files) => self.lookups.of_claude(
                move || files.read(),
                move |found| LookedUp::Claude(ClaudeFiles::Why(reply, found.flatten())),
            ),
        }
    }

    /// The screen, and those who can confirm it.
    pub(super) fn witness_all(&self, files: &FileEvidence) -> Vec<Witness> {
        let mut witnesses = vec![witness::screen(self.own.observed())];
        witnesses.extend(self.gate_on_dialog());
        witnesses.push(witness::title(&self.screen.terminal().title()));
        witnesses.extend(files.record.clone());
        witnesses.extend(self.calls_in_transcript(files));
        if let Some(hook) = &self.own.witnesses().hook {
            let says = format!("{} {}", local_time::clock(hook.time), hook.says);
            let agents_ask = self.machine.agents_ask();
            witnesses.push(witness::hook(hook.between_turns, agents_ask, says));
        }
        witnesses
    }

    /// Every call comes to the gate before its dialog does.
    fn gate_on_dialog(&self) -> Option<Witness> {
        if let Some(call) = self.machine.hidden_question() {
            return Some(witness::gate_that_waits(&call));
        }
        let known = self.machine.gate_knows_dialog()?;
        let calls = self.machine.waiting_calls();
        let waiting: Vec<String> = calls
            .iter()
            .map(|call| call_in_a_line(&call.tool, &call.input))
            .collect();
        Some(match known {
            Known::Waits => witness::gate_that_asked(),
            Known::Allowed => witness::gate_that_allowed(),
            Known::Not => witness::gate_without(&waiting),
        })
    }

    /// Where a rule may allow by the screen alone, the transcript has to know the call.
    fn needs_calls(&self) -> Option<&Dialog> {
        let by_screen = self.program.settings().gate == Gate::Screen && !self.machine.is_gated();
        self.own.observed().dialog.as_ref().filter(|_| by_screen)
    }

    fn calls_in_transcript(&self, files: &FileEvidence) -> Option<Witness> {
        let dialog = self.needs_calls()?;
        let calls = files.transcript.as_ref().map(|end| &end.open_calls);
        let open: Vec<_> = calls
            .into_iter()
            .flatten()
            .map(|(tool, input)| (tool.as_str(), input))
            .collect();
        witness::transcript(dialog, &open)
    }

    /// Whether the end of the transcript is to be read: for the call of a dialog, or, while a request is tried again, since
    /// older versions say in the transcript alone that the login was refused.
    fn wants_transcript(&self) -> bool {
        self.needs_calls().is_some() || self.may_lack_login()
    }

    fn may_lack_login(&self) -> bool {
        let observed = self.own.observed();
        observed.state == State::Thinking && observed.reading.notices.login.is_none()
    }

    /// At each frame: the transcript is looked at from time to time while a request may be tried again.
    pub(super) async fn look_for_login(&mut self) {
        let is_early = |at: Instant| at.elapsed() < LOOK_FOR_LOGIN;
        if self.may_lack_login() && !self.own.witnesses().looked_for_login.is_some_and(is_early) {
            self.own.witnesses_mut().looked_for_login = Some(Instant::now());
            self.ask_witnesses().await;
        }
    }

    pub(super) fn conversation(&self) -> Conversation {
        let figures = self.own.witnesses().figures.as_ref();
        let notices = &self.own.observed().reading.notices;
        Conversation {
            model: figures.map(|figures| figures.model.clone()),
            context_tokens: figures.map(|figures| figures.context_tokens),
            context_left: notices.context_left,
            compacting: notices.compacting,
            login: notices.login.or(self.login_refused()),
        }
    }

    fn login_refused(&self) -> Option<Login> {
        let end = self.own.witnesses().files.transcript.as_ref();
        end.filter(|_| self.may_lack_login())?.login
    }
}

impl FileEvidence {
    /// The last entry of the conversation, in a line.
    pub(super) fn last_of_transcript(&self) -> Option<String> {
        self.transcript.as_ref()?.last.clone()
    }
}

/// May hang with the file system.
pub(super) fn figures_of(transcript: &Path) -> Option<Figures> {
    let text = read_end(transcript).ok()?;
    transcript::figures(text.lines())
}

fn read_end(file: &Path) -> io::Result<String> {
    let mut file = files::open(file)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_READ)))?;
    let mut bytes = Vec::new();
    file.take(MAX_READ).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// When a process began that still runs, in the kernel's own count since boot; `None` where that can't be told.
pub(crate) fn process_start(pid: u32) -> Option<String> {
    let stat = Stat::of(pid).filter(|stat| !stat.has_ended())?;
    stat.field(Stat::START).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_start_of_a_process_is_a_number_that_stays() {
        let own = process_start(std::process::id()).expect("this process runs");
        assert!(own.parse::<u64>().is_ok_and(|start| start > 0), "{own}");
        assert_eq!(process_start(std::process::id()), Some(own));
    }

    #[test]
    fn a_hook_that_says_nothing_changes_nothing() {
        let mut witnesses = Witnesses::default();
        let mut between = |what: HookWhat| {
            witnesses.heard(&what);
            witnesses
                .hook
                .as_ref()
                .is_some_and(|hook| hook.between_turns)
        };
        assert!(between(HookWhat::SessionStart));
        assert!(between(HookWhat::Other));
        assert!(!between(HookWhat::PromptTaken));
        assert!(!between(HookWhat::Other));
        let (text, failure) = (None, None);
        assert!(between(HookWhat::TurnOver { text, failure }));
    }
}
