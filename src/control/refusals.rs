//! Log lines about clients that were turned away or dropped, at a bounded rate: the first of a source at once, the
//! others as a count.

use super::dispatch::Dispatcher;
use super::places::ConnectionSource;
use crate::core::model::EventKind;
use crate::slot::SlotCommand;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The interval between two lines about the same source.
const INTERVAL: Duration = Duration::from_secs(10);

/// How the daemon ended a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    TurnedAway,
    Dropped,
}

impl Fate {
    fn name(self) -> &'static str {
        match self {
            Fate::TurnedAway => "turned away",
            Fate::Dropped => "dropped",
        }
    }
}

type Key = (ConnectionSource, Fate);

/// The number of clients by source and fate since the last line about them.
#[derive(Debug)]
pub(super) struct Refusals {
    counts: Mutex<BTreeMap<Key, usize>>,
    dispatcher: Arc<Dispatcher>,
}

impl Refusals {
    pub fn new(dispatcher: Arc<Dispatcher>) -> Arc<Refusals> {
        let counts = Mutex::default();
        Arc::new(Refusals { counts, dispatcher })
    }

    pub fn note(self: &Arc<Refusals>, source: &ConnectionSource, fate: Fate, why: &str) {
        let key = (source.clone(), fate);
        let mut counts = self.counts();
        if let Some(count) = counts.get_mut(&key) {
            *count += 1;
            return;
        }
        counts.insert(key.clone(), 0);
        drop(counts);
        let first = format!("a client of {source} was {}: {why}", fate.name());
        let refusals = self.clone();
        tokio::spawn(async move {
            refusals.tell(&key, first).await;
            refusals.tell_more(&key).await;
        });
    }

    /// Reports the count after each interval, until an interval has none.
    async fn tell_more(&self, key: &Key) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let count = self.take(key);
            if count == 0 {
                return;
            }
            let interval = humantime::format_duration(INTERVAL);
            let (source, fate) = (&key.0, key.1.name());
            let text = format!("{count} more clients of {source} were {fate} in {interval}");
            self.tell(key, text).await;
        }
    }

    /// Takes the count since the last time; a source with none is forgotten.
    fn take(&self, key: &Key) -> usize {
        let mut counts = self.counts();
        let count = counts.get_mut(key).map_or(0, std::mem::take);
        if count == 0 {
            counts.remove(key);
        }
        count
    }

    async fn tell(&self, (source, _): &Key, text: String) {
        tracing::warn!("{text}");
        let slot = match source {
            ConnectionSource::Slot(name) => self.dispatcher.handle(name),
            ConnectionSource::People | ConnectionSource::Untold | ConnectionSource::Process(_) => {
                None
            }
        };
        if let Some(slot) = slot {
            // A slot that is gone has no log.
            let _ = slot
                .send(SlotCommand::Note(EventKind::Warning { text }))
                .await;
        }
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<Key, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
