//! The output of slots for a subscriber that wants it: recent output first, then new output.

use super::dispatch::Dispatcher;
use crate::core::model::{Event, EventKind};
use crate::slot::{OutputPart, SlotCommand, SlotHandle, TerminalRequest, WantedOutput};
use chrono::Utc;
use std::collections::BTreeMap;
use tokio::sync::watch;

/// The amount of earlier output that a new subscriber gets: some screens full.
const RECENT: u64 = 64 << 10;

/// Bytes of output in one event: usually less than the bytes that each client may always have, also as JSON.
const PIECE: u64 = 16 << 10;

/// The position up to which a subscriber has the output of each slot.
#[derive(Debug, Default)]
pub(super) struct Tails {
    of: BTreeMap<String, FollowedTail>,
}

#[derive(Debug)]
struct FollowedTail {
    slot: SlotHandle,
    pulse: watch::Receiver<u64>,
    at: u64,
}

impl Tails {
    /// Follows a slot, if it is not followed yet.
    pub async fn follow(&mut self, dispatcher: &Dispatcher, name: &str) {
        if self.of.contains_key(name) {
            return;
        }
        let Some(slot) = dispatcher.handle(name) else {
            return;
        };
        let pulse = slot.watch_output();
        let at = match part(&slot, u64::MAX).await {
            Some(part) => part.total.saturating_sub(RECENT),
            None => return,
        };
        self.of
            .insert(name.to_owned(), FollowedTail { slot, pulse, at });
    }

    /// Waits for a slot that has written something; never returns if no slot is followed.
    pub async fn written(&mut self) -> String {
        let changes = self.of.iter_mut().map(|(name, tail)| {
            Box::pin(async move {
                match tail.pulse.changed().await {
                    Ok(()) => name.clone(),
                    // The slot is gone; another event reports that.
                    Err(_) => std::future::pending().await,
                }
            })
        });
        let changes: Vec<_> = changes.collect();
        if changes.is_empty() {
            return std::future::pending().await;
        }
        futures_util::future::select_all(changes).await.0
    }

    /// The next piece of a slot's output; `seq` is that of the last event. The piece is taken from the slot only when
    /// the subscriber has room for it.
    pub async fn next(&mut self, name: &str, seq: u64) -> Option<Event> {
        let tail = self.of.get_mut(name)?;
        tail.pulse.mark_unchanged();
        let mut dropped = 0;
        loop {
            let part = part(&tail.slot, tail.at).await?;
            tail.at = part.end();
            dropped += part.dropped;
            if !part.bytes.is_empty() {
                return Some(Event {
                    seq,
                    time: Utc::now(),
                    slot: Some(name.to_owned()),
                    what: EventKind::Data {
                        text: String::from_utf8_lossy(&part.bytes).into_owned(),
                        start: part.start,
                        dropped_bytes: dropped,
                    },
                });
            }
            // The requested output is no longer kept, and newer output is.
            if part.end() >= part.total {
                return None;
            }
        }
    }

    pub fn forget(&mut self, name: &str) {
        self.of.remove(name);
    }
}

async fn part(slot: &SlotHandle, from: u64) -> Option<OutputPart> {
    let wanted = WantedOutput::Range(from, from.saturating_add(PIECE));
    let request = |reply| SlotCommand::Terminal(TerminalRequest::Output { wanted, reply });
    slot.request(request).await.ok()
}
