//! The server of the daemon's socket, as an interface for the daemon. The layer above implements it, because it knows
//! the requests.

use crate::config::Config;
use crate::core::model::{ConfirmAnswer, ConfirmParams, Pong, RpcError};
use crate::slot::SlotContext;
use std::future::Future;
use tokio::net::UnixListener;
use tokio::sync::{mpsc, oneshot};

/// A server on the daemon's socket.
pub trait Serving {
    /// Takes a listener in place of the one before, whose socket was removed.
    fn listeners(&self) -> mpsc::Sender<UnixListener>;

    /// Takes answers that people give from elsewhere.
    fn answers(&self) -> mpsc::Sender<RemoteAnswer>;

    /// Takes no new clients, and disconnects each client when its requests are answered.
    fn end(self) -> impl Future<Output = ()> + Send;
}

/// An answer to a dialog that a person has given from elsewhere.
#[derive(Debug)]
pub struct RemoteAnswer {
    pub params: ConfirmParams,
    /// The channel that it came by, for the audit.
    pub via: &'static str,
    pub reply: oneshot::Sender<Result<ConfirmAnswer, RpcError>>,
}

/// The identity of the daemon; its state is filled in for each answer.
pub(super) fn about(config: &Config, context: &SlotContext) -> Pong {
    Pong {
        name: config.daemon.name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        config: config.file.clone(),
        logs: config.daemon.logs.clone(),
        socket: Some(context.socket.clone()),
        config_fault: None,
        wider_policies: Vec::new(),
        lost: Vec::new(),
        health: Vec::new(),
    }
}
