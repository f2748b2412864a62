//! Messages that daemons before this one have left.

use super::{Once, OnceRecord, Sending};
use crate::core::model::RpcError;
use crate::os::files;
use std::io;

impl Once<Sending> {
    /// Messages that an earlier daemon has taken, and for which it has not pressed Enter, in the order in which they came.
    pub fn unsent(&self) -> Vec<OnceRecord<Sending>> {
        let all = self.files().into_iter();
        let all = all.filter_map(|(_, path)| {
            let text = files::read_text(&path).ok()?;
            serde_json::from_str(&text).ok()
        });
        let mut unsent: Vec<OnceRecord<Sending>> = all
            .filter(|record: &OnceRecord<Sending>| {
                let ended = record.outcome.is_some() || record.dropped.is_some();
                record.entered_at.is_none() && !ended
            })
            .collect();
        unsent.sort_by_key(|record| record.queued_at);
        unsent
    }

    /// Its sender waits no longer: if it was typed it goes on, and the next daemon sees to it if this one is killed.
    pub fn leave(&self, slot: &str, id: &str) {
        let Some(mut record) = self.load(slot, id).filter(|one| one.entered_at.is_none()) else {
            return;
        };
        record.request.unattended = true;
        if let Err(error) = self.save(&record) {
            tracing::warn!("message {id}: {error}");
        }
    }

    /// Drops a message that an earlier daemon has left, unless its sender has come back.
    pub fn drop_unless_active(&self, record: &OnceRecord<Sending>, why: RpcError) {
        let _writing = self.writing();
        let key = (record.slot.clone(), record.id.clone());
        if self.active().contains_key(&key) {
            return;
        }
        let is_dropped = self.why_dropped(&record.slot, &record.id).is_some();
        if !is_dropped && let Err(error) = self.dropped(&record.slot, &record.id, why) {
            tracing::warn!("message {}: {error}", record.id);
        }
    }

    /// Drops the messages that waited for this slot when its program ended and there was no daemon. Returns their ids.
    pub fn drop_unsent(&self, slot: &str, why: &RpcError) -> io::Result<Vec<String>> {
        let _writing = self.writing();
        let left =
            |record: &OnceRecord<Sending>| record.slot == slot && record.queued_at < self.opened;
        let mut ids = Vec::new();
        for record in self.unsent().into_iter().filter(left) {
            self.save(&OnceRecord {
                dropped: Some(why.clone()),
                untold: !record.request.unattended,
                ..record.clone()
            })?;
            ids.push(record.id);
        }
        Ok(ids)
    }
}
