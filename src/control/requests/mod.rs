//! What can be asked of the daemon: one file for each request, and the table of them.
//!
//! A request's file says what it does, who may call it, what it may name, its parameters, its answer, and how it is
//! answered. Dispatch, permissions and the schema are made from [`TABLE`]. A type that a layer below needs too is in
//! [`crate::core::model`].

// What the files of the requests use most is imported here once, for their `use super::*`.
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

/// The type of a request, for clients: its name, what it takes and what it answers.
pub trait Method {
    const NAME: &'static str;
    type Params: Serialize + DeserializeOwned + JsonSchema + std::marker::Send;
    type Answer: Serialize + DeserializeOwned + JsonSchema + std::marker::Send;
}

/// A request under way: who asks, by which connection, and what answers.
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

    /// Before an answer that takes so many bytes of memory to make: waits for its turn, and holds them until it is in the
    /// client's queue.
    pub(super) async fn hold(&self, bytes: usize) -> Result<Arc<HeldWork>, RpcError> {
        self.holding.hold(bytes).await
    }

    /// The turn of this connection for a list of slots or sessions, for as long as it is made.
    pub(super) async fn list_turn(&self) -> Option<OwnedSemaphorePermit> {
        self.holding.list().await
    }

    /// The same, for work on a thread, which goes on when the client has gone.
    pub(super) fn held(&self) -> Option<Arc<HeldWork>> {
        self.holding.held()
    }

    /// Gives back what is held, before a wait.
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

/// A request as the table has it.
#[derive(Debug, Clone, Copy)]
pub struct RequestEntry {
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    pub access: Access,
    /// What a token must allow for this request over HTTP; `None` if it is not to be had there.
    pub scope: Option<Scope>,
    pub names: Accepts,
    pub params: fn(&mut SchemaGenerator) -> Schema,
    pub answer: fn(&mut SchemaGenerator) -> Schema,
    /// From its parameters to its answer, both as JSON. Whether the caller may ask is known before.
    run: for<'a> fn(Call<'a>, Value) -> Answering<'a>,
}

impl RequestEntry {
    /// Answers the request. Whether the caller may ask is known before.
    pub(super) fn answer<'a>(&self, call: Call<'a>, params: Value) -> Answering<'a> {
        (self.run)(call, params)
    }
}

/// Makes the type of a request and its entry in the table. The function `answer` beside it answers the request.
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

/// What a request may name: slots and sessions, unless it says otherwise.
macro_rules! either {
    () => {
        Accepts::Either
    };
    ($names:expr) => {
        $names
    };
}

/// Makes the table: each request by the name of its file, in the order of the documentation.
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
    screen, history, search, wait, write, attach, why, log, events, unsubscribe, policy, audit, submit, task, tasks, cancel,
    reload, notify_test, down, hook, peer, spawn, sessions, info, type_line, resize, signal, close, output, clear, unified_exec,
    write_stdin, close_pty_session, list_pty_sessions,
}

/// All requests.
pub fn requests() -> impl Iterator<Item = &'static RequestEntry> {
    TABLE.iter()
}

/// The request of this name.
pub fn find(name: &str) -> Option<&'static RequestEntry> {
    requests().find(|entry| entry.name == name)
}

fn parsed<M: Method>(params: Value) -> Result<M::Params, RpcError> {
    // Params may be left out where a method takes none.
    let params = match params {
        Value::Null => Value::Object(Default::default()),
        params => params,
    };
    serde_json::from_value(params).map_err(|error| RpcError::bad_params(M::NAME, &error))
}

fn as_json<A: Serialize>(told: A) -> Result<Value, RpcError> {
    serde_json::to_value(told).map_err(|error| RpcError::new(Fault::Failed, error.to_string()))
}

/// The answer to a request that takes its connection over: the server of the socket answers it itself.
async fn by_connection<P, A>(_: Call<'_>, _: P) -> Result<A, RpcError> {
    let text = "this request needs a connection to the control socket";
    Err(RpcError::new(Fault::Usage, text))
}
