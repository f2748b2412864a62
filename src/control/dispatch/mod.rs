//! What each request means: from a method and its params to the slots, and back. Here is who may ask for what, and
//! the table of methods; the methods themselves are in the files beside, by subject.

mod acting;
mod confirms;
mod looking;
mod named;
mod prompted;
mod sends;
mod session;
mod task;
mod tools;
mod wait;

use wait::within;

use super::kinds;
use super::permission::{self, Access, Reach};
use super::requests::{self, Caller, Hook, Method};
use crate::audit::Record;
use crate::core::claude::HookEvent;
use crate::core::machine::{Input, Reply};
use crate::core::model::*;
use crate::daemon::{DaemonHandle, Order};
use crate::events::Bus;
use crate::os::peer::{Origin, Peer, PeerMarks};
use crate::slot::Command;
use serde_json::Value;

#[derive(Debug)]
pub struct Dispatcher {
    pub(super) daemon: DaemonHandle,
}

impl Dispatcher {
    pub fn new(daemon: DaemonHandle) -> Dispatcher {
        Dispatcher { daemon }
    }

    pub fn bus(&self) -> &Bus {
        &self.daemon.bus
    }

    /// By what a client inside a slot is known.
    pub fn marks(&self) -> PeerMarks {
        self.daemon.marks()
    }

    /// Whether this client may ask for this. What is refused is written down before the answer leaves.
    pub async fn permit(&self, peer: &Peer, method: &str, params: &Value) -> Result<(), RpcError> {
        let granted = match &peer.origin {
            Origin::Slot(own) => self.is_granted(own, method, params),
            _ => false,
        };
        let Err(refusal) = permission::check(peer, method, params, granted) else {
            return Ok(());
        };
        let named = || params.get("slot").and_then(Value::as_str);
        let slot = match &peer.origin {
            Origin::Slot(slot) | Origin::Left(slot) => slot,
            _ => named().unwrap_or_default(),
        };
        let text = format!("refused: {}", refusal.message);
        let record = Record::refused(slot, peer, method, params, &refusal.message);
        if let Err(error) = self.daemon.audit.note(record).await {
            tracing::error!("the audit can't be written: {error}");
        }
        match self.daemon.slots().get(slot) {
            // A hook that shows a line waits for nobody: on a busy machine it has ended before it is heard.
            _ if method == Hook::NAME && peer.origin == Origin::Untold => tracing::debug!("{text}"),
            // One that is gone has no log to write to.
            Some(slot) => drop(slot.send(Command::Note(What::Warning { text })).await),
            None => tracing::warn!("{text}"),
        }
        Err(refusal)
    }

    /// Whether `[mcp]` of a slot's role grants this to the programs inside it.
    fn is_granted(&self, own: &str, method: &str, params: &Value) -> bool {
        let policies = self.daemon.policies();
        let Some(grants) = policies.get(own).map(|standing| &standing.policy.grants) else {
            return false;
        };
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

    /// Answers a request that the caller may ask for.
    pub async fn call(
        &self,
        caller: Caller<'_>,
        method: &str,
        params: Value,
    ) -> Result<Value, RpcError> {
        let Some(request) = requests::find(method) else {
            return Err(RpcError::no_such_method(method));
        };
        let params = self.one_of_role(method, params)?;
        kinds::check(request, &params, |name| self.kind_of(name))?;
        (request.run)(self, params, caller).await
    }

    pub(in crate::control) async fn reload(&self) -> Result<ReloadAnswer, RpcError> {
        self.daemon.order(|reply| Order::Reload { reply }).await
    }

    pub(in crate::control) async fn down(&self, params: DownParams) -> Result<Nothing, RpcError> {
        self.daemon
            .order(|reply| Order::Down {
                keep: params.keep,
                reply,
            })
            .await
    }

    pub(in crate::control) async fn hook(
        &self,
        params: HookParams,
    ) -> Result<HookAnswer, RpcError> {
        let slot = self.slot(&params.slot)?;
        let Some(event) = HookEvent::parse(&params.payload) else {
            return Err(RpcError::new(
                Fault::Usage,
                "this is not the JSON of a hook",
            ));
        };
        match slot.ask(|token| Input::Heard(token, event)).await? {
            Reply::Hook(output) => Ok(HookAnswer { output }),
            _ => Err(RpcError::new(Fault::Failed, "the slot gave no answer")),
        }
    }
}
