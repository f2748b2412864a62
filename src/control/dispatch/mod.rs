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

use super::{kinds, permission};
use crate::audit::Record;
use crate::core::claude::HookEvent;
use crate::core::machine::{Input, Reply};
use crate::core::model::*;
use crate::daemon::{DaemonHandle, Order};
use crate::events::Bus;
use crate::os::peer::{Origin, Peer, PeerMarks};
use crate::slot::Command;
use serde_json::Value;
use std::future::Future;
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub struct Dispatcher {
    daemon: DaemonHandle,
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
            Origin::Outside | Origin::Left(_) | Origin::Untold | Origin::Unseen(_) => false,
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
        let Access::Granted(word) = permission::access(method) else {
            return false;
        };
        if !grants.allow.contains(word) {
            return false;
        }
        match word {
            UnifiedExec::NAME => return self.is_own_session(own, params),
            Submit::NAME if method != word => return self.is_own_task(own, params),
            // It reaches no slot, only the connection that it came by.
            Events::NAME if method != word => return true,
            _ => {}
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

    /// Answers a request. `gone` is cancelled when the connection that it came by has ended.
    pub async fn call(
        &self,
        peer: &Peer,
        gone: &CancellationToken,
        method: &str,
        params: Value,
    ) -> Result<Value, RpcError> {
        let params = self.one_of_role(method, params)?;
        kinds::check(method, &params, |name| self.kind_of(name))?;
        match method {
            Ping::NAME => run::<Ping, _>(params, |_| async { Ok(self.daemon.pong()) }).await,
            Status::NAME => run::<Status, _>(params, |select| self.status(select)).await,
            Stats::NAME => run::<Stats, _>(params, |_| async { Ok(self.stats()) }).await,
            Start::NAME => {
                run::<Start, _>(params, |select| self.each_of_config(select, Input::Start)).await
            }
            Stop::NAME => run::<Stop, _>(params, |select| self.each(select, Input::Stop)).await,
            Restart::NAME => {
                run::<Restart, _>(params, |select| self.each_of_config(select, Input::Restart))
                    .await
            }
            Adopt::NAME => run::<Adopt, _>(params, |params| self.adopt(params)).await,
            Send::NAME => run::<Send, _>(params, |params| self.send(params)).await,
            Sent::NAME => run::<Sent, _>(params, |params| self.sent(params)).await,
            Pending::NAME => run::<Pending, _>(params, |select| self.pending(select)).await,
            Confirm::NAME => {
                run::<Confirm, _>(params, |params| self.confirm(params, peer.person())).await
            }
            Interrupt::NAME => run::<Interrupt, _>(params, |one| self.interrupt(one, peer)).await,
            Screen::NAME => run::<Screen, _>(params, |params| self.screen(params)).await,
            History::NAME => run::<History, _>(params, |params| self.history(params)).await,
            Search::NAME => run::<Search, _>(params, |params| self.search(params)).await,
            Wait::NAME => run::<Wait, _>(params, |params| self.wait(params)).await,
            Write::NAME => run::<Write, _>(params, |params| self.write(params, peer)).await,
            Why::NAME => run::<Why, _>(params, |one| self.why(one)).await,
            InForce::NAME => run::<InForce, _>(params, |one| self.policy(one)).await,
            Submit::NAME => run::<Submit, _>(params, |params| self.submit(params, peer)).await,
            Task::NAME => run::<Task, _>(params, |params| self.task(params)).await,
            Tasks::NAME => run::<Tasks, _>(params, |params| self.tasks(params, peer)).await,
            Cancel::NAME => run::<Cancel, _>(params, |one| self.cancel(one)).await,
            Reload::NAME => run::<Reload, _>(params, |_| self.reload()).await,
            Down::NAME => run::<Down, _>(params, |params| self.down(params)).await,
            Hook::NAME => run::<Hook, _>(params, |params| self.hook(params)).await,
            _ => self.call_session(peer, gone, method, params).await,
        }
    }

    async fn reload(&self) -> Result<ReloadAnswer, RpcError> {
        self.daemon.order(|reply| Order::Reload { reply }).await
    }

    async fn down(&self, params: DownParams) -> Result<Nothing, RpcError> {
        self.daemon
            .order(|reply| Order::Down {
                keep: params.keep,
                reply,
            })
            .await
    }

    async fn hook(&self, params: HookParams) -> Result<HookAnswer, RpcError> {
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

/// Runs a method on its typed params.
pub(super) async fn run<M: Method, F>(
    params: Value,
    call: impl FnOnce(M::Params) -> F,
) -> Result<Value, RpcError>
where
    F: Future<Output = Result<M::Answer, RpcError>>,
{
    // Params may be left out where a method takes none.
    let params = if params.is_null() {
        Value::Object(Default::default())
    } else {
        params
    };
    let params =
        serde_json::from_value(params).map_err(|error| RpcError::bad_params(M::NAME, &error))?;
    let answer = call(params).await?;
    serde_json::to_value(answer).map_err(|error| RpcError::new(Fault::Failed, error.to_string()))
}
