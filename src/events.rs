//! What happens, told to everybody who listens.

use crate::control::protocol::{Event, What};
use chrono::Utc;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast;

/// Events that a listener may be behind; one that is further behind is dropped and told so.
const MAX_BEHIND: usize = 1024;

/// Numbers events and passes them on. The lock makes number and order agree; nothing waits inside it.
#[derive(Debug, Clone)]
pub struct Bus {
    last: Arc<Mutex<u64>>,
    sender: broadcast::Sender<Event>,
}

impl Default for Bus {
    fn default() -> Bus {
        Bus {
            last: Arc::default(),
            sender: broadcast::channel(MAX_BEHIND).0,
        }
    }
}

impl Bus {
    pub fn publish(&self, slot: Option<&str>, what: What) -> Event {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last += 1;
        let event = Event {
            seq: *last,
            time: Utc::now(),
            slot: slot.map(str::to_owned),
            what,
        };
        // Nobody listening is no fault.
        let _ = self.sender.send(event.clone());
        event
    }

    pub fn listen(&self) -> broadcast::Receiver<Event> {
        self.sender.subscribe()
    }

    /// The number of the last event.
    pub fn last(&self) -> u64 {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
