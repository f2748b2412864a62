//! Communication between the daemon and the service manager that may have started it.

use super::DaemonError;
use filedescriptor::FileDescriptor;
use sd_notify::NotifyState;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixListener as StdListener;
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::time::{Interval, MissedTickBehavior};

pub(super) fn ready(slots: usize) {
    let status = match slots {
        1 => "1 slot".to_owned(),
        slots => format!("{slots} slots"),
    };
    tell(&[NotifyState::Ready, NotifyState::Status(&status)]);
}

pub(super) fn stopping() {
    tell(&[NotifyState::Stopping]);
}

pub(super) fn alive() {
    tell(&[NotifyState::Watchdog]);
}

/// Notifies the service manager. If there is none that listens, nothing is lost.
fn tell(states: &[NotifyState]) {
    let _ = sd_notify::notify(states);
}

/// Ticks twice within the watchdog timeout of the service manager; never if the watchdog is off.
pub(super) struct Watchdog {
    ticks: Option<Interval>,
}

impl Watchdog {
    pub fn new() -> Watchdog {
        let ticks = sd_notify::watchdog_enabled().map(|limit| {
            // A limit of 0 is no limit, but an interval must have a length.
            let mut ticks = tokio::time::interval((limit / 2).max(Duration::from_millis(1)));
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        });
        Watchdog { ticks }
    }

    pub async fn due(&mut self) {
        match &mut self.ticks {
            Some(ticks) => drop(ticks.tick().await),
            None => std::future::pending().await,
        }
    }
}

/// The listening socket that the service manager has passed, if there is one. Its path must be the one that commands
/// use: otherwise no client finds the daemon.
pub(super) fn passed_listener(socket: &Path) -> Result<Option<UnixListener>, DaemonError> {
    let fault = |error: String| DaemonError::place("the socket of the service manager", error);
    let mut passed = sd_notify::listen_fds().map_err(|error| fault(error.to_string()))?;
    let Some(number) = passed.next() else {
        return Ok(None);
    };
    let listener = duplicate(number).map_err(|error| fault(error.to_string()))?;
    let address = listener
        .local_addr()
        .map_err(|error| fault(error.to_string()))?;
    if address.as_pathname() != Some(socket) {
        let text = format!(
            "it is {address:?}, and commands look for {}",
            socket.display()
        );
        return Err(fault(text).next("make ListenStream= in missiond.socket that path"));
    }
    listener
        .set_nonblocking(true)
        .and_then(|()| UnixListener::from_std(listener))
        .map(Some)
        .map_err(|error| fault(error.to_string()))
}

/// A descriptor owned by this process, for one that is known by its number.
fn duplicate(number: RawFd) -> filedescriptor::Result<StdListener> {
    let file = FileDescriptor::dup(&number)?.as_file()?;
    Ok(StdListener::from(OwnedFd::from(file)))
}
