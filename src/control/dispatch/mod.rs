//! The path of a request: the check of its permission, the slots that it means, and the function in the request's file.

pub(super) mod each;
mod named;

pub use named::{no_such_name, no_such_role, several_slots};

use super::kinds;
use super::permission::{self, Access, Reach};
use super::requests::{self, Call, Hook, Method};
use crate::audit::Record;
use crate::core::model::*;
use crate::core::policy::Grants;
use crate::daemon::DaemonHandle;
use crate::events::Bus;
use crate::os::blocking::Worker;
use crate::os::peer::{Peer, PeerMarks, PeerOrigin};
use crate::slot::SlotCommand;
use serde_json::Value;
use std::time::Duration;

#[derive(Debug)]
pub struct Dispatcher {
    daemon: DaemonHandle,
    reading: Worker,
}

/// The limit for a read of a log or the audit. Such a read is a few MiB at most; if it takes longer, the disk does not
/// answer.
const READING: Duration = Duration::from_secs(10);

impl Dispatcher {
    pub fn new(daemon: DaemonHandle) -> Dispatcher {
        Dispatcher {
            daemon,
            reading: Worker::new(READING),
        }
    }

    /// The thread that reads logs and the audit for people, one job at a time.
    pub(super) fn reading(&self) -> &Worker {
        &self.reading
    }

    pub fn daemon(&self) -> &DaemonHandle {
        &self.daemon
    }

    pub fn bus(&self) -> &Bus {
        self.daemon.bus()
    }

    /// The marks by which a client inside a slot is recognised.
    pub fn marks(&self) -> PeerMarks {
        self.daemon.marks()
    }

    /// Checks whether this client may make this request. A refusal is written into the audit before the answer leaves.
    pub async fn permit(&self, peer: &Peer, method: &str, params: &Value) -> Result<(), RpcError> {
        let granted = match &peer.origin {
            PeerOrigin::Slot(own) => self.is_granted(own, method, params),
            _ => false,
        };
        let Err(refusal) = permission::check(peer, method, params, granted) else {
            return Ok(());
        };
        let named = || params.get("slot").and_then(Value::as_str);
        let slot = match &peer.origin {
            PeerOrigin::Slot(slot) | PeerOrigin::Left(slot) => slot,
            _ => named().unwrap_or_default(),
        };
        let text = format!("refused: {}", refusal.message);
        let record = Record::refused(slot, peer, method, params, &refusal.message);
        if let Err(error) = self.daemon.audit().note(record).await {
            tracing::error!("the audit can't be written: {error}");
        }
        match self.daemon.slots().get(slot) {
            // A hook that shows a line does not wait for its answer: on a busy machine it has ended before its request
            // is handled.
            _ if method == Hook::NAME && peer.origin == PeerOrigin::Untold => {
                tracing::debug!("{text}")
            }
            // A slot that is gone has no log.
            Some(slot) => drop(
                slot.send(SlotCommand::Note(EventKind::Warning { text }))
                    .await,
            ),
            None => tracing::warn!("{text}"),
        }
        Err(refusal)
    }

    /// Tells whether `[mcp]` of a slot's role grants this to the programs inside it. If a new policy waits for a
    /// person, it must grant it too.
    fn is_granted(&self, own: &str, method: &str, params: &Value) -> bool {
        let policies = self.daemon.policies();
        // A program whose role differs from the slot's present role is granted nothing.
        let Some(role) = policies.configured_role(own) else {
            return false;
        };
        let slots = self.daemon.slots();
        let runs_in = slots.get(own).map(|slot| slot.status().role);
        let standing = policies.of(own, role);
        let standing = standing.filter(|_| runs_in.as_deref() == Some(role));
        standing.is_some_and(|standing| {
            let mut all = standing.all();
            all.all(|policy| self.is_granted_by(&policy.grants, own, method, params))
        })
    }

    fn is_granted_by(&self, grants: &Grants, own: &str, method: &str, params: &Value) -> bool {
        let Access::Granted(word, reach) = permission::access(method) else {
            return false;
        };
        if !grants.allow.contains(word) {
            return false;
        }
        match reach {
            Reach::OwnSessions => return self.is_own_session(own, params),
            Reach::OwnTasks => return self.is_own_task(own, params),
            Reach::Connection => return true,
            Reach::Slots => {}
        }
        let named = |slots: Vec<String>| self.names(&Select { slots }).unwrap_or_default();
        let reach = match &grants.slots {
            Some(slots) if slots.is_empty() => Vec::new(),
            Some(slots) => named(slots.iter().cloned().collect()),
            None => named(Vec::new())
                .into_iter()
                .filter(|name| name != own)
                .collect(),
        };
        let wanted = named(permission::targets(params));
        !permission::escapes(params)
            && !wanted.is_empty()
            && wanted.iter().all(|name| reach.contains(name))
    }
}

impl Call<'_> {
    /// Answers a request if its caller may make it, and removes what the caller may not see. Every request goes through
    /// here.
    pub async fn run(self, method: &str, params: Value) -> Result<Value, RpcError> {
        // Boxed, so that a request is small while it waits for its turn.
        Box::pin(self.permit(self.peer(), method, &params)).await?;
        let request = requests::find(method).ok_or_else(|| RpcError::no_such_method(method))?;
        let params = self.one_of_role(method, params)?;
        kinds::check(request, &params, |name| self.kind_of(name))?;
        let answer = request.answer(self, params).await;
        // All events of this request are in the logs before the answer leaves.
        self.bus().settled().await;
        let answer = answer?;
        Ok(self.peer().may_see(answer))
    }
}
