//! What a session has beyond a slot: its terms, its prompt, and when it is over.

mod typing;

use super::Slot;
use super::adopt::shim_lost;
use super::handle::Answer;
use super::output::Taken;
use super::owner::Owner;
use super::prompt::ShellPrompt;
use super::record::{Ended, SessionRecord};
use crate::core::machine::{Cause, Input};
use crate::core::model::ExitReport;
use crate::core::model::Person;
use crate::core::model::{SessionStatus, What};
use crate::core::settings::SessionTerms;
use crate::shim::ToShim;
use chrono::{DateTime, Utc};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// While somebody waits for a command, the shell is looked at this often: one that has become another program
/// will never say that it is done.
const LOOK: Duration = Duration::from_millis(500);

/// A shell that has not shown a prompt by then does not set the marks that it was told to set.
const FIRST_PROMPT: Duration = Duration::from_secs(20);

/// A shell that edits a line for so long, in silence, has shown a prompt, and set no marks.
const SHOWN: Duration = Duration::from_secs(2);

/// What has taken the shell's place (`exec true`) may end within this time, and its end is the command's.
const REPLACED: Duration = Duration::from_secs(1);

/// The marker in the recording behind which the output was cleared.
pub(super) const CLEARED: &str = "output cleared";

pub(super) struct PlainSession {
    pub terms: SessionTerms,
    pub ended: Option<Ended>,
    pub prompt: Option<ShellPrompt>,
    typing: Option<AwaitedCommand>,
    /// When something was last written or read.
    active: Instant,
    owner: Owner,
    /// Why it is to be removed.
    leaving: Option<String>,
    /// That it is to end was said, and why.
    ending: Option<SessionEnding>,
    /// What ran when a command was typed.
    program: Option<ShellProgram>,
    /// Since when it is known that something else runs there.
    replaced: Option<Instant>,
    /// Why nothing more is to be heard from the shell.
    silenced: Option<&'static str>,
}

/// Why a program is ended by missiond.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SessionEnding {
    why: String,
    /// Its own time was over.
    timed_out: bool,
}

impl SessionEnding {
    fn of(why: String) -> SessionEnding {
        let timed_out = false;
        SessionEnding { why, timed_out }
    }
}

/// A process, by its program and its words: `exec bash` leaves the same program.
#[derive(PartialEq, Eq)]
struct ShellProgram {
    file: PathBuf,
    words: Vec<u8>,
}

/// Somebody waits for a command.
struct AwaitedCommand {
    stage: TypingStage,
    began: Instant,
    reply: Answer<TypedCommand>,
}

enum TypingStage {
    /// For the first prompt; then this is written.
    ShellPrompt(Vec<u8>, Person),
    /// For the prompt behind it. Its output began here at the earliest.
    Command(u64),
}

/// A command that was typed has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypedCommand {
    pub exit_code: Option<i32>,
    /// What it wrote, by its place in the output.
    pub output: Option<(u64, u64)>,
}

impl PlainSession {
    /// As it is on the disk, where it is there already.
    pub fn new(terms: SessionTerms, file: &Path) -> PlainSession {
        let ended = SessionRecord::load(file)
            .ok()
            .and_then(|record| record.ended);
        let prompt = terms
            .marks
            .as_ref()
            .map(|marks| ShellPrompt::new(&marks.token));
        PlainSession {
            owner: Owner::watch(terms.owner_process.filter(|_| ended.is_none())),
            terms,
            ended,
            prompt,
            typing: None,
            active: Instant::now(),
            leaving: None,
            ending: None,
            program: None,
            replaced: None,
            silenced: None,
        }
    }

    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    pub fn was_written_to(&mut self, bytes: &[u8]) {
        self.is_active();
        if let Some(prompt) = &mut self.prompt {
            prompt.written(bytes);
        }
    }

    /// Something was written to the program or came from it.
    fn is_active(&mut self) {
        self.active = Instant::now();
    }

    pub fn status(&self, size: (usize, usize)) -> SessionStatus {
        let (cols, rows) = size;
        let ended = self.ended.as_ref();
        SessionStatus {
            cols,
            rows,
            ended_at: ended.map(|ended| ended.at),
            signal: ended.and_then(|ended| ended.report.signal),
            timed_out: ended.is_some_and(|ended| ended.timed_out),
            ended_because: ended.and_then(|ended| ended.why.clone()),
            at_prompt: self
                .prompt
                .as_ref()
                .filter(|prompt| prompt.is_ready() || self.silenced.is_none())
                .map(|prompt| prompt.is_ready() && ended.is_none()),
            leaving: self.leaving.clone(),
            ..first_status(&self.terms)
        }
    }

    /// It is to be closed, and those who still wait are told why.
    pub fn leaves(&mut self, why: String) {
        self.leaving.get_or_insert(why);
    }

    /// When there is something to look after.
    fn due(&self) -> Option<Instant> {
        if self.leaving.is_some() {
            return None;
        }
        if let Some(ended) = &self.ended {
            return Some(moment(ended.at, self.terms.keep?));
        }
        let runs_on = self.ending.is_none();
        let over = self.terms.ends_at.filter(|_| runs_on);
        let over = over.map(|at| moment(at, Duration::ZERO));
        let idle = self.idle_limit().filter(|_| runs_on);
        let idle = idle.map(|idle| self.active + idle);
        let typing = self.typing.as_ref().map(|_| Instant::now() + LOOK);
        [over, idle, typing].into_iter().flatten().min()
    }

    /// How long it may be idle, where it is one that can be idle now: a shell at its prompt.
    fn idle_limit(&self) -> Option<Duration> {
        let rests = self.prompt.as_ref().is_some_and(ShellPrompt::is_ready);
        self.terms.idle_close.filter(|_| rests)
    }

    /// How long it has been idle, where that is too long.
    fn idle_for_too_long(&self) -> Option<Duration> {
        let runs_on = self.ended.is_none() && self.ending.is_none();
        let limit = self.idle_limit().filter(|_| runs_on)?;
        (self.active.elapsed() >= limit).then_some(limit)
    }

    /// Why its program is to be ended now.
    fn must_end(&self) -> Option<SessionEnding> {
        if self.ended.is_some() || self.ending.is_some() {
            return None;
        }
        let over = self.terms.ends_at.filter(|at| *at <= Utc::now());
        if let Some(at) = over {
            let time = (at - self.terms.created_at).to_std().unwrap_or_default();
            return Some(SessionEnding {
                why: format!("timed out after {}", words(time)),
                timed_out: true,
            });
        }
        let pid = self
            .terms
            .owner_process
            .filter(|_| self.owner.is_gone())?
            .pid;
        let why = format!("its owner, process {pid}, has ended");
        Some(SessionEnding::of(why))
    }
}

/// Before its task has looked at anything.
pub(super) fn first_status(terms: &SessionTerms) -> SessionStatus {
    SessionStatus {
        created_at: terms.created_at,
        command: terms.command.clone(),
        cols: 0,
        rows: 0,
        owner_pid: terms.owner_process.map(|process| process.pid),
        ends_at: terms.ends_at,
        ended_at: None,
        signal: None,
        timed_out: false,
        ended_because: None,
        at_prompt: terms.marks.as_ref().map(|_| false),
        marked: terms.marks.is_some(),
        leaving: None,
    }
}

/// Returns when a session needs to be looked after; never for a slot that is none.
pub(super) async fn due(session: Option<&PlainSession>) {
    let Some(session) = session else {
        return std::future::pending().await;
    };
    let watches_owner = session.ended.is_none() && session.ending.is_none();
    tokio::select! {
        () = super::task::until(session.due()) => {}
        () = session.owner.gone(), if watches_owner => {}
    }
}

impl Slot {
    /// What the program wrote, live or from its recording, has been kept: its shell may have said something by it.
    pub(super) fn has_kept(&mut self, bytes: &[u8], taken: &Taken) {
        if let Some(session) = self.session.as_mut().filter(|_| *taken != Taken::Known) {
            session.is_active();
            if let Some(prompt) = &mut session.prompt {
                prompt.feed(bytes);
            }
        }
    }

    pub(super) fn tell_overflow(&mut self) {
        let kept = self.screen.output().room();
        self.tell(What::BufferOverflow { kept });
    }

    /// Time has passed for a session, or its owner has ended.
    pub(super) async fn look_after_session(&mut self) {
        self.settle_typing().await;
        match self.must_end().await {
            Some(ending) => self.end_session(ending).await,
            None => self.leave_if_over(),
        }
    }

    async fn must_end(&mut self) -> Option<SessionEnding> {
        let session = self.session.as_ref()?;
        if let Some(ending) = session.must_end() {
            return Some(ending);
        }
        let idle = session.idle_for_too_long()?;
        // What runs behind a prompt is no idle session, however silent, nor is one that somebody looks at.
        if self.screen.viewers() == 0 && self.is_alone().await {
            let why = format!("idle at its prompt for {}", words(idle));
            return Some(SessionEnding::of(why));
        }
        self.session.as_mut()?.is_active();
        None
    }

    /// Somebody outside has a reason to end it.
    pub(super) async fn end_for(&mut self, why: String) {
        let runs_on = |session: &PlainSession| session.ended.is_none() && session.ending.is_none();
        if self.session.as_ref().is_some_and(runs_on) {
            self.end_session(SessionEnding::of(why)).await;
        }
    }

    /// Ends the program. What it has written is kept, as after every end.
    async fn end_session(&mut self, ending: SessionEnding) {
        let why = ending.why.clone();
        if let Some(session) = &mut self.session {
            session.ending = Some(ending);
        }
        self.warn(&format!("it is ended: {why}"));
        self.input(Input::Expire(why)).await;
    }

    /// Removes a session that has ended once it was kept for as long as `keep` says.
    fn leave_if_over(&mut self) {
        let Some(session) = &mut self.session else {
            return;
        };
        let (Some(ended), Some(keep)) = (&session.ended, session.terms.keep) else {
            return;
        };
        if moment(ended.at, keep) <= Instant::now() {
            session.leaves(format!("it ended, and was kept for {}", words(keep)));
        }
    }

    /// Whether the shell is the only process of its session.
    async fn is_alone(&mut self) -> bool {
        let Some(pid) = self.machine.pid() else {
            return true;
        };
        let used = self.context.meter.of(vec![pid]).await;
        used.first()
            .is_some_and(|usage| usage.is_none_or(|usage| usage.processes <= 1))
    }

    /// The program of a session has ended: that is written down for a daemon that comes later.
    pub(super) fn note_end(&mut self, report: &ExitReport, at: DateTime<Utc>) {
        let by_machine = self.machine.ends_because();
        let Some(session) = &mut self.session else {
            return;
        };
        let by_session = session.ending.as_ref().map(|ending| ending.why.clone());
        session.ended = Some(Ended {
            at,
            report: report.clone(),
            why: by_session.or(by_machine),
            timed_out: session.ending.as_ref().is_some_and(|end| end.timed_out),
        });
        self.end_typing(report);
        self.screen.check_waiters();
        self.screen.disappoint_waiters();
        self.save_record();
    }

    pub(super) fn save_record(&mut self) {
        let Some(made) = SessionRecord::of(self.program.settings()) else {
            return;
        };
        let file = self.context.session_file(&self.program.settings().name);
        let (cols, rows) = (self.program.settings().cols, self.program.settings().rows);
        let ended = self
            .session
            .as_ref()
            .and_then(|session| session.ended.clone());
        let record = SessionRecord {
            cols,
            rows,
            ended,
            // Somebody may have removed it.
            ..SessionRecord::load(&file).unwrap_or(made)
        };
        if let Err(error) = record.save(&file) {
            self.warn(&format!("{} can't be written: {error}", file.display()));
        }
    }

    /// A session that no shim has any more: how it ended is known, or it went with its shim.
    pub(super) async fn take_up_ended(&mut self) {
        let has_run = self.log.paths().recording.exists();
        let known = self
            .session
            .as_ref()
            .and_then(|session| session.ended.clone());
        if self.session.is_none() || (!has_run && known.is_none()) {
            return;
        }
        if has_run {
            self.replay_ended().await;
        }
        let report = match known {
            Some(Ended { report, why, .. }) => {
                self.machine.recall_end(why);
                report
            }
            None => {
                self.warn("its shim is gone, and how it ended is not known");
                self.tell(shim_lost());
                self.note_end(&ExitReport::UNKNOWN, Utc::now());
                self.machine
                    .recall_end(Some(Cause::ShimLost.name().to_owned()));
                ExitReport::UNKNOWN
            }
        };
        self.program.last_end_mut().recall(report);
    }

    pub(super) fn clear_output(&mut self) {
        self.screen.clear_output();
        self.tell_shim(&ToShim::Mark {
            text: CLEARED.to_owned(),
        });
    }
}

/// As shells say it: 128 and its number for a signal.
pub fn exit_code(report: &ExitReport) -> Option<i32> {
    report.code.or(report.signal.map(|signal| 128 + signal))
}

fn moment(at: DateTime<Utc>, more: Duration) -> Instant {
    let now = Instant::now();
    match (at - Utc::now()).to_std() {
        Ok(ahead) => now + ahead + more,
        // It is past: by how much is taken off.
        Err(_) => now + more.saturating_sub((Utc::now() - at).to_std().unwrap_or_default()),
    }
}

fn words(time: Duration) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_millis(
        time.as_millis().try_into().unwrap_or(u64::MAX),
    ))
}
