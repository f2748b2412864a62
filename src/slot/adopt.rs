//! Taking up a program that runs already, and what it wrote before there was a connection.

use super::Slot;
use super::catch_up::Questions;
use super::conversation::began_at;
use super::journal;
use super::orphan_processes::OrphansFound;
use super::removed::{AskEverything, Launched};
use super::task::{GRACE, ready};
use crate::core::machine::{Cause, Input, NOBODY, Runs, Standing};
use crate::core::model::ExitReport;
use crate::core::model::What;
use crate::core::settings::{Gate, Kind, SlotConfig};
use crate::os::blocking;
use crate::shim::{Hello, LaunchError, ShimLink};
use chrono::{DateTime, Utc};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;

/// Told if neither a record nor the process says where a program was started.
const NO_RECORD: &str = "nobody knows which settings its program was started with: a person is asked about everything \
                         until it is restarted";

/// The end of a program of which nobody knows how it ended.
pub(super) fn shim_lost() -> What {
    let ExitReport { code, signal } = ExitReport::UNKNOWN;
    What::Exit {
        code,
        signal,
        cause: Cause::ShimLost.name().to_owned(),
        ended_at: None,
    }
}

impl Slot {
    /// At the start of the daemon: a shim that an earlier one left is taken up, else the slot stands as it stood
    /// when the earlier one was killed, and starts by itself where it is set to. Once the first is settled, `looked`
    /// says so.
    pub(super) async fn adopt(&mut self, looked: watch::Sender<bool>) {
        let standing = self.memory.standing.clone();
        let found = self.take_up_again().await || self.take_up_left().await;
        let first = match (found, standing) {
            // Its program is started once, by whoever made it.
            _ if self.session.is_some() => None,
            (false, _) if self.program.settings().removed => None,
            // Its end was under way when the daemon was killed.
            (true, Some(Standing::Down { .. })) => Some(Input::Stop(NOBODY)),
            (false, Some(Standing::Wanted)) => Some(Input::Start(NOBODY)),
            (false, None) if self.program.settings().autostart => Some(Input::Start(NOBODY)),
            _ => None,
        };
        let effects = first.map(|input| self.machine.handle(input, Instant::now()));
        // Whoever asks from now on hears that it is starting, not that it is down.
        self.publish();
        looked.send_replace(true);
        self.carry_out(effects.unwrap_or_default()).await;
    }

    /// No shim answers. One of a session may have been stopped; what a dead one left is ended. A slot whose shim was
    /// stopped waits for it: it may be started yet. A shim that lives is left alone, whether it can be reached or not.
    async fn take_up_left(&mut self) -> bool {
        let has_nobody_else = self.session.is_some() || self.program.settings().removed;
        if has_nobody_else && self.may_have_shim() && self.take_up_awoken().await {
            return true;
        }
        let has_socket = self.context.has_shim_socket(&self.program.settings().name);
        // After a reboot its socket is gone too, and the events still tell of a program.
        let had_shim = has_socket || self.log.tells_of_a_program();
        let found = match had_shim || (self.session.is_some() && self.may_have_shim()) {
            true => self.end_orphans().await,
            false => Some(OrphansFound::Ended(0)),
        };
        match found {
            Some(OrphansFound::Ended(_)) if self.session.is_some() => self.take_up_ended().await,
            Some(OrphansFound::Ended(_)) if had_shim => {
                self.warn("its program ended with its shim while there was no daemon");
                self.tell(shim_lost());
                self.drop_unsent().await;
            }
            Some(OrphansFound::Living(shim)) if self.session.is_some() => {
                let lives = LaunchError::Unreached { pid: shim.pid() };
                self.machine.recall_end(Some(lives.to_string()));
            }
            _ => {}
        }
        false
    }

    /// A session that has ended has none, unless its socket says otherwise.
    fn may_have_shim(&self) -> bool {
        let ended = self.session.as_ref().map(|session| session.ended.is_some());
        !ended.unwrap_or(false) || self.context.has_shim_socket(&self.program.settings().name)
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
        match blocking::run(move || context.shim(&slot)).await.flatten() {
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
            // A session has no settings but its own.
            _ if self.session.is_some() => Runs::with(settings.clone()),
            Some(launched) => Runs::with(Arc::new(launched.over(settings))),
            None if settings.kind == Kind::Shell => Runs::with(settings.clone()),
            None => without_record(pid, settings.clone()).await,
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

    /// The message that the program was at when the daemon before was killed, unless that has told what came of it.
    fn unanswered(&self) -> Option<Input> {
        if self.program.settings().kind == Kind::Shell {
            return None;
        }
        let (taken, text) = journal::unanswered(self.log.paths())?;
        let passed = (Utc::now() - taken).to_std().unwrap_or_default();
        let now = Instant::now();
        let began = now.checked_sub(passed).unwrap_or(now);
        Some(Input::WasInTurn(text, began))
    }

    async fn found_running(
        &mut self,
        hello: &Hello,
        runs: Runs,
    ) -> impl Iterator<Item = Input> + use<> {
        let pid = hello.child_pid;
        self.shown.takes_up();
        if let Some(at) = self.began(pid) {
            self.program.was_started(at);
        }
        self.tell(What::Adopted { pid });
        let settings = self.context.settings_file(&self.program.settings().name);
        self.memory
            .set_settings(std::fs::read_to_string(settings).ok());
        self.recall_conversation(pid).await;
        if let Some(id) = self.memory.session().map(|session| session.id) {
            self.hold(id);
        }
        let continues = true;
        let started = Input::Started { pid, continues };
        let strange = self.memory.unrehearsed == Some(pid);
        let gated = self.memory.gated == Some(pid);
        let plain = self.program.settings().kind == Kind::Shell;
        let draft = self.memory.draft.clone();
        let typed = draft.and_then(|draft| draft.reached(hello.last_input));
        let more = [
            self.unanswered(),
            strange.then_some(Input::Unrehearsed),
            gated.then(|| Input::WasGated(hello.note.clone())),
            plain.then(ready),
        ];
        let settings = Input::RunsWith(runs);
        // Before the program is there: at no moment it has typed nothing.
        typed
            .map(Input::WasTyped)
            .into_iter()
            .chain([started, settings])
            .chain(more.into_iter().flatten())
    }
}

/// Of a program of which no record says what it was started with. If it stands in the directory of its slot, it is taken
/// to have been started there; for the rest, the stricter setting is assumed. Its permission mode is on its screen and
/// in each call.
async fn without_record(pid: u32, settings: Arc<SlotConfig>) -> Runs {
    let configured = settings.cwd.clone();
    let looked = blocking::run(move || {
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
