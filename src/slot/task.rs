//! The one task that owns a slot: it brings inputs to the machine and does what the machine says.

use super::Slot;
use super::catch_up;
use super::clients::Clients;
use super::context::SlotContext;
use super::handle::{SlotCommand, SlotHandle};
use super::health::{self, HealthCheck};
use super::kind::ProgramKind;
use super::link::Link;
use super::log::SlotLog;
use super::lookups::{LookedUp, Lookups};
use super::memory::Memory;
use super::memory_file::MemoryFile;
use super::output::{FOR_SLOTS, Output};
use super::press::{self, DecidedKey};
use super::program::SlotProgram;
use super::removed::Launched;
use super::requests::TerminalRequest;
use super::role_costs::RoleCostWatch;
use super::rules::{RuleBook, SlotRules};
use super::screen::{Screen, Writer};
use super::shown::PublishedStatus;
use super::view::first_status;
use crate::audit::Record;
use crate::core::machine::{Effect, Input, KnownRules, Machine, NOBODY, Purpose};
use crate::core::model::{Ending, EventKind, RpcError};
use crate::core::settings::{Kind, SessionTerms, SlotConfig};
use crate::core::terminal::At;
use crate::slot::once::Stage;
use chrono::{DateTime, Utc};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

/// Between TERM and KILL: Claude Code ends within a second; a tool may have to clean up.
pub(super) const GRACE: Duration = Duration::from_secs(5);

impl<K: ProgramKind> Slot<K> {
    /// As an earlier daemon has left it, with nothing running yet; and what was wrong with what is known of it.
    pub(crate) fn open(
        context: Arc<SlotContext>,
        config: Arc<SlotConfig>,
        rules: Arc<dyn SlotRules>,
    ) -> (Slot<K>, Option<String>) {
        let log = SlotLog::new(&context, &config);
        let bus = context.bus.clone();
        let role_costs = RoleCostWatch::new(&context.across.role_costs);
        let (memory, fault) = MemoryFile::open(&context.memory_file(&config.name), bus.clone());
        let machine = recalled(&memory, config.clone(), rules.known());
        let status = first_status(&config, log.paths());
        let output = recalled_output(&memory, config.terms.as_ref());
        let slot = Slot {
            own: K::new(&context, &config),
            shown: PublishedStatus::new(status, recalled_since(&memory, &machine)),
            screen: Screen::new(&config, output, K::READS_SCREEN),
            log,
            program: SlotProgram::new(config),
            context,
            machine,
            rules: RuleBook::new(rules),
            link: Link::default(),
            memory,
            clients: Clients::new(bus),
            lookups: Lookups::new(),
            health: HealthCheck::new(Instant::now()),
            role_costs,
            catching: None,
        };
        (slot, fault)
    }

    /// The way to it from outside, by these queues.
    pub(crate) fn handle(
        &self,
        commands: mpsc::Sender<SlotCommand>,
        looked: watch::Receiver<bool>,
    ) -> SlotHandle {
        let (status, pulse) = self.shown.watched();
        SlotHandle::new(
            commands,
            status,
            pulse,
            looked,
            self.context.once.end.clone(),
        )
    }

    /// The kind of the program that an earlier daemon has left, if it may still run; else the kind that is set.
    pub(crate) fn kind_to_look_for(&self) -> Kind {
        let launched = self.memory.launched.as_ref();
        let left = launched.filter(|_| self.program.settings().terms.is_none());
        left.and_then(Launched::kind_if_alive)
            .unwrap_or(self.program.settings().kind)
    }

    /// The same slot for programs of another kind.
    pub(crate) fn turn<L: ProgramKind>(self) -> Slot<L> {
        let mut screen = self.screen;
        screen.set_program(self.program.settings(), L::READS_SCREEN);
        Slot {
            own: L::new(&self.context, self.program.settings()),
            context: self.context,
            program: self.program,
            machine: self.machine,
            rules: self.rules,
            link: self.link,
            screen,
            log: self.log,
            memory: self.memory,
            shown: self.shown,
            clients: self.clients,
            lookups: self.lookups,
            health: self.health,
            role_costs: self.role_costs,
            catching: self.catching,
        }
    }
}

impl<K: ProgramKind> Slot<K> {
    pub(crate) async fn begin(&mut self, fault: Option<String>, looked: watch::Sender<bool>) {
        if let Some(text) = fault {
            self.tell(EventKind::Warning { text });
        }
        self.note_cost();
        self.adopt(looked).await;
    }

    /// Returns the slot if it is to go on with a program of the other kind.
    pub(crate) async fn run(
        mut self: Box<Self>,
        queue: &mut mpsc::Receiver<SlotCommand>,
    ) -> Option<Box<Self>> {
        if self.program.goes_on_starting() {
            for input in self.spawn().await {
                self.input(input).await;
            }
        }
        loop {
            if self.program.settings().kind != K::KIND {
                return Some(self);
            }
            self.publish();
            let look = self.health_check_due();
            // Before the recording is read, nobody knows what a key would meet.
            let knows = self.catching.is_none();
            // What waits for a look at the files is done when that is over.
            let looking = self.own.asks_witnesses();
            tokio::select! {
                // Commands first, then what is due, then output: an interrupt, a stop or a timer never waits behind a
                // program that writes without a pause.
                biased;
                command = queue.recv(), if self.takes_commands() => match command {
                    Some(SlotCommand::Shutdown { keep, done }) => {
                        self.shut_down(keep, done, queue).await;
                        return None;
                    }
                    Some(command) => self.take(command).await,
                    None => {
                        self.memory.flush().await;
                        return None;
                    }
                },
                probed = self.program.probed() => self.probed(probed).await,
                judged = self.rules.answered() => self.input(judged).await,
                written = self.memory.written() => self.memory_written(written),
                found = self.lookups.next() => self.looked_up(found).await,
                () = until(self.machine.poll_timeout()), if knows && !looking => {
                    self.timer_is_due().await;
                }
                news = self.own.next(knows) => K::take_news(&mut self, news).await,
                () = until(self.screen.fits_again()) => self.fit(),
                () = until(look) => self.begin_look(),
                () = self.role_costs.changed() => self.role_costs_changed().await,
                () = until(self.link.stop_due()) => self.stop_is_overdue().await,
                () = until(self.screen.drawing_due()) => self.screen.draw(),
                () = until(self.screen.keyboard().due()) => self.keyboard_is_due().await,
                message = self.link.next(), if knows => {
                    self.hear_shim(message).await;
                    self.hear_received().await;
                    // A program that never pauses must not keep the runtime from hearing anybody else.
                    tokio::task::yield_now().await;
                }
                fetched = catch_up::fetched(&mut self.catching) => {
                    self.go_on_catching_up(fetched).await;
                }
            }
        }
    }

    /// A timer of the machine is due: what is done now rests on what the witnesses say now.
    async fn timer_is_due(&mut self) {
        K::ask_witnesses(self).await;
        if !self.own.asks_witnesses() {
            self.input(Input::TimePassed).await;
        }
    }

    /// Brings one input to the machine and does all that follows from it.
    pub(crate) async fn input(&mut self, input: Input) {
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
        self.keep_calls();
        self.tell_readers();
    }

    /// Does what the machine says, in order; what comes of it goes back to the machine.
    async fn perform(&mut self, effects: Vec<Effect>) -> Vec<Input> {
        let mut inputs = Vec::new();
        // Why nothing is allowed: without its entry in the audit nothing is.
        let mut unaudited: Option<RpcError> = None;
        for effect in effects {
            match effect {
                Effect::Tell(what) => self.tell_with_screen(what),
                Effect::Audit(verdict, ask, decider) => {
                    let audited = self.audit_verdict(verdict, &ask, decider).await;
                    unaudited = unaudited.or(audited.err());
                }
                Effect::Alarm(why, ask) => {
                    let record =
                        Record::alarm(&self.program.settings().name, &ask.tool, &ask.input, &why);
                    self.log.noted(record).await;
                }
                Effect::Press {
                    bytes,
                    key,
                    reason,
                    purpose,
                    person,
                } => {
                    let key = DecidedKey {
                        bytes,
                        name: key,
                        reason,
                        purpose,
                        person,
                        is_raw: false,
                    };
                    inputs.extend(self.press_audited(key, unaudited.clone()).await);
                }
                Effect::NoEffect { key, why, person } => {
                    self.note_no_effect(key, person.as_ref(), &why).await;
                }
                Effect::Reply(token, reply) => {
                    self.reply_if_audited(token, reply, unaudited.is_none());
                }
                Effect::Drop { id, why } => self.note_dropped(id, why).await,
                Effect::StopTree => self.stop_tree(GRACE),
                Effect::EndOrphans => self.end_orphans_and_shim().await,
                Effect::Repaint => self.repaint(),
                Effect::Judge(question) => self.rules.ask(*question),
                Effect::FindAnswer => inputs.extend(K::find_answer(self)),
                Effect::FindReset(text) => inputs.push(health::limited(text)),
                Effect::DateCost(grown) => inputs.extend(health::cost_today(grown)),
                Effect::ForgetConversation => self.forget_conversation(),
                Effect::Spawn => {
                    self.publish();
                    inputs.extend(self.spawn().await);
                }
                Effect::CancelSpawn => self.program.cancel_probe(),
            }
        }
        inputs
    }

    fn forget_conversation(&mut self) {
        if let Some(lost) = self.memory.session().map(|session| session.id) {
            self.replace(lost);
        }
    }

    /// A key that approves is not pressed if its verdict could not be written.
    async fn press_audited(
        &mut self,
        key: DecidedKey,
        unaudited: Option<RpcError>,
    ) -> Option<Input> {
        let approves = key.purpose == Purpose::Approves;
        match unaudited.filter(|_| approves) {
            Some(error) => Some(press::unpressed(error, None)),
            None => self.press_if_unchanged(key).await,
        }
    }

    pub(super) async fn command(&mut self, command: SlotCommand) {
        match command {
            SlotCommand::Machine {
                token,
                input,
                reply,
            } => {
                self.clients.wait(token, reply);
                let id = message_id(&input);
                K::take_input(self, input).await;
                if let Some(id) = id.filter(|_| self.clients.waits(token)) {
                    // Whether it waits there is in the status by now.
                    self.publish();
                    self.context.once.sends.reached(
                        &self.program.settings().name,
                        &id,
                        Stage::Accepted,
                    );
                }
                K::ask_witnesses(self).await;
            }
            SlotCommand::Withdraw(token) => {
                self.input(Input::Withdraw(token)).await;
                self.clients.forget(token);
            }
            SlotCommand::Write { writing, reply } => {
                let written = self.write(writing).await;
                drop(reply.send(written));
            }
            SlotCommand::View(viewing) => self.view(viewing).await,
            SlotCommand::Keyboard { request, reply } => {
                drop(reply.send(self.keyboard(request).await));
            }
            SlotCommand::Screen { params, reply } => {
                drop(reply.send(Ok(self.screen_answer(&params))))
            }
            SlotCommand::Search {
                pattern,
                limit,
                reply,
            } => self.search(pattern, limit, reply),
            SlotCommand::History { last, reply } => self.tell_history(last, reply),
            SlotCommand::TakeOver { session, reply } => K::take_over(self, session, reply),
            SlotCommand::Why { reply } => K::tell_why(self, reply),
            SlotCommand::Asked { reply } => drop(reply.send(Ok(self.machine.asked()))),
            SlotCommand::AwaitOutput { pattern, reply } => {
                let writer = match self.machine.has_program() {
                    _ if self.own.has_ended() => Writer::HasEnded,
                    true => Writer::Runs,
                    false => Writer::IsToStart,
                };
                self.screen.await_output(pattern, reply, writer);
            }
            SlotCommand::Reconfigure {
                config,
                rules,
                running,
            } => self.reconfigure(config, rules, running).await,
            SlotCommand::Terminal(request) => self.requested(request).await,
            SlotCommand::Note(what) => self.tell(what),
            SlotCommand::Restore => self.restore().await,
            SlotCommand::Shutdown { .. } => {}
        }
    }

    /// Something was looked up in files.
    async fn looked_up(&mut self, found: LookedUp) {
        match found {
            LookedUp::Claude(found) => K::looked_up(self, found).await,
            LookedUp::RecordingLength(length) => self.rotate_if_long(length),
            LookedUp::RoomMade => self.send_rotation(),
            LookedUp::TranscriptLength(length) => self.check_health(length).await,
        }
    }

    /// The program that runs, or that is to be started, has these settings.
    pub(super) fn runs_with(&mut self, config: Arc<SlotConfig>) {
        self.screen.set_program(&config, K::READS_SCREEN);
        self.program.runs_with(config);
    }

    async fn reconfigure(
        &mut self,
        config: Arc<SlotConfig>,
        rules: Arc<dyn SlotRules>,
        running: Option<(String, Arc<dyn SlotRules>)>,
    ) {
        if self.program.settings().removed && !config.removed {
            self.recall_settings(&config).await;
        }
        let keeps_role = !self.machine.is_gone() && self.program.settings().role != config.role;
        let known = match keeps_role {
            true => {
                let of_role = running.filter(|(role, _)| *role == self.program.settings().role);
                self.rules.put_off(rules, of_role.map(|(_, rules)| rules))
            }
            false => self.rules.replace(rules),
        };
        self.input(Input::Rules(known)).await;
        self.input(Input::Settings(config)).await;
        self.warn_of_outdated_rules();
    }

    /// Claude Code has its rules from its start: a deny rule that was taken out holds until the next one, and what a new allow
    /// rule covers may be asked about.
    fn warn_of_outdated_rules(&mut self) {
        if !self.machine.is_up() {
            return;
        }
        let restart = format!("missiond restart {}", self.program.settings().name);
        let (outdated, unshared) = (
            self.rules.outdated().join(", "),
            self.unshared_rules().join(", "),
        );
        if !outdated.is_empty() {
            self.warn(&format!(
                "Claude Code was started with deny rules that the policy no longer has, and obeys them until {restart}: \
                 {outdated}"
            ));
        }
        if !unshared.is_empty() {
            self.warn(&format!(
                "Claude Code was started without these allow rules, and may ask by itself about what they allow until \
                 {restart}: {unshared}"
            ));
        }
    }

    async fn shut_down(
        &mut self,
        keep: bool,
        done: oneshot::Sender<()>,
        queue: &mut mpsc::Receiver<SlotCommand>,
    ) {
        if keep {
            self.dismiss_viewers(&Ending::DaemonEnds);
            self.fit();
            self.link.flush().await;
        } else {
            self.memory.end_in_order();
            self.input(Input::Stop(NOBODY)).await;
            while !self.machine.is_gone() && self.link.is_open() {
                if self.catching.is_some() {
                    // The end of the program may stand behind the recording.
                    let fetched = catch_up::fetched(&mut self.catching).await;
                    self.go_on_catching_up(fetched).await;
                    continue;
                }
                let due = self.link.stop_due();
                tokio::select! {
                    message = self.link.next() => {
                        self.hear_shim(message).await;
                    }
                    () = until(due) => self.stop_is_overdue().await,
                    // Nothing else is of use to anybody now.
                    Some(command) = queue.recv() => {
                        if let SlotCommand::Terminal(request @ TerminalRequest::Hurry) = command {
                            self.requested(request).await;
                        }
                    }
                }
            }
        }
        for (token, reply) in self.memory.flush().await {
            self.clients.reply(token, reply);
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
fn recalled(memory: &Memory, config: Arc<SlotConfig>, rules: KnownRules) -> Machine {
    let seed = Uuid::new_v4().as_u64_pair().0;
    let mut machine = Machine::new(config, rules, seed);
    let held_until = memory.held_until.and_then(health::moment_of);
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

pub(crate) async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
