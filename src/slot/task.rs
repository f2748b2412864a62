//! The one task that owns a slot: it brings inputs to the machine and does what the machine says.

use super::answer::Place;
use super::audience::Audience;
use super::catch_up::CatchingUp;
use super::claims::Claim;
use super::handle::{Answer, Command, MAX_COMMANDS, SlotHandle};
use super::journal::{Journal, Paths};
use super::machine::{self, Effect, Input, Judge, Machine, NOBODY, Purpose, Reply, Sight, Token};
use super::memory::Memory;
use super::output::{FOR_SLOTS, Output};
use super::press::Key;
use super::probe::Probe;
use super::requests::Request;
use super::rotation::Rotation;
use super::session::{self, Session};
use super::stream::SoFar;
use super::view::first_status;
use super::vigil::{self, Vigil};
use super::waiters::Waiter;
use super::witness::Witnesses;
use super::world::World;
use crate::audit::Record;
use crate::config::{SessionTerms, SlotConfig};
use crate::control::protocol::{Ending, HistoryAnswer, SlotStatus, What};
use crate::log_file::Cap;
use crate::reading::{Observer, State};
use crate::sends::Stage;
use crate::shim::{ExitReport, FromShim, LinkError, ShimLink};
use crate::terminal::{At, Terminal};
use chrono::{DateTime, Utc};
use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// Between TERM and KILL: Claude Code ends within a second; a tool may have to clean up.
const GRACE: Duration = Duration::from_secs(5);

/// The future that looks for the answer of the turn that has just ended.
type Search = Pin<Box<dyn Future<Output = machine::Answer> + Send>>;

pub struct Slot {
    pub(super) world: Arc<World>,
    /// The settings that the running program was started with.
    pub(super) running: Arc<SlotConfig>,
    pub(super) machine: Machine,
    pub(super) judge: Arc<dyn Judge>,
    /// What has to be known before the program is started, on its way.
    pub(super) probe: Option<Probe>,
    pub(super) link: Option<ShimLink>,
    pub(super) shim_pid: Option<u32>,
    /// By when a shim that was told to end its program has said that it did.
    pub(super) stop_due: Option<Instant>,
    pub(super) terminal: Terminal,
    pub(super) observer: Observer,
    pub(super) journal: Journal,
    pub(super) paths: Paths,
    pub(super) memory: Memory,
    /// The number of the last input that was sent to the shim.
    pub(super) last_input: u64,
    pub(super) started_at: Option<DateTime<Utc>>,
    pub(super) last_exit: Option<ExitReport>,
    /// When that was, where there was no daemon to hear of it.
    pub(super) ended_before: Option<DateTime<Utc>>,
    /// What stood on the screen when the program ended.
    pub(super) last_screen: String,
    pub(super) witnesses: Witnesses,
    /// The conversation that its program has open.
    pub(super) claim: Option<Claim>,
    /// Where Claude Code would keep its records, found once for each program: it is asked for at every frame.
    pub(super) records: Option<PathBuf>,
    pub(super) so_far: SoFar,
    pub(super) last_sight: Option<Sight>,
    pub(super) since: DateTime<Utc>,
    /// Its program was found running, and has not been seen in any state yet.
    pub(super) recalls_state: bool,
    pub(super) turn_began: Option<Place>,
    pub(super) searching: Option<Search>,
    /// When the terminal gets its own size again, which it lost to be drawn anew.
    pub(super) fits_again: Option<Instant>,
    pub(super) replies: HashMap<Token, Answer<Reply>>,
    pub(super) waiters: Vec<Waiter>,
    /// Who asked for the conversation when its last answer was not in it yet, and how much of it.
    pub(super) readers: Vec<(Option<usize>, Answer<HistoryAnswer>)>,
    pub(super) status: watch::Sender<SlotStatus>,
    pub(super) pulse: watch::Sender<u64>,
    /// The end of the program or of the connection, seen while a key was being pressed.
    pub(super) unheard: Option<Result<FromShim, LinkError>>,
    pub(super) rotation: Rotation,
    /// Raw input of a person, with its number, until the shim says that it is written.
    pub(super) raw: VecDeque<(u64, Vec<u8>)>,
    pub(super) vigil: Vigil,
    pub(super) output: Output,
    pub(super) session: Option<Session>,
    /// The recording, while what was written before this connection is being read.
    pub(super) catching: Option<Box<CatchingUp>>,
    pub(super) audience: Audience,
    /// The audit could not be written the last time, which was told.
    pub(super) audit_fails: bool,
    /// The daemon ends, and the slot with it: the next one begins as it is set.
    pub(super) ends_in_order: bool,
}

/// Starts the task of a slot. It first looks for a shim that an earlier daemon left.
pub fn start(
    world: Arc<World>,
    config: Arc<SlotConfig>,
    judge: Arc<dyn Judge>,
) -> (SlotHandle, tokio::task::JoinHandle<()>) {
    let (slot, fault) = Slot::open(world, config, judge);
    let (commands, queue) = mpsc::channel(MAX_COMMANDS);
    let (looked, looked_seen) = watch::channel(false);
    let (status, pulse) = (slot.status.subscribe(), slot.pulse.subscribe());
    let handle = SlotHandle::new(commands, status, pulse, looked_seen);
    let task = tokio::spawn(slot.run(queue, fault, looked));
    (handle, task)
}

impl Slot {
    /// As an earlier daemon has left it, with nothing running yet; and what was wrong with what is known of it.
    fn open(
        world: Arc<World>,
        config: Arc<SlotConfig>,
        judge: Arc<dyn Judge>,
    ) -> (Slot, Option<String>) {
        let paths = Paths::new(&world.logs, &config.name);
        let journal = Journal::new(&paths, Cap::of(&config.care));
        let (memory, fault) = Memory::load(&world.memory_file(&config.name));
        let machine = recalled(&memory, config.clone(), judge.clone());
        let status = first_status(&config, &paths);
        let terms = config.terms.clone();
        let output = recalled_output(&memory, terms.as_ref());
        let session = terms.map(|terms| Session::new(terms, &world.session_file(&config.name)));
        let slot = Slot {
            since: recalled_since(&memory, &machine),
            terminal: Terminal::new(config.cols.into(), config.rows.into()),
            observer: Observer::new(),
            running: config,
            world,
            machine,
            judge,
            probe: None,
            link: None,
            shim_pid: None,
            stop_due: None,
            journal,
            paths,
            memory,
            last_input: 0,
            started_at: None,
            last_exit: None,
            ended_before: None,
            last_screen: String::new(),
            witnesses: Witnesses::default(),
            claim: None,
            records: None,
            so_far: SoFar::default(),
            last_sight: None,
            recalls_state: false,
            turn_began: None,
            searching: None,
            fits_again: None,
            replies: HashMap::new(),
            waiters: Vec::new(),
            readers: Vec::new(),
            status: watch::Sender::new(status),
            pulse: watch::Sender::new(0),
            unheard: None,
            rotation: Rotation::default(),
            raw: VecDeque::new(),
            vigil: Vigil::new(Instant::now()),
            output,
            session,
            catching: None,
            audience: Audience::default(),
            audit_fails: false,
            ends_in_order: false,
        };
        (slot, fault)
    }
}

impl Slot {
    async fn run(
        mut self,
        mut queue: mpsc::Receiver<Command>,
        fault: Option<String>,
        looked: watch::Sender<bool>,
    ) {
        if let Some(text) = fault {
            self.tell(What::Warning { text });
        }
        self.adopt(looked).await;
        loop {
            self.publish();
            let look = self.vigil_due();
            // Before the recording is read, nobody knows what a key would meet.
            let knows = self.catching.is_none();
            tokio::select! {
                // Commands first, then what is due, then output: an interrupt, a stop or a timer never waits behind a
                // program that writes without a pause.
                biased;
                command = queue.recv(), if self.takes_commands() => match command {
                    Some(Command::Shutdown { keep, done }) => {
                        return self.shut_down(keep, done, queue).await;
                    }
                    Some(command) => self.take(command).await,
                    None => return,
                },
                probed = done_by(&mut self.probe) => self.probed(probed).await,
                answer = done_by(&mut self.searching), if knows => {
                    self.searching = None;
                    self.note_figures();
                    self.input(Input::Found(answer)).await;
                }
                () = until(self.machine.poll_timeout()), if knows => {
                    // What is done now rests on what they say now.
                    self.ask_witnesses().await;
                    self.input(Input::TimePassed).await;
                }
                () = until(self.witnesses.due()), if knows => self.ask_witnesses().await,
                () = self.witnesses.noted(), if knows => self.ask_witnesses().await,
                () = until(self.fits_again) => self.fit_again(),
                () = until(look) => self.look().await,
                () = until(self.stop_due) => self.stop_is_overdue().await,
                () = session::due(self.session.as_ref()) => self.look_after_session().await,
                () = until(self.audience.due()) => self.draw_for_viewers(),
                message = next_of(&mut self.unheard, &mut self.link), if knows => {
                    self.hear_shim(message).await;
                    self.hear_received().await;
                    // A program that never pauses must not keep the runtime from hearing anybody else.
                    tokio::task::yield_now().await;
                }
                () = tokio::task::yield_now(), if !knows => self.go_on_catching_up().await,
            }
        }
    }

    /// Brings one input to the machine and does all that follows from it.
    pub(super) async fn input(&mut self, input: Input) {
        let effects = self.machine.handle(input, Instant::now());
        self.carry_out(effects).await;
    }

    pub(super) async fn carry_out(&mut self, effects: Vec<Effect>) {
        let mut inputs = VecDeque::from(self.perform(effects).await);
        while let Some(input) = inputs.pop_front() {
            let effects = self.machine.handle(input, Instant::now());
            inputs.extend(self.perform(effects).await);
        }
        self.keep_in_mind();
        self.tell_readers();
    }

    /// Does what the machine says, in order; what comes of it goes back to the machine.
    async fn perform(&mut self, effects: Vec<Effect>) -> Vec<Input> {
        let mut inputs = Vec::new();
        // Without its entry in the audit nothing is allowed.
        let mut unaudited = false;
        for effect in effects {
            match effect {
                Effect::Tell(what) => self.tell_with_screen(what),
                Effect::Audit(verdict, ask, decider) => {
                    unaudited |= !self.audit_verdict(verdict, &ask, decider).await;
                }
                Effect::Alarm(why, ask) => {
                    let slot = &self.running.name;
                    let record = Record::alarm(slot, &ask.tool, &ask.input, &why);
                    self.audited(record).await;
                }
                Effect::Press {
                    purpose: Purpose::Approves,
                    ..
                } if unaudited => inputs.push(Input::Unaudited),
                Effect::Press {
                    bytes,
                    key,
                    reason,
                    purpose,
                } => {
                    let key = Key {
                        bytes,
                        name: key,
                        reason,
                        purpose,
                        by_hand: false,
                    };
                    inputs.extend(self.press_carefully(key).await);
                }
                Effect::Reply(token, reply) => {
                    // Whoever is answered finds it in the status too.
                    self.publish();
                    self.reply(token, if unaudited { unallowed(reply) } else { reply })
                }
                Effect::StopTree => self.stop_tree(GRACE),
                Effect::EndRemains => self.end_remains().await,
                Effect::Repaint => self.repaint(),
                Effect::FindAnswer => self.find_answer(),
                Effect::FindReset(text) => inputs.push(vigil::limited(text)),
                Effect::ForgetConversation => {
                    if let Some(lost) = self.memory.session().map(|session| session.id) {
                        self.replace(lost);
                    }
                }
                Effect::Spawn => {
                    self.publish();
                    inputs.extend(self.spawn().await);
                }
                Effect::CancelSpawn => self.probe = None,
            }
        }
        inputs
    }

    pub(super) async fn command(&mut self, command: Command) {
        match command {
            Command::Machine {
                token,
                input,
                reply,
            } => {
                self.replies.insert(token, reply);
                let id = message_id(&input);
                if self.is_from_own_session(&input).await {
                    self.note_hook(&input);
                    self.input(*input).await;
                }
                if let Some(id) = id.filter(|_| self.replies.contains_key(&token)) {
                    // Whether it waits there is in the status by now.
                    self.publish();
                    self.world
                        .sends
                        .reached(&self.running.name, &id, Stage::Accepted);
                }
                self.ask_witnesses().await;
            }
            Command::Withdraw(token) => {
                self.input(Input::Withdraw(token)).await;
                self.replies.remove(&token);
            }
            Command::Write { writing, reply } => {
                let written = self.write(writing).await;
                drop(reply.send(written));
            }
            Command::View(viewing) => self.view(viewing).await,
            Command::Screen { params, reply } => drop(reply.send(Ok(self.screen(&params)))),
            Command::Search {
                pattern,
                limit,
                reply,
            } => self.search(pattern, limit, reply),
            Command::History { last, reply } => self.tell_history(last, reply),
            Command::TakeOver { session, reply } => drop(reply.send(self.take_over(session))),
            Command::Why { reply } => drop(reply.send(Ok(self.evidence()))),
            Command::AwaitOutput { pattern, reply } => self.await_output(pattern, reply),
            Command::Reconfigure { config, judge } => self.reconfigure(config, judge).await,
            Command::Request(request) => self.requested(request).await,
            Command::Note(what) => self.tell(what),
            Command::Shutdown { .. } => {}
        }
    }

    async fn reconfigure(&mut self, config: Arc<SlotConfig>, judge: Arc<dyn Judge>) {
        self.judge = judge.clone();
        if self.running.removed && !config.removed {
            // It is in the config again. As at a start of the daemon, its program is taken to have these settings.
            self.running = config.clone();
        }
        self.input(Input::Rules(judge)).await;
        self.input(Input::Settings(config)).await;
    }

    async fn shut_down(
        mut self,
        keep: bool,
        done: oneshot::Sender<()>,
        mut queue: mpsc::Receiver<Command>,
    ) {
        if keep {
            self.dismiss_viewers(&Ending::DaemonEnds);
            self.fit();
            if let Some(link) = self.link.as_mut() {
                let _ = link.flush().await;
            }
        } else {
            self.end_in_order();
            self.input(Input::Stop(NOBODY)).await;
            while !self.machine.is_gone() && self.link.is_some() {
                tokio::select! {
                    message = next_of(&mut self.unheard, &mut self.link) => {
                        self.hear_shim(message).await;
                    }
                    () = until(self.stop_due) => self.stop_is_overdue().await,
                    // Nothing else is of use to anybody now.
                    Some(command) = queue.recv() => {
                        if let Command::Request(request @ Request::Hurry) = command {
                            self.requested(request).await;
                        }
                    }
                }
            }
        }
        let _ = done.send(());
    }
}

/// The sender's id of a message that is to be sent.
fn message_id(input: &Input) -> Option<String> {
    match input {
        Input::Send(message) => message.id.clone(),
        _ => None,
    }
}

/// A machine that knows what an earlier daemon knew.
fn recalled(memory: &Memory, config: Arc<SlotConfig>, judge: Arc<dyn Judge>) -> Machine {
    let seed = uuid::Uuid::new_v4().as_u64_pair().0;
    let mut machine = Machine::new(config, judge, seed);
    let held_until = memory.held_until.and_then(vigil::moment_of);
    machine.recall(memory.past, memory.standing.as_ref(), held_until);
    machine
}

/// Since when it is in the state in which an earlier daemon has left it.
fn recalled_since(memory: &Memory, machine: &Machine) -> DateTime<Utc> {
    let recalled = memory.state.filter(|last| last.state == machine.state());
    recalled.map_or_else(Utc::now, |last| last.since)
}

/// What an agent has read of it is not read again.
fn recalled_output(memory: &Memory, terms: Option<&SessionTerms>) -> Output {
    let mut output = Output::new(terms.map_or(FOR_SLOTS, |terms| terms.buffer));
    if let Some(at) = memory.read {
        output.recall_read(At::from_micros(at));
    }
    output
}

/// A plain program is taken as ready from its start: nothing is read from its screen.
pub(super) fn ready() -> Input {
    Input::Saw(Sight {
        state: State::Idle,
        certain: true,
        redrawing: false,
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
async fn next_of(
    unheard: &mut Option<Result<FromShim, LinkError>>,
    link: &mut Option<ShimLink>,
) -> Result<FromShim, LinkError> {
    if let Some(message) = unheard.take() {
        return message;
    }
    match link {
        Some(link) => link.next().await,
        None => std::future::pending().await,
    }
}

/// The result of a future that is under way; never, where there is none.
async fn done_by<T>(under_way: &mut Option<Pin<Box<dyn Future<Output = T> + Send>>>) -> T {
    match under_way {
        Some(under_way) => under_way.await,
        None => std::future::pending().await,
    }
}

pub(super) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
