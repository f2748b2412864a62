//! A program whose shim is gone or does not answer: nothing of it may go on with nobody to watch it.

use super::strays::{self, Strays};
use super::task::Slot;
use super::world::World;
use crate::blocking;
use crate::shim::{self, ExitReport, LinkError, ToShim};
use std::io;
use std::time::{Duration, Instant};

/// What a shim needs beyond the grace of its program: its patience after KILL, and a busy machine.
const SHIM_PATIENCE: Duration = Duration::from_secs(7);

/// Ends what a killed shim left of a slot or session that nobody knows any more, and removes its socket.
pub async fn end_forgotten(world: &World, slot: &str) {
    let Ok(shim_socket) = world.shim_socket(slot) else {
        return;
    };
    let strays = Strays {
        slot: slot.to_owned(),
        control_socket: world.socket.clone(),
        shim_socket,
    };
    match blocking::run(move || strays.end(Duration::ZERO)).await {
        Ok(Ok(Some(ended))) => tracing::info!("{slot} is no more: {ended} processes were ended"),
        Ok(Ok(None)) => tracing::warn!("{slot} is no more, and its shim runs"),
        Ok(Err(error)) | Err(error) => tracing::warn!("what is left of {slot}: {error}"),
    }
}

impl Slot {
    /// Has the shim end the program with all that it started.
    pub(super) fn stop_tree(&mut self, grace: Duration) {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        self.tell_shim(&ToShim::Stop { grace_ms });
        // One that was stopped hears nothing before it goes on.
        if let Some(shim) = self.shim_pid.and_then(shim::Handle::of) {
            shim.wake();
        }
        let due = Instant::now() + grace + SHIM_PATIENCE;
        self.stop_due = Some(self.stop_due.map_or(due, |before| before.min(due)));
    }

    /// The shim was told to end the program, and has said nothing since.
    pub(super) async fn stop_is_overdue(&mut self) {
        self.stop_due = None;
        self.link = None;
        let postponed = self.give_up_catching_up();
        self.warn("its shim does not answer, and is ended with its program");
        self.end_remains().await;
        self.ended(ExitReport::UNKNOWN).await;
        for command in postponed {
            self.take(command).await;
        }
    }

    /// The connection broke. A shim that lives is taken up again; with a dead one the program is gone too.
    pub(super) async fn lost(&mut self, error: LinkError) {
        self.link = None;
        if self.take_up_again().await || self.take_up_awoken().await {
            return;
        }
        self.warn(&format!("the shim is lost: {error}"));
        self.end_remains().await;
        self.ended(ExitReport::UNKNOWN).await;
    }

    /// The same for a shim that may have been stopped.
    pub(super) async fn take_up_awoken(&mut self) -> bool {
        if !self.has_shim_socket() {
            return false;
        }
        let woken = self.with_strays(|strays| strays.wake_shim()).await;
        woken.unwrap_or(false) && self.take_up_again().await
    }

    /// What a shim that was killed left behind must not go on, nor one that does not answer.
    pub(super) async fn end_remains(&mut self) {
        if self.has_shim_socket() {
            let ended = self.with_strays(|strays| strays.end_with_shim()).await;
            self.tell_strays(ended);
        }
    }

    /// The same where a shim that lives is left alone; whether there was a dead one.
    pub(super) async fn end_orphans(&mut self) -> bool {
        if !self.has_shim_socket() {
            return false;
        }
        let ended = self.with_strays(|strays| strays.end(Duration::ZERO)).await;
        let was_there = matches!(ended, Ok(Some(_)));
        self.tell_strays(ended.map(Option::unwrap_or_default));
        was_there
    }

    /// Before a start, whether a socket is left or not.
    pub(super) async fn end_strays(&mut self) -> io::Result<()> {
        let ended = self
            .with_strays(|strays| strays.end(strays::DISMISSAL))
            .await?;
        self.tell_strays(Ok(ended.unwrap_or_default()));
        Ok(())
    }

    fn tell_strays(&mut self, ended: io::Result<usize>) {
        match ended {
            Ok(0) => {}
            Ok(count) => self.warn(&format!(
                "{count} processes of a shim that is gone were ended"
            )),
            Err(error) => self.warn(&format!(
                "what its program may have left can't be ended: {error}"
            )),
        }
    }

    fn has_shim_socket(&self) -> bool {
        self.world.has_shim_socket(&self.running.name)
    }

    async fn with_strays<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Strays) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let shim_socket = self.world.shim_socket(&self.running.name);
        let strays = Strays {
            slot: self.running.name.clone(),
            control_socket: self.world.socket.clone(),
            shim_socket: shim_socket.map_err(io::Error::other)?,
        };
        blocking::run(move || work(&strays)).await?
    }
}
