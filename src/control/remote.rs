//! Answers that people give from elsewhere, such as by a message. They are handled like every request of a person, with
//! the name of the channel that they came by.

use super::dispatch::Dispatcher;
use super::heavy::Holding;
use super::requests::{Call, Confirm, Method};
use super::subscriptions::Subscriptions;
use crate::core::model::{ConfirmAnswer, ConfirmParams, Fault, RpcError};
use crate::daemon::RemoteAnswer;
use crate::os::peer::{Peer, PeerOrigin};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The maximum of queued answers; each is one tap.
pub const MAX_WAITING: usize = 16;

/// Answers until the daemon ends.
pub async fn answer_all(mut answers: mpsc::Receiver<RemoteAnswer>, dispatcher: Arc<Dispatcher>) {
    while let Some(RemoteAnswer { params, via, reply }) = answers.recv().await {
        let dispatcher = dispatcher.clone();
        tokio::spawn(async move {
            let done = answer(&dispatcher, params, via).await;
            // If the daemon ends, the receiver is gone.
            let _ = reply.send(done);
        });
    }
}

async fn answer(
    dispatcher: &Dispatcher,
    params: ConfirmParams,
    via: &str,
) -> Result<ConfirmAnswer, RpcError> {
    let failed = |error: serde_json::Error| RpcError::new(Fault::Failed, error.to_string());
    let peer = Peer {
        pid: None,
        uid: rustix::process::getuid().as_raw(),
        origin: PeerOrigin::Outside,
        via: via.to_owned(),
    };
    let (gone, subscriptions) = (CancellationToken::new(), Subscriptions::default());
    let holding = Holding::alone();
    let call = Call::new(dispatcher, &peer, &gone, &subscriptions, &holding);
    let params = serde_json::to_value(params).map_err(failed)?;
    let answer = call.run(Confirm::NAME, params).await?;
    serde_json::from_value(answer).map_err(failed)
}
