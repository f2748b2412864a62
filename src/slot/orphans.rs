//! A program whose shim is gone or does not answer: nothing of it may go on with nobody to watch it.

use super::Slot;
use super::context::SlotContext;
use super::kind::ProgramKind;
use super::orphan_processes::{self, OrphanProcesses, OrphansFound};
use crate::core::model::ExitReport;
use crate::os::paths::PathError;
use crate::os::{blocking, cgroup};
use crate::shim::{self, LaunchError, LinkError, ToShim};
use std::io;
use std::time::{Duration, Instant};

/// What a shim needs beyond the grace of its program: its patience after KILL, and a busy machine.
const SHIM_PATIENCE: Duration = Duration::from_secs(7);

/// How long it may take to find what is left of a program, and to end it. It waits for processes, for 5 s each.
const LIMIT: Duration = Duration::from_secs(60);

/// What was sent is here after this long.
const SENT: Duration = Duration::from_millis(100);

/// Messages that may wait for this daemon: a shim keeps 256 KiB of them, and the shortest has some 16 bytes.
const MAX_WAITING: usize = 16 << 10;

/// Ends what a killed shim left of a slot or session that nobody knows any more, and removes its socket.
pub async fn end_forgotten(context: &SlotContext, slot: &str) {
    let Ok(orphans) = orphans_of(context, slot) else {
        return;
    };
    match blocking::run_within(LIMIT, move || orphans.end(Duration::ZERO)).await {
        Ok(Ok(OrphansFound::Ended(ended))) => {
            tracing::info!("{slot} is no more: {ended} processes were ended");
        }
        Ok(Ok(OrphansFound::Living(_))) => tracing::warn!("{slot} is no more, and its shim runs"),
        Ok(Err(error)) | Err(error) => tracing::warn!("what is left of {slot}: {error}"),
    }
}

fn orphans_of(context: &SlotContext, slot: &str) -> Result<OrphanProcesses, PathError> {
    Ok(OrphanProcesses {
        slot: slot.to_owned(),
        home: context.state.clone(),
        control_socket: context.socket.clone(),
        shim_socket: context.shim_socket(slot)?,
        cgroup: cgroup::place(&context.socket, slot),
    })
}

impl<K: ProgramKind> Slot<K> {
    /// Has the shim end the program with all that it started.
    pub(super) fn stop_tree(&mut self, grace: Duration) {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.tell_shim(&ToShim::Stop { grace_ms });
        // One that was stopped hears nothing before it goes on.
        if let Some(shim) = self.link.shim_pid().and_then(shim::Handle::of_pid) {
            shim.wake();
        }
        self.link.ends_by(Instant::now() + grace + SHIM_PATIENCE);
    }

    /// The shim was told to end the program, and the time for that is over. What it has said counts, even if this daemon
    /// had no time to hear it.
    pub(super) async fn stop_is_overdue(&mut self) {
        if self.hears_of_end().await {
            return;
        }
        self.link.close();
        let postponed = self.give_up_catching_up();
        self.warn("its shim does not answer, and is ended with its program");
        self.end_orphans_and_shim().await;
        self.ended(ExitReport::UNKNOWN).await;
        for command in postponed {
            self.take(command).await;
        }
    }

    /// Hears what the shim has sent already; whether that was the end of the program or of the connection.
    async fn hears_of_end(&mut self) -> bool {
        for _ in 0..MAX_WAITING {
            match self.link.next_within(SENT).await {
                Some(message) => self.hear_shim(Ok(message)).await,
                None => break,
            }
        }
        let has_ended = self.link.has_ended();
        if has_ended {
            let end = self.link.next().await;
            self.hear_shim(end).await;
        }
        has_ended
    }

    /// The connection broke. A shim that lives is taken up again; with a dead one the program is gone too. One that lives
    /// and can't be reached is left alone: the next start finds it, or says so.
    pub(super) async fn lost(&mut self, error: LinkError) {
        self.link.broke();
        if self.take_up_again().await || self.take_up_awoken().await {
            return;
        }
        self.warn(&format!("the shim is lost: {error}"));
        self.end_orphans().await;
        let shims = self.context.shims.clone();
        // Without a thread for it, the shim stays in memory.
        let _ = blocking::run_within(LIMIT, move || shims.settle()).await;
        self.ended(ExitReport::UNKNOWN).await;
    }

    /// The same for a shim that may have been stopped.
    pub(crate) async fn take_up_awoken(&mut self) -> bool {
        let woken = self.with_orphans(|orphans| orphans.wake_shim()).await;
        woken.unwrap_or(false) && self.take_up_again().await
    }

    /// Somebody wants an end: what a shim that was killed left behind must not go on, nor one that does not answer.
    pub(super) async fn end_orphans_and_shim(&mut self) {
        let ended = self.with_orphans(|orphans| orphans.end_with_shim()).await;
        self.tell_orphans(ended);
    }

    /// The same where a shim that lives is left alone, which is told. `None` if nothing can be said.
    pub(crate) async fn end_orphans(&mut self) -> Option<OrphansFound> {
        let ended = self
            .with_orphans(|orphans| orphans.end(Duration::ZERO))
            .await;
        self.tell_orphans(ended)
    }

    /// Before a start, whether a socket is left or not. No second program may run beside one that lives.
    pub(super) async fn end_orphans_before_start(&mut self) -> io::Result<()> {
        let ended = self
            .with_orphans(|orphans| orphans.end(orphan_processes::DISMISSAL))
            .await?;
        if let OrphansFound::Living(shim) = &ended {
            let lives = LaunchError::Unreached { pid: shim.pid() };
            return Err(io::Error::other(lives.to_string()));
        }
        self.tell_orphans(Ok(ended));
        Ok(())
    }

    fn tell_orphans(&mut self, ended: io::Result<OrphansFound>) -> Option<OrphansFound> {
        match &ended {
            Ok(OrphansFound::Ended(0)) => {}
            Ok(OrphansFound::Ended(count)) => self.warn(&format!(
                "{count} processes of a shim that is gone were ended"
            )),
            Ok(OrphansFound::Living(shim)) => {
                let lives = LaunchError::Unreached { pid: shim.pid() };
                self.warn(&format!("{lives}; it is left alone"));
            }
            Err(error) => self.warn(&format!(
                "what its program may have left can't be ended: {error}"
            )),
        }
        ended.ok()
    }

    async fn with_orphans<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&OrphanProcesses) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let orphans =
            orphans_of(&self.context, &self.program.settings().name).map_err(io::Error::other)?;
        blocking::run_within(LIMIT, move || work(&orphans)).await?
    }
}
