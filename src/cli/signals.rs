//! The signals that a command at a terminal listens to: those that end it, and those after which its terminal differs.

use crate::cli::failure::Failure;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal means.
pub enum HeardSignal {
    /// The command is to end, by the signal of this name.
    End(&'static str),
    /// The window has another size.
    Resized,
    /// The command was stopped and goes on: a shell may have set the terminal otherwise.
    GoesOn,
}

pub struct Signals {
    ends: [(Signal, &'static str); 4],
    window: Signal,
    goes_on: Signal,
}

impl Signals {
    pub fn listen() -> Result<Signals, Failure> {
        let on = |kind| {
            signal(kind)
                .map_err(|error| Failure::failed(format!("signals can't be heard: {error}")))
        };
        Ok(Signals {
            ends: [
                (on(SignalKind::terminate())?, "SIGTERM"),
                (on(SignalKind::hangup())?, "SIGHUP"),
                (on(SignalKind::interrupt())?, "SIGINT"),
                (on(SignalKind::quit())?, "SIGQUIT"),
            ],
            window: on(SignalKind::window_change())?,
            goes_on: on(SignalKind::from_raw(rustix::process::Signal::CONT.as_raw()))?,
        })
    }

    pub async fn next(&mut self) -> HeardSignal {
        let [terminate, hangup, interrupt, quit] = &mut self.ends;
        tokio::select! {
            _ = terminate.0.recv() => HeardSignal::End(terminate.1),
            _ = hangup.0.recv() => HeardSignal::End(hangup.1),
            _ = interrupt.0.recv() => HeardSignal::End(interrupt.1),
            _ = quit.0.recv() => HeardSignal::End(quit.1),
            _ = self.window.recv() => HeardSignal::Resized,
            _ = self.goes_on.recv() => HeardSignal::GoesOn,
        }
    }
}
