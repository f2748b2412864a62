//! The part of a slot's task for a program that is not Claude Code, and what a session has in addition to a slot: its
//! limits, its prompt, and its end.

mod owner;
mod prompt;
mod record;
mod typing;

pub use owner::running_process;
pub use record::{Ended, SessionRecord};

use crate::core::claude::reading::{self, State};
use crate::core::machine::{Answer, Cause, Input, Observation, Runs};
use crate::core::model::{ExitReport, Fault, Person, RpcError, SessionStatus};
use crate::core::settings::{Kind, SessionTerms, SlotConfig};
use crate::core::terminal::{At, Frame};
use crate::shim::{Hello, LaunchError};
use crate::slot::{
    self, OrphansFound, ProgramKind, Slot, SlotContext, TypedCommand, shim_lost, until,
};
use chrono::{DateTime, Utc};
use owner::Owner;
use prompt::ShellPrompt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The interval at which the shell is checked while a client waits for a command: a shell that another program has
/// replaced never reports the end of the command.
const LOOK: Duration = Duration::from_millis(500);

/// A shell without a prompt after this time does not set the marks that it should set.
const FIRST_PROMPT: Duration = Duration::from_secs(20);

/// A shell that has edited a line for this long, in silence, has shown a prompt without marks.
const SHOWN: Duration = Duration::from_secs(2);

/// A program that has replaced the shell (`exec true`) may end within this time, and its end is the command's.
const REPLACED: Duration = Duration::from_secs(1);

struct PlainSession {
    terms: SessionTerms,
    ended: Option<Ended>,
    prompt: Option<ShellPrompt>,
    typing: Option<AwaitedCommand>,
    /// The last input or output.
    active: Instant,
    owner: Owner,
    /// Why it is about to be removed.
    leaving: Option<String>,
    /// Set if its end was requested, with the reason.
    ending: Option<SessionEnding>,
    /// The program that ran when a command was typed.
    program: Option<ShellProgram>,
    /// The time since which another program is known to run there.
    replaced: Option<Instant>,
    /// Why the shell will report nothing more.
    silenced: Option<&'static str>,
}

/// Why missiond ends a program.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SessionEnding {
    why: String,
    /// Whether its own time limit was reached.
    timed_out: bool,
}

impl SessionEnding {
    fn of(why: String) -> SessionEnding {
        let timed_out = false;
        SessionEnding { why, timed_out }
    }
}

/// A process, by its program and its arguments: `exec bash` leaves the same program.
#[derive(PartialEq, Eq)]
struct ShellProgram {
    file: PathBuf,
    words: Vec<u8>,
}

/// A client that waits for a command.
struct AwaitedCommand {
    stage: TypingStage,
    began: Instant,
    reply: slot::Answer<TypedCommand>,
}

enum TypingStage {
    /// Waits for the first prompt; then these bytes are written.
    ShellPrompt(Vec<u8>, Person),
    /// Waits for the prompt after the command. The command's output begins at this position at the earliest.
    Command(u64),
}

impl PlainSession {
    /// A session, with its record on the disk if there is one.
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

    /// Tells whether its program runs, and its end was not requested.
    fn runs_on(&self) -> bool {
        self.ended.is_none() && self.ending.is_none()
    }

    pub fn was_written_to(&mut self, bytes: &[u8]) {
        self.is_active();
        if let Some(prompt) = &mut self.prompt {
            prompt.written(bytes);
        }
    }

    /// Records input or output.
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
            ..SessionStatus::first(&self.terms)
        }
    }

    /// Marks the session as about to be closed; waiting clients get this reason.
    pub fn leaves(&mut self, why: String) {
        self.leaving.get_or_insert(why);
    }

    /// When the next check is due.
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

    /// The idle limit, if the session can be idle now: a shell at its prompt.
    fn idle_limit(&self) -> Option<Duration> {
        let rests = self.prompt.as_ref().is_some_and(ShellPrompt::is_ready);
        self.terms.idle_close.filter(|_| rests)
    }

    /// The idle limit, if it has been exceeded.
    fn idle_for_too_long(&self) -> Option<Duration> {
        let limit = self.idle_limit().filter(|_| self.runs_on())?;
        (self.active.elapsed() >= limit).then_some(limit)
    }

    /// Why its program must end now, if it must.
    fn must_end(&self) -> Option<SessionEnding> {
        if !self.runs_on() {
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

/// A program that is not Claude Code. Nothing is read from its screen.
pub(crate) struct PlainProgram {
    /// Set for a session, `None` for a slot of the config.
    session: Option<PlainSession>,
}

impl ProgramKind for PlainProgram {
    const KIND: Kind = Kind::Shell;
    const READS_SCREEN: bool = false;
    /// Reports that the session needs a check.
    type News = ();

    fn new(context: &SlotContext, config: &SlotConfig) -> PlainProgram {
        let file = context.session_file(&config.name);
        let terms = config.terms.clone();
        PlainProgram {
            session: terms.map(|terms| PlainSession::new(terms, &file)),
        }
    }

    /// Returns when a session needs a check; never for a slot.
    async fn next(&mut self, _knows: bool) {
        let Some(session) = &self.session else {
            return std::future::pending().await;
        };
        tokio::select! {
            () = until(session.due()) => {}
            () = session.owner.gone(), if session.runs_on() => {}
        }
    }

    async fn take_news(slot: &mut Slot<PlainProgram>, (): ()) {
        slot.look_after_session().await;
    }

    async fn take_frames(slot: &mut Slot<PlainProgram>, frames: Vec<Frame>, _: Option<At>) {
        if !frames.is_empty() {
            slot.screen_mut().check_waiters();
        }
        slot.know_shell();
        slot.settle_typing().await;
    }

    /// The output may contain marks of the shell.
    fn has_kept(&mut self, bytes: &[u8]) {
        if let Some(session) = &mut self.session {
            session.is_active();
            if let Some(prompt) = &mut session.prompt {
                prompt.feed(bytes);
            }
        }
    }

    fn has_lost(&mut self, bytes: u64) {
        let session = self.session.as_mut();
        if let Some(prompt) = session.and_then(|session| session.prompt.as_mut()) {
            prompt.move_on(bytes);
        }
    }

    fn was_written_to(&mut self, bytes: &[u8]) {
        if let Some(session) = &mut self.session {
            session.was_written_to(bytes);
        }
    }

    fn find_answer(slot: &mut Slot<PlainProgram>) -> Option<Input> {
        let screen = slot.screen().terminal().screen();
        let message = slot.machine().typed_last();
        Some(Input::Found(Answer {
            text: message.and_then(|message| reading::answer_to(&screen, message)),
            source: "screen",
            failure: None,
        }))
    }

    /// A plain program counts as ready from its start.
    fn first_sight() -> Option<Input> {
        Some(Input::Saw(Observation {
            state: State::Idle,
            certain: true,
            redrawing: false,
            dialog: None,
            composer: None,
            mode: None,
            last_error: None,
            background: 0,
        }))
    }

    fn starts_once(&self) -> bool {
        self.session.is_some()
    }

    async fn take_up_left(slot: &mut Slot<PlainProgram>) -> bool {
        match slot.own().session {
            Some(_) => slot.take_up_session_left().await,
            None => slot.take_up_left().await,
        }
    }

    async fn without_record(_pid: u32, settings: Arc<SlotConfig>) -> Runs {
        Runs::with(settings)
    }

    async fn found_running(_: &mut Slot<PlainProgram>, _: &Hello) -> Vec<Input> {
        Self::first_sight().into_iter().collect()
    }

    fn gate(_: &Slot<PlainProgram>) -> &'static str {
        "none"
    }

    fn session_status(&self, size: (usize, usize)) -> Option<SessionStatus> {
        let session = self.session.as_ref();
        session.map(|session| session.status(size))
    }

    fn has_ended(&self) -> bool {
        self.ended().is_some()
    }

    fn not_running(slot: &Slot<PlainProgram>) -> RpcError {
        let name = &slot.settings().name;
        if slot.own().session.is_none() {
            return slot.not_started();
        }
        let text = format!("{name} has ended: it takes no more input");
        RpcError::new(Fault::Refused, text).next(format!("missiond session output {name}"))
    }

    async fn type_and_wait(
        slot: &mut Slot<PlainProgram>,
        bytes: Vec<u8>,
        person: Person,
        reply: slot::Answer<TypedCommand>,
    ) {
        slot.type_and_wait(bytes, person, reply).await;
    }

    async fn end_for(slot: &mut Slot<PlainProgram>, why: String) {
        if slot
            .own()
            .session
            .as_ref()
            .is_some_and(PlainSession::runs_on)
        {
            slot.end_session(SessionEnding::of(why)).await;
        }
    }

    fn leaves(&mut self, why: String) {
        if let Some(session) = &mut self.session {
            session.leaves(why);
        }
    }

    fn note_end(slot: &mut Slot<PlainProgram>, report: &ExitReport, at: DateTime<Utc>) {
        slot.note_end(report, at);
    }

    async fn save_record(slot: &mut Slot<PlainProgram>) {
        slot.save_record().await;
    }
}

impl PlainProgram {
    fn ended(&self) -> Option<&Ended> {
        self.session.as_ref()?.ended.as_ref()
    }
}

impl Slot<PlainProgram> {
    /// Checks a session after time has passed, or its owner has ended.
    async fn look_after_session(&mut self) {
        self.settle_typing().await;
        match self.must_end().await {
            Some(ending) => self.end_session(ending).await,
            None => self.leave_if_over(),
        }
    }

    async fn must_end(&mut self) -> Option<SessionEnding> {
        let session = self.own().session.as_ref()?;
        if let Some(ending) = session.must_end() {
            return Some(ending);
        }
        let idle = session.idle_for_too_long()?;
        // A session with a program behind its prompt is not idle, however silent, nor is one that a person watches.
        if self.screen().viewers() == 0 && self.is_alone().await {
            let why = format!("idle at its prompt for {}", words(idle));
            return Some(SessionEnding::of(why));
        }
        self.own_mut().session.as_mut()?.is_active();
        None
    }

    /// Ends the program. Its output is kept, as after every end.
    async fn end_session(&mut self, ending: SessionEnding) {
        let why = ending.why.clone();
        if let Some(session) = &mut self.own_mut().session {
            session.ending = Some(ending);
        }
        self.warn(&format!("it is ended: {why}"));
        self.input(Input::Expire(why)).await;
    }

    /// Removes an ended session after the time in `keep`.
    fn leave_if_over(&mut self) {
        let Some(session) = &mut self.own_mut().session else {
            return;
        };
        let (Some(ended), Some(keep)) = (&session.ended, session.terms.keep) else {
            return;
        };
        if moment(ended.at, keep) <= Instant::now() {
            session.leaves(format!("it ended, and was kept for {}", words(keep)));
        }
    }

    /// Tells whether the shell is the only process of its session.
    async fn is_alone(&mut self) -> bool {
        let Some(pid) = self.machine().pid() else {
            return true;
        };
        let used = self.context().meter.of(vec![pid]).await;
        used.first()
            .is_some_and(|usage| usage.is_none_or(|usage| usage.processes <= 1))
    }

    /// Records the end of a session's program for a later daemon.
    fn note_end(&mut self, report: &ExitReport, at: DateTime<Utc>) {
        let by_machine = self.machine().ends_because();
        let Some(session) = &mut self.own_mut().session else {
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
        self.screen_mut().check_waiters();
        self.screen_mut().disappoint_waiters();
    }

    async fn save_record(&mut self) {
        let Some(made) = SessionRecord::of(self.settings()) else {
            return;
        };
        let file = self.context().session_file(&self.settings().name);
        let (cols, rows) = (self.settings().cols, self.settings().rows);
        let ended = self.own().ended().cloned();
        let shown = file.display().to_string();
        let save = move || {
            let record = SessionRecord {
                cols,
                rows,
                ended,
                // The record may have been removed.
                ..SessionRecord::load(&file).unwrap_or(made)
            };
            record.save(&file)
        };
        if let Err(error) = self.disk().run(save).await.flatten() {
            self.warn(&format!("{shown} can't be written: {error}"));
        }
    }

    /// Adopts a session whose shim does not answer. The shim may have been stopped; the orphans of a dead one are
    /// ended. A living shim is left alone, whether or not it can be reached.
    async fn take_up_session_left(&mut self) -> bool {
        let may_have_shim = self.may_have_shim();
        if may_have_shim && self.take_up_awoken().await {
            return true;
        }
        let found = match may_have_shim || self.had_shim() {
            true => self.end_orphans().await,
            false => Some(OrphansFound::Ended(0)),
        };
        match found {
            Some(OrphansFound::Ended(_)) => self.take_up_ended().await,
            Some(OrphansFound::Living(shim)) => {
                let lives = LaunchError::Unreached { pid: shim.pid() };
                self.recall_end(None, Some(lives.to_string()));
            }
            None => {}
        }
        false
    }

    /// Handles a session without a shim: its end is known, or it ended with its shim.
    async fn take_up_ended(&mut self) {
        let recording = self.recording().to_owned();
        let looked = self.disk().run(move || recording.exists()).await;
        let has_run = looked.unwrap_or(false);
        let known = self.own().ended().cloned();
        if !has_run && known.is_none() {
            return;
        }
        if has_run {
            self.replay_ended().await;
        }
        let (report, why) = match known {
            Some(Ended { report, why, .. }) => (report, why),
            None => {
                self.warn("its shim is gone, and how it ended is not known");
                self.tell(shim_lost());
                self.note_end(&ExitReport::UNKNOWN, Utc::now());
                self.save_record().await;
                let why = Cause::ShimLost.name().to_owned();
                (ExitReport::UNKNOWN, Some(why))
            }
        };
        self.recall_end(Some(report), why);
    }
}

fn moment(at: DateTime<Utc>, more: Duration) -> Instant {
    let now = Instant::now();
    match (at - Utc::now()).to_std() {
        Ok(ahead) => now + ahead + more,
        // It is in the past: subtract the difference.
        Err(_) => now + more.saturating_sub((Utc::now() - at).to_std().unwrap_or_default()),
    }
}

fn words(time: Duration) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_millis(
        time.as_millis().try_into().unwrap_or(u64::MAX),
    ))
}
