//! The requests that the daemon answers: one file for each request, and the table of them.
//!
//! A request's file has its description, who may call it, what it may name, its parameters, its answer, and the
//! function that answers it. Dispatch, permissions and the schema are made from [`TABLE`]. A type that a layer below
//! needs too is in [`crate::core::model`].

// The imports that most request files need are here once, for their `use super::*`.
use super::dispatch::Dispatcher;
use super::dispatch::each::done;
use super::heavy::{HeldWork, Holding};
use super::kinds::Accepts;
use super::permission::Access::{self, Anybody, Granted, OwnSlot, PersonOnly};
use super::permission::Reach::{Connection, OwnSessions, OwnTasks, Slots};
use super::scope::Scope;
use super::subscriptions::Subscriptions;
use super::written::{extent, part, request};
use crate::core::claude::reading::State;
use crate::core::machine::{Input, Reply};
use crate::core::model::*;
use crate::daemon::{Order, is_of_owner};
use crate::os::blocking;
use crate::os::peer::{Peer, PeerOrigin};
use crate::slot::{SlotCommand, SlotHandle, TerminalRequest, WantedOutput};
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

/// The type of a request, for clients: its name, its parameters and its answer.
pub trait Method {
    const NAME: &'static str;
    type Params: Serialize + DeserializeOwned + JsonSchema + std::marker::Send;
    type Answer: Serialize + DeserializeOwned + JsonSchema + std::marker::Send;
}

/// A request in progress: the caller, the caller's connection, and the dispatcher.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    dispatcher: &'a Dispatcher,
    peer: &'a Peer,
    /// Cancelled when the connection has ended.
    gone: &'a CancellationToken,
    subscriptions: &'a Subscriptions,
    holding: &'a Holding,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        dispatcher: &'a Dispatcher,
        peer: &'a Peer,
        gone: &'a CancellationToken,
        subscriptions: &'a Subscriptions,
        holding: &'a Holding,
    ) -> Call<'a> {
        Call {
            dispatcher,
            peer,
            gone,
            subscriptions,
            holding,
        }
    }

    /// Reserves memory for an answer that takes this many bytes to make: waits for its turn, and holds them until the
    /// answer is in the client's queue.
    pub(super) async fn hold(&self, bytes: usize) -> Result<Arc<HeldWork>, RpcError> {
        self.holding.hold(bytes).await
    }

    /// Takes this connection's turn to make a list of slots or sessions, and holds it while the list is made.
    pub(super) async fn list_turn(&self) -> Option<OwnedSemaphorePermit> {
        self.holding.list().await
    }

    /// The held memory, for work on a thread that goes on after the client is gone.
    pub(super) fn held(&self) -> Option<Arc<HeldWork>> {
        self.holding.held()
    }

    /// Releases the held memory, before a wait.
    pub(super) fn let_go(&self) {
        self.holding.let_go();
    }

    pub(super) fn dispatcher(&self) -> &'a Dispatcher {
        self.dispatcher
    }

    pub(super) fn peer(&self) -> &'a Peer {
        self.peer
    }

    pub(super) fn subscriptions(&self) -> &'a Subscriptions {
        self.subscriptions
    }
}

impl Deref for Call<'_> {
    type Target = Dispatcher;

    fn deref(&self) -> &Dispatcher {
        self.dispatcher
    }
}

type Answering<'a> = BoxFuture<'a, Result<Value, RpcError>>;

/// An entry in the table of requests.
#[derive(Debug, Clone, Copy)]
pub struct RequestEntry {
    pub name: &'static str,
    /// The description of the request.
    pub about: &'static str,
    pub access: Access,
    /// The scope that a token must have for this request over HTTP; `None` if the request is not available there.
    pub scope: Option<Scope>,
    pub names: Accepts,
    pub params: fn(&mut SchemaGenerator) -> Schema,
    pub answer: fn(&mut SchemaGenerator) -> Schema,
    /// Turns the parameters into the answer, both as JSON. The caller's permission is checked before.
    run: for<'a> fn(Call<'a>, Value) -> Answering<'a>,
}

impl RequestEntry {
    /// Answers the request. The caller's permission is checked before.
    pub(super) fn answer<'a>(&self, call: Call<'a>, params: Value) -> Answering<'a> {
        (self.run)(call, params)
    }
}

/// Defines the type of a request and its entry in the table. The function `answer` in the same file answers the
/// request.
macro_rules! request {
    ($(#[doc = $doc:literal])+
     $method:ident = $name:expr, $params:ty => $answer:ty;
     access: $access:expr;
     $(scope: $scope:expr;)?
     $(names: $names:expr;)?) => {
        $(#[doc = $doc])+
        #[derive(Debug)]
        pub struct $method;

        impl Method for $method {
            const NAME: &'static str = $name;
            type Params = $params;
            type Answer = $answer;
        }

        pub(super) const ENTRY: RequestEntry = RequestEntry {
            name: $name,
            about: concat!($($doc),+),
            access: $access,
            scope: optional!($($scope)?),
            names: either!($($names)?),
            params: |generator| generator.subschema_for::<$params>(),
            answer: |generator| generator.subschema_for::<$answer>(),
            run: |call, params| Box::pin(async move {
                let params = parsed::<$method>(params)?;
                as_json::<$answer>(answer(call, params).await?)
            }),
        };
    };
}

macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

/// What a request may name: slots and sessions by default.
macro_rules! either {
    () => {
        Accepts::Either
    };
    ($names:expr) => {
        $names
    };
}

/// Defines the table: each request by the name of its file, in the order of the documentation.
macro_rules! table {
    ($($file:ident),+ $(,)?) => {
        $(pub use $file::*;)+
        const TABLE: &[RequestEntry] = &[$($file::ENTRY),+];
    };
}

mod adopt;
mod attach;
mod audit;
mod cancel;
mod clear;
mod close;
mod close_pty_session;
mod confirm;
mod down;
mod events;
mod explain;
mod history;
mod hook;
mod info;
mod interrupt;
mod keyboard;
mod list_pty_sessions;
mod log;
mod metrics;
mod notify_test;
mod output;
mod peer;
mod pending;
mod ping;
mod policy;
mod reload;
mod resize;
mod restart;
mod roles;
mod screen;
mod search;
mod send;
mod sent;
mod sessions;
mod signal;
mod spawn;
mod start;
mod stats;
mod status;
mod stop;
mod submit;
mod task;
mod tasks;
mod type_line;
mod unified_exec;
mod unsubscribe;
mod wait;
mod why;
mod write;
mod write_stdin;

table! {
    ping, status, stats, metrics, roles, start, stop, restart, adopt, send, sent, pending, explain, confirm, interrupt,
    screen, history, search, wait, write, keyboard, attach, why, log, events, unsubscribe, policy, audit, submit, task, tasks, cancel,
    reload, notify_test, down, hook, peer, spawn, sessions, info, type_line, resize, signal, close, output, clear, unified_exec,
    write_stdin, close_pty_session, list_pty_sessions,
}

/// All requests.
pub fn requests() -> impl Iterator<Item = &'static RequestEntry> {
    TABLE.iter()
}

/// The request with this name.
pub fn find(name: &str) -> Option<&'static RequestEntry> {
    requests().find(|entry| entry.name == name)
}

fn parsed<M: Method>(params: Value) -> Result<M::Params, RpcError> {
    // Params may be absent if a method takes none.
    let params = match params {
        Value::Null => Value::Object(Default::default()),
        params => params,
    };
    serde_json::from_value(params).map_err(|error| RpcError::bad_params(M::NAME, &error))
}

fn as_json<A: Serialize>(told: A) -> Result<Value, RpcError> {
    serde_json::to_value(told).map_err(|error| RpcError::new(Fault::Failed, error.to_string()))
}

/// Refuses a request that takes over its connection: only the server of the socket can answer it.
async fn by_connection<P, A>(_: Call<'_>, _: P) -> Result<A, RpcError> {
    let text = "this request needs a connection to the control socket";
    Err(RpcError::new(Fault::Usage, text))
}
