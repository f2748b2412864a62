//! The process that a daemon runs in: its own, or that of another program.

use super::{DaemonError, DaemonHandle, OwnPolicy};
use std::path::{Path, PathBuf};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// What a daemon is given by the process around it.
#[derive(Debug)]
pub struct Host {
    /// The missiond program, for shims and hooks.
    program: PathBuf,
    /// Whether the process is the daemon's own: its signals and its service manager are the daemon's concern.
    is_own: bool,
    /// Told when everything stands.
    ready: Option<oneshot::Sender<DaemonHandle>>,
    /// A policy of the other program.
    own_policy: Option<OwnPolicy>,
}

impl Host {
    /// A process that is nothing but the daemon.
    pub fn own() -> Result<Host, DaemonError> {
        let program = std::env::current_exe()
            .map_err(|error| DaemonError::place("this program's own path", error))?;
        Ok(Host {
            program,
            is_own: true,
            ready: None,
            own_policy: None,
        })
    }

    /// Another program, which is told when the daemon in it is ready. It keeps its signals.
    pub fn other(
        program: PathBuf,
        ready: oneshot::Sender<DaemonHandle>,
        own_policy: Option<OwnPolicy>,
    ) -> Host {
        Host {
            program,
            is_own: false,
            ready: Some(ready),
            own_policy,
        }
    }

    /// The missiond program, for shims and hooks.
    pub(super) fn program(&self) -> &Path {
        &self.program
    }

    /// Whether the process is the daemon's own.
    pub(super) fn is_own(&self) -> bool {
        self.is_own
    }

    pub(super) fn take_policy(&mut self) -> Option<OwnPolicy> {
        self.own_policy.take()
    }

    /// Everything stands.
    pub(super) fn is_ready(&mut self, handle: DaemonHandle) {
        if let Some(ready) = self.ready.take() {
            // A program that no longer waits for it is ending.
            let _ = ready.send(handle);
        }
    }

    pub(super) fn signals(&self) -> Result<HostSignals, DaemonError> {
        let listen = |kind| signal(kind).map_err(|error| DaemonError::place("signals", error));
        Ok(HostSignals(match self.is_own {
            false => None,
            true => Some([
                listen(SignalKind::terminate())?,
                listen(SignalKind::interrupt())?,
                listen(SignalKind::hangup())?,
            ]),
        }))
    }
}

/// The signals that a daemon hears; none, where they are another program's.
#[derive(Debug)]
pub(super) struct HostSignals(Option<[Signal; 3]>);

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    End,
    Reload,
}

impl HostSignals {
    pub async fn next(&mut self) -> Wish {
        let Some([terminate, interrupt, hangup]) = &mut self.0 else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = terminate.recv() => Wish::End,
            _ = interrupt.recv() => Wish::End,
            _ = hangup.recv() => Wish::Reload,
        }
    }

    /// Returns when the daemon is to end, whatever else is wished before.
    pub async fn end(&mut self) {
        while self.next().await != Wish::End {}
    }
}
