//! The threads that write events: one writes the event log, the other the logs of the slots.

use super::log::{EventLog, Position};
use super::recent::SharedEvent;
use super::{Bus, Ledger};
use crate::core::model::EventKind;
use crate::os::write_queue::WriteQueue;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The maximum bytes of queued events for each of the two threads: about what 100 busy slots publish in a minute.
const ROOM: usize = 8 << 20;

/// How many numbers are marked as used at once while the disk does not answer.
const AHEAD: u64 = 10_000;

/// The log of a slot.
pub trait EventFile: Debug + Send + Sync {
    /// Writes the event; it may hang. The result is a message if the state of the file has changed.
    fn write(&self, event: &SharedEvent) -> Option<FileNews>;

    /// Counts an event that is left out because too many are queued.
    fn miss(&self);
}

/// A message to people about the state of a file.
#[derive(Debug)]
pub struct FileNews {
    pub text: String,
    /// Whether the file can be written again; then this message is written to it too.
    pub is_over: bool,
}

/// The numbers that were used although the disk does not answer.
#[derive(Debug, Default)]
pub(super) struct UnwrittenEvents {
    /// On the disk, all numbers up to this one are marked as used; 0 while the log itself shows them.
    reserved: u64,
    is_reserving: bool,
    /// The number of events that did not fit into the queue.
    missing: u64,
}

#[derive(Debug, Clone)]
pub(super) struct EventWriter(Arc<EventFiles>);

#[derive(Debug)]
struct EventFiles {
    path: Arc<Path>,
    log: Mutex<WatchedLog>,
    /// A thread that holds this lock may hang. Code that holds the ledger never takes it.
    position: Mutex<Position>,
    events: WriteQueue,
    slots: WriteQueue,
    /// The number of events that are missing in logs of slots since those hang.
    missing_in_slots: AtomicU64,
}

#[derive(Debug)]
struct WatchedLog {
    log: EventLog,
    /// Whether the last write failed, which was reported.
    failed: bool,
}

fn missing_entries(count: u64) -> String {
    match count {
        0 => "events are kept in memory until it does".to_owned(),
        1 => "1 entry of the log is missing".to_owned(),
        count => format!("{count} entries of the log are missing"),
    }
}

impl EventWriter {
    /// Opens the files. The result has the number of the last event of all earlier daemons.
    pub fn open(path: &Path) -> io::Result<(EventWriter, u64)> {
        let (log, position, last) = EventLog::open(path)?;
        let files = EventFiles {
            path: path.into(),
            log: Mutex::new(WatchedLog { log, failed: false }),
            position: Mutex::new(position),
            events: WriteQueue::start("missiond-events", ROOM)?,
            slots: WriteQueue::start("missiond-logs", ROOM)?,
            missing_in_slots: AtomicU64::new(0),
        };
        Ok((EventWriter(Arc::new(files)), last))
    }

    pub fn path(&self) -> Arc<Path> {
        self.0.path.clone()
    }

    pub fn is_settled(&self) -> bool {
        self.0.events.is_settled() && self.0.slots.is_settled()
    }

    pub async fn settled(&self) {
        self.0.events.settled().await;
        self.0.slots.settled().await;
    }

    /// Simulates a disk of the event log that does not answer, as long as this is held.
    #[cfg(test)]
    pub fn hang(&self) -> MutexGuard<'_, impl Debug> {
        locked(&self.0.log)
    }

    /// Queues the event to be written, and shows it to listeners when it is written, or when its number is marked as
    /// used on the disk.
    pub fn write(
        &self,
        bus: &Bus,
        ledger: &mut Ledger,
        event: Arc<SharedEvent>,
        file: Option<Arc<dyn EventFile>>,
    ) {
        let (seq, bytes) = (event.event.seq, event.cost());
        let append = {
            let (writer, bus, event) = (self.clone(), bus.clone(), event.clone());
            move || writer.append(&bus, &event)
        };
        let ticket = self.0.events.push(bytes, append);
        ledger.unwritten.missing += u64::from(ticket.is_none());
        if let Some(file) = file {
            let (writer, bus, to) = (self.clone(), bus.clone(), file.clone());
            let write = move || {
                if let Some(ticket) = ticket {
                    writer.0.events.wait_for(ticket);
                }
                writer.write_to(&bus, &event, to);
            };
            if self.0.slots.push(bytes, write).is_none() {
                self.0.missing_in_slots.fetch_add(1, Ordering::Relaxed);
                file.miss();
            }
        }
        if seq <= ledger.unwritten.reserved {
            bus.show(ledger, seq);
        }
        if self.0.events.hangs() {
            self.reserve(bus, ledger);
        }
    }

    /// The disks that do not answer now, each with its path and what that means; `logs` is the directory of the slots' logs.
    pub fn hanging(&self, bus: &Bus, logs: &Path) -> Vec<(PathBuf, String)> {
        let mut ledger = bus.ledger();
        let mut hanging = Vec::new();
        if self.0.events.hangs() {
            self.reserve(bus, &mut ledger);
            let lost = missing_entries(ledger.unwritten.missing);
            let text = format!("the disk of the event log does not answer: {lost}");
            let place = self.0.path.parent().unwrap_or(&self.0.path);
            hanging.push((place.to_owned(), text));
        }
        if self.0.slots.hangs() {
            let lost = missing_entries(self.0.missing_in_slots.load(Ordering::Relaxed));
            let text = format!("the disk of the slots' logs does not answer: {lost}");
            hanging.push((logs.to_owned(), text));
        }
        hanging
    }

    fn write_to(&self, bus: &Bus, event: &SharedEvent, file: Arc<dyn EventFile>) {
        let Some(FileNews { text, is_over }) = file.write(event) else {
            return;
        };
        if is_over {
            self.0.missing_in_slots.store(0, Ordering::Relaxed);
        }
        let slot = event.event.slot.as_deref();
        tracing::warn!(slot, "{text}");
        let file = is_over.then_some(file);
        bus.publish_to(slot, EventKind::Warning { text }, file);
    }

    /// Writes an event. If that fails, listeners still get it: a full disk must not hide events from them.
    fn append(&self, bus: &Bus, event: &SharedEvent) {
        let seq = event.event.seq;
        let news = {
            let mut log = locked(&self.0.log);
            let written = log.log.append(event.json());
            if written.is_err() {
                let position = locked(&self.0.position);
                let used = seq.max(bus.ledger().unwritten.reserved);
                // If this fails too, nothing more can be done; the failure of the log is reported.
                let _ = position.keep(used);
            }
            log.news(written)
        };
        bus.show(&mut bus.ledger(), seq);
        if let Some(text) = news {
            tracing::warn!("{text}");
            bus.publish(None, EventKind::Warning { text });
        }
        if self.0.events.is_at_end() {
            self.recover(bus);
        }
    }

    /// Ends the marking of numbers after all queued events are written: from now on the log itself shows which numbers
    /// are used.
    fn recover(&self, bus: &Bus) {
        let is_whole = {
            let unwritten = &bus.ledger().unwritten;
            (unwritten.reserved, unwritten.missing) == (0, 0)
        };
        if is_whole {
            return;
        }
        let position = locked(&self.0.position);
        let (last, missing) = {
            let mut ledger = bus.ledger();
            ledger.unwritten.reserved = 0;
            let missing = std::mem::take(&mut ledger.unwritten.missing);
            (ledger.last, missing)
        };
        let _ = position.keep(last);
        drop(position);
        if missing > 0 {
            bus.show(&mut bus.ledger(), last);
            let text = format!(
                "the event log is written again; {missing} entries of the log are missing: the disk did not answer"
            );
            tracing::warn!("{text}");
            bus.publish(None, EventKind::Warning { text });
        }
    }

    /// Marks the present and the next numbers as used, in a separate thread, unless that is in progress.
    fn reserve(&self, bus: &Bus, ledger: &mut Ledger) {
        let unwritten = &mut ledger.unwritten;
        if unwritten.is_reserving || unwritten.reserved >= ledger.last + AHEAD / 2 {
            return;
        }
        let (writer, bus) = (self.clone(), bus.clone());
        let keep = move || writer.keep_reserved(&bus);
        let thread = std::thread::Builder::new().name("missiond-position".to_owned());
        unwritten.is_reserving = thread.spawn(keep).is_ok();
    }

    fn keep_reserved(&self, bus: &Bus) {
        let position = locked(&self.0.position);
        let until = bus.ledger().last + AHEAD;
        let kept = position.keep(until);
        let mut ledger = bus.ledger();
        ledger.unwritten.is_reserving = false;
        if kept.is_ok() {
            ledger.unwritten.reserved = until;
            let last = ledger.last;
            bus.show(&mut ledger, last);
        }
    }
}

impl WatchedLog {
    /// The message for a write, if the state of the log has changed.
    fn news(&mut self, written: io::Result<()>) -> Option<String> {
        let failed_before = std::mem::replace(&mut self.failed, written.is_err());
        match written {
            Err(error) if !failed_before => Some(format!(
                "the event log can't be written ({error}): events from now on can't be replayed"
            )),
            Ok(()) if failed_before => Some("the event log is written again".to_owned()),
            _ => None,
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
