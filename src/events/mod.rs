//! What happens, told to everybody who listens, and kept for those who come back.
//!
//! Each event has a number, its position, which goes on over restarts of the daemon. An event is in the event log
//! before anybody is told of it and before it is in its slot's own log, so no position means two events, and a listener
//! that was cut off asks for what came after its last position and gets each event once. To write is one call to the
//! kernel, which keeps it whatever becomes of this process; nothing waits for the disk itself.

mod log;
mod recent;

pub use log::{EventReplay, gap};
pub use recent::{Missed, RecentEvents, SharedEvent};

use crate::core::model::{Event, EventKind};
use crate::core::timeline::Tally;
use chrono::Utc;
use log::EventLog;
use recent::Recent;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Numbers events, writes them down, and passes them on.
#[derive(Debug, Clone)]
pub struct Bus {
    ledger: Arc<Mutex<Ledger>>,
    /// The position of the last event that listeners can take.
    told: watch::Sender<u64>,
    /// The event log, for those who come back; `None` where nothing is kept.
    path: Option<Arc<Path>>,
}

/// The lock makes number, order and log agree.
#[derive(Debug, Default)]
struct Ledger {
    last: u64,
    /// `None` where nothing is kept.
    log: Option<EventLog>,
    /// The log could not be written the last time, which was told.
    failed: bool,
    recent: Recent,
    /// What was told since this process began, counted.
    tally: Tally,
}

/// A listener, from the position behind `position` on.
#[derive(Debug)]
pub struct Listener {
    pub position: u64,
    pub events: RecentEvents,
}

impl Default for Bus {
    /// A bus that keeps nothing.
    fn default() -> Bus {
        Bus {
            ledger: Arc::default(),
            told: watch::Sender::new(0),
            path: None,
        }
    }
}

impl Bus {
    /// A bus that goes on with the event log at `path`.
    pub fn open(path: &Path) -> io::Result<Bus> {
        let log = EventLog::open(path)?;
        let ledger = Ledger {
            last: log.last(),
            log: Some(log),
            ..Ledger::default()
        };
        Ok(Bus {
            ledger: Arc::new(Mutex::new(ledger)),
            path: Some(path.into()),
            ..Bus::default()
        })
    }

    pub fn publish(&self, slot: Option<&str>, what: EventKind) -> Event {
        let mut ledger = self.ledger();
        let told = Arc::new(ledger.next(slot, what));
        ledger.tally.take(&told.event);
        let news = ledger.write(&told);
        ledger.recent.push(told.clone());
        if let Some(text) = news {
            tracing::warn!("{text}");
            let warning = Arc::new(ledger.next(None, EventKind::Warning { text }));
            ledger.write(&warning);
            ledger.recent.push(warning);
        }
        self.told.send_replace(ledger.last);
        told.event.clone()
    }

    /// What was told since this process began, counted.
    pub fn tally(&self) -> Tally {
        self.ledger().tally.clone()
    }

    /// Hears everything behind the position that it has: nothing is between the two.
    pub fn listen(&self) -> Listener {
        let ledger = self.ledger();
        Listener {
            position: ledger.last,
            events: RecentEvents::new(self.ledger.clone(), ledger.last, self.told.subscribe()),
        }
    }

    /// What is kept of the events behind `after`, up to `until`. It reads files: not for a task that must not wait.
    pub fn replay(&self, after: u64, until: u64) -> EventReplay {
        EventReplay::new(self.path.clone(), after, until)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    fn next(&mut self, slot: Option<&str>, what: EventKind) -> SharedEvent {
        self.last += 1;
        SharedEvent::new(Event {
            seq: self.last,
            time: Utc::now(),
            slot: slot.map(str::to_owned),
            what,
        })
    }

    /// Writes an event down; what a person should know of that, when it changes. An event that can't be written is
    /// told all the same: whoever watches must not be kept in the dark by a full disk.
    fn write(&mut self, told: &SharedEvent) -> Option<String> {
        let written = self.log.as_mut()?.append(told.event.seq, told.json());
        let failed_before = std::mem::replace(&mut self.failed, written.is_err());
        match written {
            Err(error) if !failed_before => Some(format!(
                "the event log can't be written ({error}): what is told from now on can't be asked for again"
            )),
            Ok(()) if failed_before => Some("the event log is written again".to_owned()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
