//! How people and programs reach the daemon: JSON-RPC 2.0, one object per line, on a unix socket. `server` (with
//! `places`, `reserve` and `refusals`, for who may connect, `listening` and `subscriptions`, for those who follow
//! events) and `client` (with `identity`, the check of who answers) touch the socket. `requests` has a file for each
//! request and the table of them; `permission`, `scope`, `kinds` and `schema` are pure and use that table. `dispatch`
//! knows slots only by their handles, and `execute` runs a file of tasks as a client.

mod allowances;
pub mod attach;
pub mod client;
pub mod dispatch;
pub mod execute;
mod heavy;
pub mod identity;
pub mod kinds;
mod listening;
pub mod permission;
mod places;
mod refusals;
mod remote;
mod request_lines;
pub mod requests;
mod reserve;
mod schema;
pub mod scope;
pub mod server;
mod subscriptions;
mod tails;
mod unasked;
mod written;

pub use schema::schema;

use crate::config::Config;
use crate::daemon::{self, DaemonError, Host};
use crate::os::paths::Env;
use dispatch::Dispatcher;
use server::Server;
use std::sync::Arc;

/// Runs a daemon that answers on its socket, until a request or a signal ends it.
pub async fn run(host: Host, config: Config, env: &Env) -> Result<(), DaemonError> {
    daemon::run(host, config, env, |daemon, listener| {
        let dispatcher = Arc::new(Dispatcher::new(daemon));
        dispatcher.send_what_was_left();
        listener.map(|listener| Server::start(listener, dispatcher))
    })
    .await
}
