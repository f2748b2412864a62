//! Events: published to all listeners, and kept for clients that reconnect.
//!
//! Each event has a number, its position, which continues after a restart of the daemon. An event is in the event log
//! before any listener gets it and before it is in its slot's own log, so no position means two events, and a listener
//! that was cut off asks for the events after its last position and gets each event once. A write is one call to the
//! kernel, which keeps the data even if this process ends; the code does not wait for the disk itself.
//!
//! Threads write both logs, since a disk may not answer at all. In that case listeners still get the events, as soon as
//! the file of the position marks their numbers as used: a daemon that starts after a kill reports a gap, and uses no
//! number twice.

mod log;
mod recent;
mod writing;

pub use log::{EventReplay, EventsSince, gap};
pub use recent::{Missed, RecentEvents, SharedEvent};
pub use writing::{EventFile, FileNews};

use crate::core::model::{Event, EventKind};
use crate::core::timeline::Tally;
use chrono::Utc;
use recent::Recent;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use writing::{EventWriter, UnwrittenEvents};

/// Numbers events, has them written, and passes them to listeners.
#[derive(Debug, Clone)]
pub struct Bus {
    ledger: Arc<Mutex<Ledger>>,
    /// The position of the last event that listeners can take.
    told: watch::Sender<u64>,
    /// Writes the event log, for clients that reconnect; `None` if no log is kept.
    writer: Option<EventWriter>,
}

/// The state of the bus. The lock keeps number, order and log consistent. It is not held while a file is written.
#[derive(Debug, Default)]
struct Ledger {
    last: u64,
    /// The last event that listeners can take.
    visible: u64,
    recent: Recent,
    unwritten: UnwrittenEvents,
    /// Counts of the events since this process began.
    tally: Tally,
}

/// A listener, for events after `position`.
#[derive(Debug)]
pub struct Listener {
    pub position: u64,
    pub events: RecentEvents,
}

impl Default for Bus {
    /// A bus without a log.
    fn default() -> Bus {
        Bus {
            ledger: Arc::default(),
            told: watch::Sender::new(0),
            writer: None,
        }
    }
}

impl Bus {
    /// A bus that continues the event log at `path`.
    pub fn open(path: &Path) -> io::Result<Bus> {
        let (writer, last) = EventWriter::open(path)?;
        let ledger = Ledger {
            last,
            visible: last,
            ..Ledger::default()
        };
        Ok(Bus {
            ledger: Arc::new(Mutex::new(ledger)),
            told: watch::Sender::new(last),
            writer: Some(writer),
        })
    }

    /// Publishes an event, and returns its position.
    pub fn publish(&self, slot: Option<&str>, what: EventKind) -> u64 {
        self.publish_to(slot, what, None)
    }

    /// Like [`Bus::publish`], and also writes the event to this file.
    pub fn publish_to(
        &self,
        slot: Option<&str>,
        what: EventKind,
        file: Option<Arc<dyn EventFile>>,
    ) -> u64 {
        let mut ledger = self.ledger();
        let event = ledger.next(slot, what);
        let seq = event.event.seq;
        match &self.writer {
            Some(writer) => writer.write(self, &mut ledger, event, file),
            None => self.show(&mut ledger, seq),
        }
        seq
    }

    /// Returns when all events published until now are in the files, or if the disk does not answer.
    pub async fn settled(&self) {
        if let Some(writer) = &self.writer {
            writer.settled().await;
        }
    }

    /// Tells whether all published events are in the files.
    pub fn is_settled(&self) -> bool {
        self.writer.as_ref().is_none_or(EventWriter::is_settled)
    }

    /// Like [`Bus::settled`], at the end of the daemon: waits as long as the disk answers.
    pub async fn close(&self) {
        while !self.is_settled() && self.hanging(Path::new("")).is_empty() {
            self.settled().await;
        }
    }

    /// The disks that do not answer now, each with its path and what that means; `logs` is the directory of the slots' logs.
    /// Listeners get the events that happened meanwhile.
    pub fn hanging(&self, logs: &Path) -> Vec<(PathBuf, String)> {
        let writer = self.writer.as_ref();
        writer.map_or_else(Vec::new, |writer| writer.hanging(self, logs))
    }

    /// Counts of the events since this process began.
    pub fn tally(&self) -> Tally {
        self.ledger().tally.clone()
    }

    /// A listener that gets every event after its position, without a gap.
    pub fn listen(&self) -> Listener {
        let position = self.ledger().visible;
        Listener {
            position,
            events: RecentEvents::new(self.ledger.clone(), position, self.told.subscribe()),
        }
    }

    /// The kept events after `after`, up to `until`. It reads files, so a task that must not block can't use it.
    pub fn replay(&self, after: u64, until: u64) -> EventReplay {
        let path = self.writer.as_ref().map(EventWriter::path);
        EventReplay::new(path, after, until)
    }

    /// The kept events after `after` that are in the log by now. It reads files, like [`Bus::replay`].
    pub fn since(&self, after: u64) -> io::Result<EventsSince> {
        match &self.writer {
            Some(writer) => EventsSince::read(&writer.path(), after),
            None => Ok(EventsSince::default()),
        }
    }

    /// Lets listeners take the events up to this one.
    fn show(&self, ledger: &mut Ledger, seq: u64) {
        if seq > ledger.visible {
            ledger.visible = seq;
            self.told.send_replace(seq);
        }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ledger {
    fn next(&mut self, slot: Option<&str>, what: EventKind) -> Arc<SharedEvent> {
        self.last += 1;
        let event = Arc::new(SharedEvent::new(Event {
            seq: self.last,
            time: Utc::now(),
            slot: slot.map(str::to_owned),
            what,
        }));
        self.tally.take(&event.event);
        self.recent.push(event.clone());
        event
    }
}

#[cfg(test)]
mod tests;
