//! Taking up a program that runs already, and what it wrote before there was a connection.

use super::machine::{Cause, Input, NOBODY, Standing};
use super::task::{Slot, ready};
use crate::config::Kind;
use crate::control::protocol::What;
use crate::reading::Observer;
use crate::shim::{ExitReport, Hello, LaunchError, ShimLink};
use crate::terminal::Terminal;
use std::time::Instant;
use tokio::sync::watch;

/// Whether what a program asked its terminal is still to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Questions {
    /// It has just begun, and nobody has answered yet.
    Open,
    /// They were asked long ago, and answered then.
    Answered,
}

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
            self.take_up_ended();
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
        inputs.extend(self.catch_up(&hello, Questions::Answered));
        // Whoever was attached to the daemon before is not attached to this one.
        self.fit();
        self.resend_raw();
        if let Some(report) = hello.exit {
            inputs.push(self.take_leave(report, hello.ended_at).await);
        }
        inputs
    }

    fn found_running(&mut self, hello: &Hello) -> impl Iterator<Item = Input> + use<> {
        let pid = hello.child_pid;
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

    /// Reads what the program wrote before this connection: from the recording, up to the byte from which the
    /// shim goes on. What comes of it is for the machine.
    pub(super) fn catch_up(&mut self, hello: &Hello, questions: Questions) -> Option<Input> {
        self.terminal = Terminal::new(hello.cols.into(), hello.rows.into());
        self.observer = Observer::new();
        self.audience.begin_anew(Instant::now());
        let is_ours = questions == Questions::Open || !self.output.is_new();
        let overflowed = self.output.has_overflowed();
        match self.replay_recording(&hello.recording, hello.recorded) {
            Ok(has_read) => {
                // What an earlier daemon has seen overflow, it has told.
                if is_ours && !overflowed && self.output.has_overflowed() {
                    self.tell_overflow();
                }
                let replies = self.terminal.take_replies();
                if questions == Questions::Open && !replies.is_empty() {
                    self.next_input(replies);
                }
                self.check_waiters();
                has_read.then(|| self.news()).flatten()
            }
            Err(error) => {
                let text =
                    format!("the recording can't be read, so the screen is unknown: {error}");
                self.warn(&text);
                None
            }
        }
    }
}
