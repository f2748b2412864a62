//! Taking up a program that runs already, and what it wrote before there was a connection.

use super::catch_up::Questions;
use super::machine::{Cause, Input, NOBODY, Standing};
use super::task::{Slot, ready};
use crate::config::Kind;
use crate::control::protocol::What;
use crate::shim::{ExitReport, Hello, LaunchError, ShimLink};
use std::time::Instant;
use tokio::sync::watch;

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
            (false, _) if self.running.removed => None,
            // Its end was under way when the daemon was killed.
            (true, Some(Standing::Down { .. })) => Some(Input::Stop(NOBODY)),
            (false, Some(Standing::Wanted)) => Some(Input::Start(NOBODY)),
            (false, None) if self.running.autostart => Some(Input::Start(NOBODY)),
            _ => None,
        };
        let effects = first.map(|input| self.machine.handle(input, Instant::now()));
        // Whoever asks from now on hears that it is starting, not that it is down.
        self.publish();
        looked.send_replace(true);
        self.carry_out(effects.unwrap_or_default()).await;
    }

    /// No shim answers. One of a session may have been stopped; what a dead one left is ended. A slot whose shim was
    /// stopped waits for it: it may be started yet.
    async fn take_up_left(&mut self) -> bool {
        let has_nobody_else = self.session.is_some() || self.running.removed;
        if has_nobody_else && self.take_up_awoken().await {
            return true;
        }
        if self.session.is_some() {
            self.end_remains().await;
            self.take_up_ended().await;
        } else if self.end_orphans().await {
            self.warn("its shim was killed while there was no daemon");
            self.tell(shim_lost());
        }
        false
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
        let socket = self.world.shim_socket(&self.running.name);
        let socket = socket.map_err(|error| LaunchError::Refused(error.to_string()))?;
        ShimLink::adopt(&socket).await
    }

    /// What the machine is to know of a program that runs already.
    pub(super) async fn take_up(&mut self, (link, hello): (ShimLink, Hello)) -> Vec<Input> {
        self.connected(link, &hello);
        let mut inputs = Vec::new();
        if !self.machine.is_up() {
            inputs.extend(self.found_running(&hello));
        }
        self.forget_raw(hello.last_input);
        inputs.extend(self.catch_up(&hello, Questions::Answered).await);
        // Whoever was attached to the daemon before is not attached to this one.
        self.fit();
        self.resend_raw();
        inputs
    }

    fn found_running(&mut self, hello: &Hello) -> impl Iterator<Item = Input> + use<> {
        let pid = hello.child_pid;
        self.recalls_state = true;
        self.tell(What::Adopted { pid });
        if let Some(id) = self.memory.session().map(|session| session.id) {
            self.hold(id);
        }
        let continues = true;
        let started = Input::Started { pid, continues };
        let strange = self.memory.unrehearsed == Some(pid);
        let gated = self.memory.gated == Some(pid);
        let plain = self.running.kind == Kind::Shell;
        let typed = self.memory.typed.clone().map(Input::WasTyped);
        let more = [
            typed,
            strange.then_some(Input::Unrehearsed),
            gated.then_some(Input::WasGated),
            plain.then(ready),
        ];
        std::iter::once(started).chain(more.into_iter().flatten())
    }
}
