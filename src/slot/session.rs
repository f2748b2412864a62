//! What a session has beyond a slot: its terms, its prompt, and when it is over.

use super::adopt::shim_lost;
use super::handle::Answer;
use super::machine::{Cause, Input};
use super::output::{Output, Part, Taken};
use super::owner::Owner;
use super::prompt::{Finished, Prompt};
use super::record::{Ended, Record};
use super::task::Slot;
use crate::config::SessionTerms;
use crate::control::protocol::{Fault, RpcError, SessionStatus, What};
use crate::process_stat::Stat;
use crate::shim::{ExitReport, ToShim};
use crate::terminal::At;
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

pub(super) struct Session {
    pub terms: SessionTerms,
    pub ended: Option<Ended>,
    pub prompt: Option<Prompt>,
    typing: Option<Typing>,
    /// When something was last written or read.
    active: Instant,
    owner: Owner,
    /// Why it is to be removed.
    leaving: Option<String>,
    /// That it is to end was said, and why.
    ending: Option<String>,
    /// What ran when a command was typed.
    program: Option<Program>,
    /// Since when it is known that something else runs there.
    replaced: Option<Instant>,
    /// Why nothing more is to be heard from the shell.
    silenced: Option<&'static str>,
}

/// A process, by its program and its words: `exec bash` leaves the same program.
#[derive(PartialEq, Eq)]
struct Program {
    file: PathBuf,
    words: Vec<u8>,
}

/// Somebody waits for a command.
struct Typing {
    stage: Stage,
    began: Instant,
    reply: Answer<Typed>,
}

enum Stage {
    /// For the first prompt; then this is written.
    Prompt(Vec<u8>),
    /// For the prompt behind it. Its output began here at the earliest.
    Command(u64),
}

/// A command that was typed has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    pub exit_code: Option<i32>,
    /// What it wrote, by its place in the output.
    pub output: Option<(u64, u64)>,
}

impl Session {
    /// As it is on the disk, where it is there already.
    pub fn new(terms: SessionTerms, file: &Path) -> Session {
        let ended = Record::load(file).ok().and_then(|record| record.ended);
        let prompt = terms.marks.as_ref().map(|marks| Prompt::new(&marks.token));
        Session {
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
        let over = self.terms.ends_at.filter(|_| self.ending.is_none());
        let over = over.map(|at| moment(at, Duration::ZERO));
        let rests = self.prompt.as_ref().is_some_and(Prompt::is_ready);
        let idle = self.terms.idle_close.filter(|_| rests);
        let idle = idle.map(|idle| self.active + idle);
        let typing = self.typing.as_ref().map(|_| Instant::now() + LOOK);
        [over, idle, typing].into_iter().flatten().min()
    }

    /// Why its program is to be ended now.
    fn must_end(&self) -> Option<String> {
        if self.ended.is_some() || self.ending.is_some() {
            return None;
        }
        let over = self.terms.ends_at.filter(|at| *at <= Utc::now());
        if let Some(at) = over {
            let time = (at - self.terms.created_at).to_std().unwrap_or_default();
            return Some(format!("timed out after {}", words(time)));
        }
        let pid = self
            .terms
            .owner_process
            .filter(|_| self.owner.is_gone())?
            .pid;
        Some(format!("its owner, process {pid}, has ended"))
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
        at_prompt: terms.marks.as_ref().map(|_| false),
        leaving: None,
    }
}

/// Returns when a session needs to be looked after; never for a slot that is none.
pub(super) async fn due(session: Option<&Session>) {
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
    /// Keeps what the program wrote, live or from its recording, and hears what its shell says. True where older
    /// output has to make room for the first time.
    pub(super) fn keep_output(&mut self, at: At, bytes: &[u8]) -> bool {
        let taken = self.output.push(at, bytes);
        if let Some(session) = self.session.as_mut().filter(|_| taken != Taken::Known) {
            session.is_active();
            if let Some(prompt) = &mut session.prompt {
                prompt.feed(bytes);
            }
        }
        taken == Taken::Overflow
    }

    pub(super) fn tell_overflow(&mut self) {
        let kept = self.output.room();
        self.tell(What::BufferOverflow { kept });
    }

    /// Time has passed for a session, or its owner has ended.
    pub(super) async fn look_after_session(&mut self) {
        self.settle_typing().await;
        let Some(session) = &mut self.session else {
            return;
        };
        if let Some(why) = session.must_end() {
            session.ending = Some(why.clone());
            self.warn(&format!("it is ended: {why}"));
            return self.input(Input::Expire(why)).await;
        }
        self.leave_if_over().await;
    }

    async fn leave_if_over(&mut self) {
        let Some(session) = &self.session else { return };
        if session.due().is_none_or(|due| due > Instant::now()) {
            return;
        }
        let why = match (&session.ended, session.terms.keep, session.terms.idle_close) {
            (Some(_), Some(keep), _) => Some(format!("it ended, and was kept for {}", words(keep))),
            (None, _, Some(idle)) if session.active.elapsed() >= idle => {
                Some(format!("idle at its prompt for {}", words(idle)))
            }
            _ => None,
        };
        // What runs behind a prompt is no idle session, however silent, nor is one that somebody looks at.
        let watched = self.audience.len() > 0;
        let alone = session.ended.is_some() || (!watched && self.is_alone().await);
        let Some(session) = &mut self.session else {
            return;
        };
        match why {
            Some(why) if alone => session.leaving = Some(why),
            Some(_) => session.is_active(),
            None => {}
        }
    }

    /// Whether the shell is the only process of its session.
    async fn is_alone(&mut self) -> bool {
        let Some(pid) = self.machine.pid() else {
            return true;
        };
        let used = self.world.meter.of(vec![pid]).await;
        used.first()
            .is_some_and(|usage| usage.is_none_or(|usage| usage.processes <= 1))
    }

    /// The program of a session has ended: that is written down for a daemon that comes later.
    pub(super) fn note_end(&mut self, report: &ExitReport, at: DateTime<Utc>) {
        let Some(session) = &mut self.session else {
            return;
        };
        session.ended = Some(Ended {
            at,
            report: report.clone(),
            why: session.ending.clone(),
        });
        self.end_typing(report);
        self.check_waiters();
        self.disappoint_waiters();
        self.save_record();
    }

    pub(super) fn save_record(&mut self) {
        let file = self.world.session_file(&self.running.name);
        let (cols, rows) = (self.running.cols, self.running.rows);
        let ended = self
            .session
            .as_ref()
            .and_then(|session| session.ended.clone());
        let saved = Record::load(&file).and_then(|record| {
            let record = Record {
                cols,
                rows,
                ended,
                ..record
            };
            record.save(&file)
        });
        if let Err(error) = saved {
            self.warn(&format!("{} can't be written: {error}", file.display()));
        }
    }

    /// A session that no shim has any more: how it ended is known, or it went with its shim.
    pub(super) async fn take_up_ended(&mut self) {
        let has_run = self.paths.recording.exists();
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
        self.last_exit = Some(report);
    }

    pub(super) fn clear_output(&mut self) {
        self.output.clear();
        self.tell_shim(&ToShim::Mark {
            text: CLEARED.to_owned(),
        });
    }

    // ---- commands that are typed, and waited for

    /// Types a command once the shell is at its prompt, and replies when it is there again.
    pub(super) async fn type_and_wait(&mut self, bytes: Vec<u8>, reply: Answer<Typed>) {
        match self.may_type() {
            Err(error) => drop(reply.send(Err(error))),
            Ok(()) => {
                let typing = Typing {
                    stage: Stage::Prompt(bytes),
                    began: Instant::now(),
                    reply,
                };
                if let Some(session) = &mut self.session {
                    session.typing = Some(typing);
                }
                self.settle_typing().await;
            }
        }
    }

    fn may_type(&self) -> Result<(), RpcError> {
        let name = &self.running.name;
        let refused = |text: String| Err(RpcError::new(Fault::Refused, text));
        if self.link.is_none() {
            return Err(self.not_running());
        }
        let Some(session) = &self.session else {
            return refused(format!(
                "{name} is a slot: when a command is done can't be told"
            ));
        };
        let Some(prompt) = &session.prompt else {
            return Err(cant_tell(
                name,
                "it is no bash or zsh that missiond started",
            ));
        };
        let unheard = session.typing.is_none() && !prompt.takes_lines();
        if let Some(why) = session
            .silenced
            .or_else(|| self.silence())
            .filter(|_| unheard)
        {
            return Err(cant_tell(name, why));
        }
        if session.typing.is_some() || (prompt.is_seen() && !prompt.takes_lines()) {
            let text = format!("{name} is busy with another command; nothing was typed");
            return Err(
                RpcError::new(Fault::Refused, text).next(format!("missiond wait {name} --prompt"))
            );
        }
        Ok(())
    }

    /// Goes on with a command that somebody waits for, as far as the shell has come.
    pub(super) async fn settle_typing(&mut self) {
        let Some(session) = &mut self.session else {
            return;
        };
        let (Some(typing), Some(prompt)) = (&mut session.typing, &mut session.prompt) else {
            return;
        };
        if typing.reply.is_closed() {
            session.typing = None;
            return;
        }
        match &mut typing.stage {
            Stage::Prompt(bytes) if prompt.takes_lines() => {
                let bytes = std::mem::take(bytes);
                typing.stage = Stage::Command(self.output.end());
                prompt.submit();
                // Which program is asked to run it; another one would not say when it is done.
                session.program = self.machine.pid().and_then(program_of);
                (session.replaced, session.silenced) = (None, None);
                self.write_down(
                    "a command",
                    "it was typed, and its end is waited for",
                    bytes,
                )
                .await;
            }
            Stage::Prompt(_) if typing.began.elapsed() < FIRST_PROMPT => self.settle_silence(),
            Stage::Prompt(_) => self.fail_typing("it has not shown a prompt"),
            Stage::Command(_) => self.settle_command(),
        }
    }

    fn settle_command(&mut self) {
        let Some(prompt) = self
            .session
            .as_ref()
            .and_then(|session| session.prompt.as_ref())
        else {
            return;
        };
        if let Some(Finished { code, output }) = prompt.finished() {
            let exit_code = Some(code);
            self.reply_typing(Ok(Typed { exit_code, output }));
        } else if prompt.is_unfinished() {
            let name = &self.running.name;
            let text = format!("{name} waits for the rest of the command");
            let error = RpcError::new(Fault::Refused, text).next(format!(
                "type the rest, or give it up: missiond keys {name} ctrl+c"
            ));
            self.reply_typing(Err(error));
        } else {
            self.note_replaced();
            self.settle_silence();
        }
    }

    fn settle_silence(&mut self) {
        if let Some(why) = self.silence() {
            if let Some(session) = &mut self.session {
                session.silenced = Some(why);
            }
            self.fail_typing(why);
        }
    }

    /// Why the shell will not say when a command is done, if that is so.
    fn silence(&self) -> Option<&'static str> {
        let (session, pid) = (self.session.as_ref()?, self.machine.pid()?);
        if session.replaced.is_some_and(|at| at.elapsed() >= REPLACED) {
            return Some("its shell has become another program");
        }
        // Shells ask for pastes in brackets while they edit a line, and while nothing else runs.
        let edits = self.terminal.modes_set().bracketed_paste && session.active.elapsed() >= SHOWN;
        (edits && waits_in_foreground(pid)).then_some("its shell shows a prompt without the marks")
    }

    /// `exec` leaves nobody who would say that a command is done.
    fn note_replaced(&mut self) {
        let now = self.machine.pid().and_then(program_of);
        let Some(session) = &mut self.session else {
            return;
        };
        if now.is_some() && session.program.is_some() && session.program != now {
            session.replaced.get_or_insert_with(Instant::now);
        }
    }

    fn end_typing(&mut self, report: &ExitReport) {
        let Some(session) = &mut self.session else {
            return;
        };
        let Some(typing) = session.typing.take() else {
            return;
        };
        let answer = match typing.stage {
            Stage::Prompt(_) => Err(RpcError::new(
                Fault::Failed,
                "it ended before its prompt came; nothing was typed",
            )),
            Stage::Command(from) => {
                let began = session.prompt.as_ref().and_then(Prompt::began);
                Ok(Typed {
                    exit_code: exit_code(report),
                    output: Some((began.unwrap_or(from), self.output.end())),
                })
            }
        };
        let _ = typing.reply.send(answer);
    }

    fn fail_typing(&mut self, why: &str) {
        let error = cant_tell(&self.running.name, why);
        self.reply_typing(Err(error));
    }

    fn reply_typing(&mut self, answer: Result<Typed, RpcError>) {
        let typing = self
            .session
            .as_mut()
            .and_then(|session| session.typing.take());
        if let Some(typing) = typing {
            // A client that went away needs no answer.
            let _ = typing.reply.send(answer);
        }
    }
}

/// What of the output is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// From this byte up to that one, as much as fits into an answer.
    Range(u64, u64),
    /// The same, and all of it.
    Whole(u64, u64),
    LastLines(usize),
    /// What an agent has not read yet.
    Unread,
}

impl Output {
    pub(super) fn wanted(&mut self, wanted: Wanted, finished: bool) -> Part {
        match wanted {
            Wanted::Range(from, to) => self.part(from, to),
            Wanted::Whole(from, to) => self.whole(from, to),
            Wanted::LastLines(lines) => self.part(self.last_lines(lines), u64::MAX),
            Wanted::Unread => self.read_on(finished),
        }
    }
}

fn cant_tell(name: &str, why: &str) -> RpcError {
    let text = format!("when a command of {name} is done can't be told: {why}");
    RpcError::new(Fault::Refused, text).next(format!(
        "wait for silence instead: missiond type {name} … --quiet 500ms"
    ))
}

/// As shells say it: 128 and its number for a signal.
pub fn exit_code(report: &ExitReport) -> Option<i32> {
    report.code.or(report.signal.map(|signal| 128 + signal))
}

fn program_of(pid: u32) -> Option<Program> {
    Some(Program {
        file: std::fs::read_link(format!("/proc/{pid}/exe")).ok()?,
        words: std::fs::read(format!("/proc/{pid}/cmdline")).ok()?,
    })
}

/// Whether it waits for something, and the keys of its terminal go to its own process group.
fn waits_in_foreground(pid: u32) -> bool {
    Stat::of(pid).is_some_and(|stat| {
        stat.field(Stat::STATE) == Some("S")
            && stat.field(Stat::GROUP) == stat.field(Stat::FOREGROUND)
    })
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
