//! What happens, told to everybody who listens, and kept for those who come back.
//!
//! Each event has a number, its position, which goes on over restarts of the daemon. An event is in the event log
//! before anybody is told of it and before it is in its slot's own log, so no position means two events, and a listener
//! that was cut off asks for what came after its last position and gets each event once. To write is one call to the
//! kernel, which keeps it whatever becomes of this process; nothing waits for the disk itself.
//!
//! Threads write both, since a disk may not answer at all. Then listeners are told all the same, as soon as the file of the
//! position says that the numbers are used: a daemon that comes after one that was killed tells of a gap, and gives no
//! number twice.

mod log;
mod recent;
mod writing;

pub use log::{EventReplay, gap};
pub use recent::{Missed, RecentEvents, SharedEvent};
pub use writing::{EventFile, FileNews};

use crate::core::model::{Event, EventKind};
use crate::core::timeline::Tally;
use chrono::Utc;
use recent::Recent;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use writing::{EventWriter, UnwrittenEvents};

/// Numbers events, has them written down, and passes them on.
#[derive(Debug, Clone)]
pub struct Bus {
    ledger: Arc<Mutex<Ledger>>,
    /// The position of the last event that listeners can take.
    told: watch::Sender<u64>,
    /// What writes the event log, for those who come back; `None` where nothing is kept.
    writer: Option<EventWriter>,
}

/// The lock makes number, order and log agree. Nobody holds it while a file is written.
#[derive(Debug, Default)]
struct Ledger {
    last: u64,
    /// The last event that listeners can take.
    visible: u64,
    recent: Recent,
    unwritten: UnwrittenEvents,
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
            writer: None,
        }
    }
}

impl Bus {
    /// A bus that goes on with the event log at `path`.
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

    /// Returns its position.
    pub fn publish(&self, slot: Option<&str>, what: EventKind) -> u64 {
        self.publish_to(slot, what, None)
    }

    /// The same, and the event is in this file too.
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

    /// Returns when all that was published until now is in the files, or if the disk does not answer.
    pub async fn settled(&self) {
        if let Some(writer) = &self.writer {
            writer.settled().await;
        }
    }

    /// Whether all that was published is in the files.
    pub fn is_settled(&self) -> bool {
        self.writer.as_ref().is_none_or(EventWriter::is_settled)
    }

    /// The same at the end of the daemon: it waits for as long as the disk answers.
    pub async fn close(&self) {
        while !self.is_settled() && self.hanging().is_none() {
            self.settled().await;
        }
    }

    /// What does not answer at present, in words. Listeners are told what has happened meanwhile.
    pub fn hanging(&self) -> Option<String> {
        self.writer.as_ref()?.hanging(self)
    }

    /// What was told since this process began, counted.
    pub fn tally(&self) -> Tally {
        self.ledger().tally.clone()
    }

    /// Hears everything behind the position that it has: nothing is between the two.
    pub fn listen(&self) -> Listener {
        let position = self.ledger().visible;
        Listener {
            position,
            events: RecentEvents::new(self.ledger.clone(), position, self.told.subscribe()),
        }
    }

    /// What is kept of the events behind `after`, up to `until`. It reads files: not for a task that must not wait.
    pub fn replay(&self, after: u64, until: u64) -> EventReplay {
        let path = self.writer.as_ref().map(EventWriter::path);
        EventReplay::new(path, after, until)
    }

    /// Listeners can take the events up to this one.
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
