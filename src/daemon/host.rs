//! The process that a daemon runs in: its own, or that of another program.

use super::{DaemonError, DaemonHandle, OwnPolicy};
use std::path::{Path, PathBuf};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// The environment of a daemon: the process around it.
#[derive(Debug)]
pub struct Host {
    /// The missiond program, for shims and hooks.
    program: PathBuf,
    /// Whether the process runs only the daemon: then its signals and its service manager are the daemon's.
    is_own: bool,
    /// Gets the handle when the daemon is ready.
    ready: Option<oneshot::Sender<DaemonHandle>>,
    /// A policy of the other program.
    own_policy: Option<OwnPolicy>,
}

impl Host {
    /// A process that runs only the daemon.
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

    /// Another program, which gets the handle when the daemon in it is ready. The program keeps its signals.
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

    /// Tells whether the process runs only the daemon.
    pub(super) fn is_own(&self) -> bool {
        self.is_own
    }

    pub(super) fn take_policy(&mut self) -> Option<OwnPolicy> {
        self.own_policy.take()
    }

    /// Reports that the daemon is ready.
    pub(super) fn is_ready(&mut self, handle: DaemonHandle) {
        if let Some(ready) = self.ready.take() {
            // A program that no longer waits for the handle is ending.
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

/// The signals that a daemon handles; `None` if the process belongs to another program.
#[derive(Debug)]
pub(super) struct HostSignals(Option<[Signal; 3]>);

/// What a signal requests.
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

    /// Returns when a signal asks the daemon to end; other signals are ignored.
    pub async fn end(&mut self) {
        while self.next().await != Wish::End {}
    }
}
