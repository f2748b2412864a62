//! The subscriptions of one connection: each has the id of its `events` request, and runs until it or its connection
//! ends.

use crate::control::requests::{Events, Method, UnsubscribeParams};
use crate::core::model::{Fault, Nothing, RpcError};
use serde_json::Value;
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::{CancellationToken, DropGuard};

#[derive(Debug, Clone, Default)]
pub(super) struct Subscriptions {
    /// By the id of the request, as JSON.
    running: Arc<Mutex<HashMap<String, Subscription>>>,
}

#[derive(Debug)]
struct Subscription {
    /// Cancelled to end it.
    end: CancellationToken,
    /// Cancelled when it has sent its last line.
    ended: CancellationToken,
}

/// The entry of a running subscription; it is removed when this is dropped.
struct SubscriptionPlace<'a> {
    subscriptions: &'a Subscriptions,
    id: String,
    end: CancellationToken,
    _ended: DropGuard,
}

impl Drop for SubscriptionPlace<'_> {
    fn drop(&mut self) {
        self.subscriptions.lock().remove(&self.id);
    }
}

impl Subscriptions {
    /// Runs a listener until it ends or [`Subscriptions::end`] ends it.
    pub async fn run(
        &self,
        id: &Value,
        listener: impl Future<Output = ()>,
    ) -> Result<(), RpcError> {
        let place = self.place(id)?;
        tokio::select! {
            () = listener => {}
            () = place.end.cancelled() => {}
        }
        Ok(())
    }

    /// Ends the subscription with this request id, and waits until its last line is sent.
    pub async fn end(&self, params: UnsubscribeParams) -> Result<Nothing, RpcError> {
        let ended = {
            let running = self.lock();
            let subscription = running
                .get(&params.id.to_string())
                .ok_or_else(|| self.unknown(&params.id, running.keys()))?;
            subscription.end.cancel();
            subscription.ended.clone()
        };
        ended.cancelled().await;
        Ok(Nothing {})
    }

    fn place(&self, id: &Value) -> Result<SubscriptionPlace<'_>, RpcError> {
        let (end, ended) = (CancellationToken::new(), CancellationToken::new());
        let mut running = self.lock();
        if running.contains_key(&id.to_string()) {
            let text = format!("a subscription with the id {id} runs on this connection");
            let next = "give each request an id of its own, or end that one: `unsubscribe`";
            return Err(RpcError::new(Fault::Usage, text).next(next));
        }
        let subscription = Subscription {
            end: end.clone(),
            ended: ended.clone(),
        };
        running.insert(id.to_string(), subscription);
        Ok(SubscriptionPlace {
            subscriptions: self,
            id: id.to_string(),
            end,
            _ended: ended.drop_guard(),
        })
    }

    fn unknown<'a>(&self, id: &Value, running: impl Iterator<Item = &'a String>) -> RpcError {
        let mut ids: Vec<&str> = running.map(String::as_str).collect();
        ids.sort_unstable();
        let text = format!("no subscription with the id {id} runs on this connection");
        let next = match ids.is_empty() {
            true => format!("none runs: `{}` starts one", Events::NAME),
            false => format!("the ids of those that run: {}", ids.join(", ")),
        };
        RpcError::new(Fault::Usage, text).next(next)
    }

    /// A panic while this was held can't leave a map of tokens half changed.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Subscription>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
