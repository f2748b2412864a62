//! The last events, shared by all listeners: each is in memory once.

use super::Ledger;
use crate::core::model::Event;
use crate::core::model::envelope;
use crate::core::text::secrets;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;
use tokio_util::bytes::Bytes;

/// The number of events that a listener may be behind; a listener that is further behind has missed some, and gets an
/// error.
const MAX_EVENTS: usize = 1024;
/// The maximum bytes of these events together.
const MAX_BYTES: usize = 4 << 20;

/// An event in the form that listeners get: made once and shared.
#[derive(Debug)]
pub struct SharedEvent {
    pub event: Event,
    /// The whole line of the notification, without secrets.
    line: Bytes,
}

const AFTER: &str = "}\n";

fn before() -> String {
    let (version, method) = (envelope::VERSION, envelope::EVENT);
    format!("{{\"jsonrpc\":\"{version}\",\"method\":\"{method}\",\"params\":")
}

impl SharedEvent {
    pub fn new(event: Event) -> SharedEvent {
        let json = serde_json::to_value(&event).unwrap_or_default();
        let json = secrets::mask_json(&json).to_string();
        // The allocation has exactly its length, because a client that does not read keeps it in memory.
        let line = Bytes::from([&before(), json.as_str(), AFTER].concat());
        SharedEvent { event, line }
    }

    /// The notification on the socket, with its line end.
    pub fn line(&self) -> Bytes {
        self.line.clone()
    }

    /// The event alone.
    pub fn json(&self) -> &str {
        let json = &self.line[before().len()..self.line.len() - AFTER.len()];
        std::str::from_utf8(json).unwrap_or_default()
    }

    /// The memory that it takes: about twice the line, because the text is in the line and in the event.
    pub(super) fn cost(&self) -> usize {
        2 * self.line.len() + size_of::<Event>()
    }
}

/// The last events, bounded in number and in bytes; the newest is always kept.
#[derive(Debug, Default)]
pub(super) struct Recent {
    kept: VecDeque<Arc<SharedEvent>>,
    bytes: usize,
}

impl Recent {
    pub fn push(&mut self, told: Arc<SharedEvent>) {
        self.bytes += told.cost();
        self.kept.push_back(told);
        while self.kept.len() > 1 && (self.kept.len() > MAX_EVENTS || self.bytes > MAX_BYTES) {
            let oldest = self.kept.pop_front();
            self.bytes -= oldest.map_or(0, |oldest| oldest.cost());
        }
    }

    /// The first event after this position; `Ok(None)` if there is none yet.
    fn behind(&self, position: u64) -> Result<Option<Arc<SharedEvent>>, Missed> {
        let Some(first) = self.kept.front().map(|told| told.event.seq) else {
            return Ok(None);
        };
        let next = position + 1;
        match next.checked_sub(first) {
            None => Err(Missed(first - next)),
            Some(index) => Ok(self.kept.get(index as usize).cloned()),
        }
    }
}

/// The number of events that this listener was too slow for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Missed(pub u64);

/// The events after a position, one after another.
#[derive(Debug)]
pub struct RecentEvents {
    ledger: Arc<Mutex<Ledger>>,
    position: u64,
    told: watch::Receiver<u64>,
}

impl RecentEvents {
    pub(super) fn new(
        ledger: Arc<Mutex<Ledger>>,
        position: u64,
        told: watch::Receiver<u64>,
    ) -> RecentEvents {
        RecentEvents {
            ledger,
            position,
            told,
        }
    }

    /// The next event; `None` when there will be no more.
    pub async fn next(&mut self) -> Option<Result<Arc<SharedEvent>, Missed>> {
        loop {
            if let Some(next) = self.take() {
                return Some(next);
            }
            self.told.changed().await.ok()?;
        }
    }

    /// The next event, if it has happened.
    pub fn take(&mut self) -> Option<Result<Arc<SharedEvent>, Missed>> {
        let ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        if self.position >= ledger.visible {
            return None;
        }
        let next = ledger.recent.behind(self.position).transpose()?;
        self.position = match &next {
            Ok(told) => told.event.seq,
            Err(Missed(missed)) => self.position + missed,
        };
        Some(next)
    }
}
