//! The one task that owns a slot: it brings inputs to the machine and does what the machine says.

use super::answer::{self, Place};
use super::handle::{Answer, Command, MAX_COMMANDS, SlotHandle};
use super::journal::{Journal, Paths};
use super::machine::{self, Effect, Input, Judge, Machine, Pace, Reply, Sight, Token};
use super::memory::Memory;
use super::world::World;
use crate::audit::Record;
use crate::config::{Kind, SlotConfig};
use crate::control::protocol::{SlotStatus, What};
use crate::hook::HookEvent;
use crate::policy::{Ask, Decision, Verdict};
use crate::reading::{Observer, Seen, State};
use crate::shim::{ExitReport, FromShim, LinkError, ShimLink, ToShim};
use crate::terminal::{Frame, Terminal};
use chrono::{DateTime, Utc};
use regex::Regex;
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::{mpsc, oneshot, watch};

/// Between TERM and KILL: Claude Code ends within a second; a tool may have to clean up.
const GRACE_MS: u64 = 5_000;
/// Clients that may wait for output of one slot at once.
const MAX_WAITERS: usize = 64;

/// The future that looks for the answer of the turn that has just ended.
type Search = Pin<Box<dyn Future<Output = machine::Answer> + Send>>;

pub struct Slot {
    pub(super) world: Arc<World>,
    /// The settings that the running program was started with.
    pub(super) running: Arc<SlotConfig>,
    pub(super) machine: Machine,
    pub(super) judge: Arc<dyn Judge>,
    pub(super) link: Option<ShimLink>,
    pub(super) terminal: Terminal,
    pub(super) observer: Observer,
    pub(super) journal: Journal,
    pub(super) paths: Paths,
    pub(super) memory: Memory,
    /// The number of the last input that was sent to the shim.
    pub(super) last_input: u64,
    pub(super) started_at: Option<DateTime<Utc>>,
    pub(super) last_exit: Option<ExitReport>,
    /// The last hook that was heard, for `why`.
    pub(super) last_hook: Option<(DateTime<Utc>, String)>,
    last_sight: Option<Sight>,
    since: DateTime<Utc>,
    turn_began: Option<Place>,
    searching: Option<Search>,
    replies: HashMap<Token, Answer<Reply>>,
    waiters: Vec<(Regex, Answer<String>)>,
    status: watch::Sender<SlotStatus>,
    pulse: watch::Sender<u64>,
}

/// Starts the task of a slot. It first looks for a shim that an earlier daemon left.
pub fn start(
    world: Arc<World>,
    config: Arc<SlotConfig>,
    judge: Arc<dyn Judge>,
) -> std::io::Result<(SlotHandle, tokio::task::JoinHandle<()>)> {
    let paths = Paths::new(&world.logs, &config.name);
    let journal = Journal::open(&paths)?;
    let (memory, fault) = Memory::load(&world.memory_file(&config.name));
    let seed = uuid::Uuid::new_v4().as_u64_pair().0;
    let machine = Machine::new(config.clone(), judge.clone(), Pace::default(), seed);
    let (status, status_seen) = watch::channel(first_status(&config, &paths));
    let (pulse, pulse_seen) = watch::channel(0);
    let (commands, queue) = mpsc::channel(MAX_COMMANDS);
    let slot = Slot {
        terminal: Terminal::new(config.cols.into(), config.rows.into()),
        observer: Observer::new(),
        running: config,
        world,
        machine,
        judge,
        link: None,
        journal,
        paths,
        memory,
        last_input: 0,
        started_at: None,
        last_exit: None,
        last_hook: None,
        last_sight: None,
        since: Utc::now(),
        turn_began: None,
        searching: None,
        replies: HashMap::new(),
        waiters: Vec::new(),
        status,
        pulse,
    };
    let task = tokio::spawn(slot.run(queue, fault));
    Ok((SlotHandle::new(commands, status_seen, pulse_seen), task))
}

fn first_status(config: &SlotConfig, paths: &Paths) -> SlotStatus {
    SlotStatus {
        slot: config.name.clone(),
        role: config.role.clone(),
        kind: kind_name(config.kind).to_owned(),
        state: State::Exited,
        since: Utc::now(),
        started_at: None,
        pid: None,
        restarts: 0,
        session_id: None,
        task_id: None,
        cwd: config.cwd.clone(),
        dialog: None,
        gate: "none".to_owned(),
        mode: None,
        last_error: None,
        owner: "user".to_owned(),
        log: paths.log.clone(),
        doing: None,
        background: 0,
        queued: 0,
        changed: false,
        waits_because: None,
        exit_code: None,
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Claude => "claude",
        Kind::Shell => "shell",
    }
}

impl Slot {
    async fn run(mut self, mut queue: mpsc::Receiver<Command>, fault: Option<String>) {
        if let Some(text) = fault {
            self.tell(What::Warning { text });
        }
        self.adopt().await;
        loop {
            self.publish();
            tokio::select! {
                // Commands first: an interrupt or a stop never waits behind output.
                biased;
                command = queue.recv() => match command {
                    Some(Command::Shutdown { keep, done }) => return self.shut_down(keep, done).await,
                    Some(command) => self.command(command).await,
                    None => return,
                },
                message = next_of(&mut self.link) => self.hear_shim(message).await,
                answer = found_by(&mut self.searching) => {
                    self.searching = None;
                    self.input(Input::Found(answer)).await;
                }
                () = until(self.machine.poll_timeout()) => self.input(Input::TimePassed).await,
            }
        }
    }

    /// Brings one input to the machine and does all that follows from it.
    pub(super) async fn input(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let effects = self.machine.handle(input, Instant::now());
            inputs.extend(self.perform(effects).await);
        }
    }

    /// Does what the machine says, in order; what comes of it goes back to the machine.
    async fn perform(&mut self, effects: Vec<Effect>) -> Vec<Input> {
        let mut inputs = Vec::new();
        // Without its entry in the audit a rule allows nothing.
        let mut unaudited = false;
        for effect in effects {
            match effect {
                Effect::Tell(what) => self.tell(what),
                Effect::Audit(verdict, ask, decider) => {
                    unaudited |= !self.audit_verdict(verdict, &ask, decider).await;
                }
                Effect::Press { .. } if unaudited => {
                    self.warn("a key was withheld: the audit can't be written")
                }
                Effect::Press {
                    bytes,
                    key,
                    reason,
                    submits,
                } => self.press(bytes, &key, &reason, submits).await,
                Effect::Reply(token, reply) => {
                    self.reply(token, if unaudited { unallowed(reply) } else { reply })
                }
                Effect::StopTree => self.tell_shim(&ToShim::Stop { grace_ms: GRACE_MS }),
                Effect::FindAnswer => self.find_answer(),
                Effect::Spawn => inputs.extend(self.spawn().await),
            }
        }
        inputs
    }

    async fn command(&mut self, command: Command) {
        match command {
            Command::Machine {
                token,
                input,
                reply,
            } => {
                self.replies.insert(token, reply);
                self.note_hook(&input);
                self.input(*input).await;
            }
            Command::Withdraw(token) => {
                self.replies.remove(&token);
                self.input(Input::Withdraw(token)).await;
            }
            Command::Write { bytes, reply } => self.write(bytes, reply).await,
            Command::Screen { params, reply } => drop(reply.send(Ok(self.screen(&params)))),
            Command::Search {
                pattern,
                limit,
                reply,
            } => drop(reply.send(Ok(self.search(&pattern, limit)))),
            Command::History { last, reply } => drop(reply.send(Ok(self.history(last)))),
            Command::Why { reply } => drop(reply.send(Ok(self.evidence()))),
            Command::AwaitOutput { pattern, reply } => self.await_output(pattern, reply),
            Command::Reconfigure { config, judge } => self.reconfigure(config, judge).await,
            Command::Note(what) => self.tell(what),
            Command::Shutdown { .. } => {}
        }
    }

    async fn reconfigure(&mut self, config: Arc<SlotConfig>, judge: Arc<dyn Judge>) {
        self.judge = judge.clone();
        self.input(Input::Rules(judge)).await;
        self.input(Input::Settings(config)).await;
    }

    async fn hear_shim(&mut self, message: Result<FromShim, LinkError>) {
        match message {
            Ok(FromShim::Output { at, bytes }) => {
                let frames = self.terminal.feed(at, &bytes);
                let replies = self.terminal.take_replies();
                if !replies.is_empty() {
                    self.next_input(replies);
                }
                self.pulse.send_modify(|count| *count += 1);
                self.read(frames).await;
            }
            Ok(FromShim::Quiet { at }) => {
                let frames = self.terminal.quiet(at);
                self.read(frames).await;
            }
            Ok(FromShim::Resized { at, cols, rows }) => {
                let frames = self.terminal.resize(at, cols.into(), rows.into());
                self.read(frames).await;
            }
            Ok(FromShim::Written { .. } | FromShim::Rotated { .. }) => {}
            Ok(FromShim::NotRotated { reason }) => {
                tracing::debug!(slot = %self.running.name, "not rotated: {reason}")
            }
            Ok(FromShim::Refused { reason, .. }) => {
                self.warn(&format!("keys were not written: {reason}"))
            }
            Ok(FromShim::Trouble { text }) => self.warn(&text),
            Ok(FromShim::Exited(report)) => self.ended(report).await,
            Err(error) => self.lost(error).await,
        }
    }

    /// Reads each whole frame; what has not changed is not told again.
    pub(super) async fn read(&mut self, frames: Vec<Frame>) {
        for frame in frames {
            self.check_waiters();
            let Some(sight) = self.sight(&frame) else {
                continue;
            };
            if self.last_sight.as_ref() != Some(&sight) {
                self.last_sight = Some(sight.clone());
                self.input(Input::Saw(sight)).await;
            }
        }
    }

    fn sight(&mut self, frame: &Frame) -> Option<Sight> {
        if self.running.kind == Kind::Shell {
            return None;
        }
        let observed = self.observer.see(frame);
        Some(Sight {
            state: observed.state,
            certain: observed.reading.seen != Seen::Unknown,
            dialog: observed.dialog.clone(),
            composer: observed.reading.composer.clone(),
            mode: observed.reading.mode.clone(),
            last_error: observed.reading.last_error.clone(),
            background: observed.reading.background,
        })
    }

    pub(super) async fn ended(&mut self, report: ExitReport) {
        self.tell_shim(&ToShim::Dismiss);
        if let Some(mut link) = self.link.take() {
            // The shim ends by itself if this does not reach it before it is asked again.
            let _ = link.flush().await;
        }
        let said = self.last_words();
        self.forget_screen();
        self.last_exit = Some(report.clone());
        self.input(Input::Ended { report, said }).await;
    }

    /// The connection broke. A shim that lives is taken up again; with a dead one the program is gone too.
    async fn lost(&mut self, error: LinkError) {
        self.link = None;
        if self.take_up_again().await {
            return;
        }
        self.warn(&format!("the shim is lost: {error}"));
        self.ended(ExitReport {
            code: None,
            signal: None,
        })
        .await;
    }

    /// What a program that failed to start said last.
    fn last_words(&self) -> Option<String> {
        if self
            .last_sight
            .as_ref()
            .is_some_and(|sight| sight.state != State::Starting && sight.state != State::Exited)
        {
            return None;
        }
        let lines = self.terminal.lines(6);
        let words: Vec<&str> = lines
            .iter()
            .map(|line| line.trim())
            .filter(|line| !line.is_empty())
            .collect();
        (!words.is_empty()).then(|| words.join(" / "))
    }

    pub(super) fn forget_screen(&mut self) {
        self.last_sight = None;
        self.searching = None;
        self.turn_began = None;
    }

    fn note_hook(&mut self, input: &Input) {
        let Input::Heard(_, event) = input else {
            return;
        };
        self.last_hook = Some((
            Utc::now(),
            format!("{:?}", event.what).chars().take(120).collect(),
        ));
        self.follow_session(event);
    }

    /// `/clear` begins a new conversation under a new id, and a hook is how one hears of it.
    fn follow_session(&mut self, event: &HookEvent) {
        let Some(id) = event.session_id.as_ref().and_then(|id| id.parse().ok()) else {
            return;
        };
        let before = self.memory.session().map(|session| session.id);
        if !self.memory.enter(id, event.transcript.clone()) {
            return;
        }
        self.save_memory();
        if before.is_some_and(|before| before != id) {
            self.tell(What::Session {
                session_id: id.to_string(),
            });
        }
    }

    pub(super) fn save_memory(&mut self) {
        let file = self.world.memory_file(&self.running.name);
        if let Err(error) = self.memory.save(&file) {
            self.warn(&format!("{} can't be written: {error}", file.display()));
        }
    }

    async fn audit_verdict(
        &mut self,
        verdict: Verdict,
        ask: &Ask,
        decider: machine::Decider,
    ) -> bool {
        let record = Record {
            session: self.memory.session().map(|session| session.id.to_string()),
            verdict: Some(verdict.decision),
            rule: verdict.rule,
            why: verdict.why,
            by: match decider {
                machine::Decider::Policy => "policy",
                machine::Decider::Person => "person",
            }
            .to_owned(),
            ..Record::verdict(&self.running.name, &ask.tool, &ask.input)
        };
        let by_rule = decider == machine::Decider::Policy && verdict.decision == Decision::Allow;
        self.audited(record).await || !by_rule
    }

    async fn audited(&mut self, record: Record) -> bool {
        let written = self.world.audit.write(record).await;
        if let Err(error) = &written {
            self.warn(&format!("the audit can't be written: {error}"));
        }
        written.is_ok()
    }

    async fn press(&mut self, bytes: Vec<u8>, key: &str, reason: &str, submits: bool) {
        self.audited(Record::key(&self.running.name, key, reason))
            .await;
        self.tell(What::Key {
            key: key.to_owned(),
            reason: reason.to_owned(),
        });
        if submits {
            self.turn_began = self.transcript().map(|path| Place::end_of(&path));
        }
        self.next_input(bytes);
    }

    /// Raw input, for experts: not a key that missiond chose, but written down like one.
    async fn write(&mut self, bytes: Vec<u8>, reply: Answer<()>) {
        let outcome = if self.link.is_some() {
            let key = format!("write {} bytes", bytes.len());
            self.press(bytes, &key, "a person writes raw input", false)
                .await;
            Ok(())
        } else {
            Err(self.not_running())
        };
        let _ = reply.send(outcome);
    }

    fn next_input(&mut self, bytes: Vec<u8>) {
        self.last_input += 1;
        self.tell_shim(&ToShim::Input {
            n: self.last_input,
            bytes,
        });
    }

    pub(super) fn tell_shim(&mut self, message: &ToShim) {
        let Some(link) = self.link.as_mut() else {
            return;
        };
        if let Err(error) = link.send(message) {
            self.warn(&format!("the shim was not reached: {error}"));
        }
    }

    fn find_answer(&mut self) {
        let place = self.answer_place();
        let on_screen = crate::reading::last_answer(&self.terminal.screen());
        self.searching = Some(Box::pin(answer::find(place, on_screen)));
    }

    /// Where the turn began; `/clear` may have begun another file since.
    fn answer_place(&mut self) -> Option<Place> {
        let began = self.turn_began.take();
        match (self.transcript(), began) {
            (Some(now), Some(began)) if began.transcript == now => Some(began),
            (Some(now), _) => Some(Place {
                transcript: now,
                offset: 0,
            }),
            (None, began) => began,
        }
    }

    fn reply(&mut self, token: Token, reply: Result<Reply, crate::control::protocol::RpcError>) {
        if let Some(waiting) = self.replies.remove(&token) {
            // A client that went away needs no answer.
            let _ = waiting.send(reply);
        }
    }

    pub(super) fn tell(&mut self, what: What) {
        if let What::State { to, .. } = &what {
            self.since = Utc::now();
            self.tell_shim(&ToShim::Mark {
                text: machine::state_name(*to).to_owned(),
            });
        }
        let event = self.world.bus.publish(Some(&self.running.name), what);
        if let Some(error) = self.journal.note(&event) {
            tracing::error!(slot = %self.running.name, "the log can't be written: {error}");
            let text = format!("the log can't be written: {error}");
            self.world
                .bus
                .publish(Some(&self.running.name), What::Warning { text });
        }
    }

    pub(super) fn warn(&mut self, text: &str) {
        self.tell(What::Warning {
            text: text.to_owned(),
        });
    }

    fn await_output(&mut self, pattern: Regex, reply: Answer<String>) {
        use crate::control::protocol::{Fault, RpcError};
        self.waiters.retain(|(_, reply)| !reply.is_closed());
        if self.waiters.len() >= MAX_WAITERS {
            let text = format!("{MAX_WAITERS} clients wait for output of this slot already");
            let _ = reply.send(Err(RpcError::new(Fault::Refused, text)));
            return;
        }
        self.waiters.push((pattern, reply));
        self.check_waiters();
    }

    fn check_waiters(&mut self) {
        if self.waiters.is_empty() {
            return;
        }
        let lines = self.terminal.lines(usize::from(self.running.rows) + 200);
        let waiters = std::mem::take(&mut self.waiters);
        for (pattern, reply) in waiters {
            match lines.iter().find(|line| pattern.is_match(line)) {
                Some(line) => drop(reply.send(Ok(line.clone()))),
                None => self.waiters.push((pattern, reply)),
            }
        }
    }

    fn publish(&mut self) {
        let now = SlotStatus {
            state: self.machine.state(),
            since: self.since,
            started_at: self.started_at.filter(|_| self.machine.is_up()),
            pid: self.machine.pid(),
            restarts: self.machine.restarts(),
            session_id: self.memory.session().map(|session| session.id.to_string()),
            dialog: self.machine.dialog().cloned(),
            gate: self.gate().to_owned(),
            mode: self.machine.mode().map(str::to_owned),
            last_error: self.machine.last_error(),
            doing: self.machine.doing(Instant::now()),
            background: self.machine.background(),
            queued: self.machine.queued(),
            waits_because: self.machine.why_a_person(),
            exit_code: self.last_exit.as_ref().and_then(|report| report.code),
            changed: self.machine.is_up() && **self.machine.config() != *self.running,
            ..first_status(self.machine.config(), &self.paths)
        };
        self.status.send_if_modified(|status| {
            let changed = *status != now;
            *status = now;
            changed
        });
    }

    fn gate(&self) -> &'static str {
        match self.running.kind {
            Kind::Shell => "none",
            Kind::Claude if self.machine.is_gated() => "hook",
            Kind::Claude if self.running.gate == crate::config::Gate::Screen => "screen",
            Kind::Claude => "ungated",
        }
    }

    async fn shut_down(mut self, keep: bool, done: oneshot::Sender<()>) {
        if keep {
            if let Some(link) = self.link.as_mut() {
                let _ = link.flush().await;
            }
        } else {
            self.input(Input::Stop(0)).await;
            while !self.machine.is_gone() && self.link.is_some() {
                let message = next_of(&mut self.link).await;
                self.hear_shim(message).await;
            }
        }
        let _ = done.send(());
    }
}

/// A plain program is taken as ready from its start: nothing is read from its screen.
pub(super) fn ready() -> Input {
    Input::Saw(Sight {
        state: State::Idle,
        certain: true,
        dialog: None,
        composer: None,
        mode: None,
        last_error: None,
        background: 0,
    })
}

/// Where the audit failed, an allow becomes silence: Claude Code's own flow, or a person, decides.
fn unallowed(
    reply: Result<Reply, crate::control::protocol::RpcError>,
) -> Result<Reply, crate::control::protocol::RpcError> {
    match reply {
        Ok(Reply::Hook(Some(_))) => Ok(Reply::Hook(Some(
            serde_json::json!({"hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": "ask",
                "permissionDecisionReason": "missiond: the audit can't be written",
            }}),
        ))),
        other => other,
    }
}

/// The next message of the shim; never, where there is none.
async fn next_of(link: &mut Option<ShimLink>) -> Result<FromShim, LinkError> {
    match link {
        Some(link) => link.next().await,
        None => std::future::pending().await,
    }
}

async fn found_by(search: &mut Option<Search>) -> machine::Answer {
    match search {
        Some(search) => search.await,
        None => std::future::pending().await,
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
