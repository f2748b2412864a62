//! Taking up a program that runs already, and what it wrote before there was a connection.

use super::Slot;
use super::catch_up::Questions;
use super::claude::Claude;
use super::conversation::began_at;
use super::kind::ProgramKind;
use super::orphan_processes::OrphansFound;
use super::removed::{AskEverything, Launched};
use super::task::GRACE;
use crate::core::machine::{Cause, DesiredState, Input, NOBODY, Runs};
use crate::core::model::EventKind;
use crate::core::model::ExitReport;
use crate::core::settings::{Gate, SlotConfig};
use crate::launch;
use crate::os::blocking;
use crate::os::files;
use crate::shim::{Hello, LaunchError, ShimLink};
use chrono::{DateTime, Utc};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Told if neither a record nor the process says where a program was started.
const NO_RECORD: &str = "nobody knows which settings its program was started with: a person is asked about everything \
                         until it is restarted";

/// How long a look at files may take.
const LIMIT: Duration = Duration::from_secs(5);

/// The end of a program of which nobody knows how it ended.
pub(crate) fn shim_lost() -> EventKind {
    let ExitReport { code, signal } = ExitReport::UNKNOWN;
    EventKind::Exit {
        code,
        signal,
        cause: Cause::ShimLost.name().to_owned(),
        ended_at: None,
    }
}

impl<K: ProgramKind> Slot<K> {
    /// At the start of the daemon: a shim that an earlier one left is taken up, else the slot stands as it stood
    /// when the earlier one was killed, and starts by itself where it is set to. Once the first is settled, `looked`
    /// says so.
    pub(super) async fn adopt(&mut self, looked: watch::Sender<bool>) {
        let standing = self.memory.standing.clone();
        let mut found = self.take_up_again().await;
        if !found {
            // Its answer is told before its end.
            self.settle_turn().await;
            found = K::take_up_left(self).await;
        }
        let first = match (found, standing) {
            _ if self.own.starts_once() => None,
            (false, _) if self.program.settings().removed => None,
            // Its end was under way when the daemon was killed.
            (true, Some(DesiredState::Down { .. })) => Some(Input::Stop(NOBODY)),
            (false, Some(DesiredState::Wanted)) => Some(Input::Start(NOBODY)),
            (false, None) if self.program.settings().autostart => Some(Input::Start(NOBODY)),
            _ => None,
        };
        let effects = first.map(|input| self.machine.handle(input, Instant::now()));
        // Whoever asks from now on hears that it is starting, not that it is down.
        self.publish();
        looked.send_replace(true);
        self.carry_out(effects.unwrap_or_default()).await;
    }

    /// No shim answers: what a dead one left is ended. A slot whose shim was stopped waits for it: it may be started yet,
    /// unless the slot was removed. A shim that lives is left alone, whether it can be reached or not.
    pub(crate) async fn take_up_left(&mut self) -> bool {
        if self.program.settings().removed && self.take_up_awoken().await {
            return true;
        }
        if self.had_shim() && matches!(self.end_orphans().await, Some(OrphansFound::Ended(_))) {
            self.warn("its program ended with its shim while there was no daemon");
            self.tell(shim_lost());
            self.drop_unsent().await;
        }
        false
    }

    /// Whether the socket of a shim is there; after a reboot that is gone too, and the events still tell of a program.
    pub(crate) fn had_shim(&self) -> bool {
        self.has_shim_socket() || self.log.tells_of_a_program()
    }

    fn has_shim_socket(&self) -> bool {
        self.context.has_shim_socket(&self.program.settings().name)
    }

    /// A session that has ended has none, unless its socket says otherwise.
    pub(crate) fn may_have_shim(&self) -> bool {
        !self.own.has_ended() || self.has_shim_socket()
    }

    /// Connects to the slot's shim and goes on from where the program is; false where there is none.
    pub(super) async fn take_up_again(&mut self) -> bool {
        let Ok(found) = self.find_shim().await else {
            return false;
        };
        for input in self.take_up(found).await {
            self.input(input).await;
        }
        true
    }

    pub(super) async fn find_shim(&mut self) -> Result<(ShimLink, Hello), LaunchError> {
        let socket = self.context.shim_socket(&self.program.settings().name);
        let socket = socket.map_err(|error| LaunchError::Refused(error.to_string()))?;
        let nobody = match ShimLink::adopt(&socket).await {
            Err(nobody @ LaunchError::Connect { .. }) => nobody,
            found => return found,
        };
        if !self.may_have_shim() {
            return Err(nobody);
        }
        // The socket may be gone, and not the shim.
        let (context, slot) = (self.context.clone(), self.program.settings().name.clone());
        match blocking::run_within(LIMIT, move || context.shim(&slot))
            .await
            .flatten()
        {
            Ok(Some(shim)) => match ShimLink::summon(&shim, &socket).await {
                Err(LaunchError::Unreached { .. }) if !shim.runs() => Err(nobody),
                found => found,
            },
            Ok(None) => Err(nobody),
            Err(error) => Err(LaunchError::Unclear(error)),
        }
    }

    /// What the machine is to know of a program that runs already.
    pub(super) async fn take_up(&mut self, (link, hello): (ShimLink, Hello)) -> Vec<Input> {
        let (mut runs, mut inputs) = (None, Vec::new());
        if !self.machine.has_program() {
            let settings = self.machine.config().clone();
            runs = Some(self.recall_launched(hello.child_pid, &settings).await);
            if self.program.settings().role != settings.role {
                let ask =
                    AskEverything::of_role(&self.context.config, &self.program.settings().role);
                inputs.push(Input::Rules(self.rules.suspend(Arc::new(ask))));
            }
        }
        self.connected(link, &hello);
        if self.machine.is_stopping() {
            // The connection that broke may have taken the order along.
            self.stop_tree(GRACE);
        }
        if let Some(runs) = runs {
            inputs.extend(self.found_running(&hello, runs).await);
        }
        self.link.written(hello.last_input);
        inputs.extend(self.catch_up(&hello, Questions::Answered).await);
        // Whoever was attached to the daemon before is not attached to this one.
        self.fit();
        self.resend_raw();
        inputs
    }

    /// The program that runs keeps what it was started with; the settings say the rest.
    pub(super) async fn recall_launched(&mut self, pid: u32, settings: &Arc<SlotConfig>) -> Runs {
        let launched = self.memory.launched.as_ref();
        let runs = match launched.filter(|launched| launched.is_of(pid)) {
            Some(launched) if !self.own.starts_once() => {
                Runs::with(Arc::new(launched.over(settings)))
            }
            _ => K::without_record(pid, settings.clone()).await,
        };
        if !runs.is_known() {
            self.warn(NO_RECORD);
        }
        self.runs_with(runs.settings().clone());
        runs
    }

    /// The slot is in the config again, as at a start of the daemon.
    pub(super) async fn recall_settings(&mut self, settings: &Arc<SlotConfig>) {
        match self.machine.pid() {
            Some(pid) => {
                let runs = self.recall_launched(pid, settings).await;
                self.input(Input::RunsWith(runs)).await;
            }
            None => self.runs_with(settings.clone()),
        }
    }

    /// When the program that was taken up was started, which an earlier daemon has done.
    fn began(&self, pid: u32) -> Option<DateTime<Utc>> {
        let launched = self.memory.launched.as_ref();
        let record = launched.filter(|launched| launched.is_of(pid));
        let written = record.and_then(Launched::at);
        written.or_else(|| began_at(pid).map(DateTime::from))
    }

    async fn found_running(
        &mut self,
        hello: &Hello,
        runs: Runs,
    ) -> impl Iterator<Item = Input> + use<K> {
        let pid = hello.child_pid;
        self.shown.takes_up();
        if let Some(at) = self.began(pid) {
            self.program.was_started(at);
        }
        self.tell(EventKind::Adopted { pid });
        let settings = self.context.settings_file(&self.program.settings().name);
        let read = move || files::read_text(&settings);
        let settings = self.memory.disk().run(read).await.flatten().ok();
        let parsed = settings.as_deref().map(serde_json::from_str::<Value>);
        let rules = parsed.and_then(Result::ok).as_ref().map(launch::rules_of);
        self.rules.shares(rules.unwrap_or_default());
        self.memory.set_settings(settings);
        let more = K::found_running(self, hello).await;
        let draft = self.memory.draft.clone();
        let typed = draft.and_then(|draft| draft.reached(hello.last_input));
        let continues = true;
        let started = Input::Started { pid, continues };
        let settings = Input::RunsWith(runs);
        let entered = self.recall_turn(hello).await;
        // Before the program is there: at no moment it has typed nothing.
        let before = entered.into_iter().chain(typed.map(Input::WasTyped));
        before.chain([started, settings]).chain(more)
    }
}

impl Slot<Claude> {
    /// What an earlier daemon knew of this program, and Claude Code knows of itself.
    pub(super) async fn recall_claude(&mut self, hello: &Hello) -> Vec<Input> {
        let pid = hello.child_pid;
        self.recall_conversation(pid).await;
        if let Some(id) = self.memory.session().map(|session| session.id) {
            self.hold(id);
        }
        let strange = self.memory.unrehearsed == Some(pid);
        let gated = self.memory.gated == Some(pid);
        self.own.begin_turn(self.memory.turn_place());
        let more = [
            strange.then_some(Input::Unrehearsed),
            gated.then(|| Input::WasGated(hello.note.clone())),
        ];
        more.into_iter().flatten().collect()
    }
}

/// Of a program of which no record says what it was started with. If it stands in the directory of its slot, it is taken
/// to have been started there; for the rest, the stricter setting is assumed. Its permission mode is on its screen and
/// in each call.
pub(super) async fn without_record(pid: u32, settings: Arc<SlotConfig>) -> Runs {
    let configured = settings.cwd.clone();
    let looked = blocking::run_within(LIMIT, move || {
        let stands = std::fs::read_link(format!("/proc/{pid}/cwd")).ok();
        let same = stands.is_some() && stands == configured.canonicalize().ok();
        (stands, same)
    });
    let (stands, same) = looked.await.unwrap_or_default();
    let strict = SlotConfig {
        gate: Gate::Hook,
        project_settings: true,
        ..SlotConfig::clone(&settings)
    };
    match (same, stands) {
        (true, _) => Runs::with(Arc::new(strict)),
        (false, stands) => Runs::unknown(Arc::new(SlotConfig {
            cwd: stands.unwrap_or(settings.cwd.clone()),
            ..strict
        })),
    }
}
