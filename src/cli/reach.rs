//! The way to the daemon for what makes many connections in its time.

use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::control::client::Dial;
use crate::core::model::{Fault, RpcError};
use std::sync::Arc;

/// The daemon is looked for each time: it may be started later, or again.
pub fn dial(context: &Context) -> Dial {
    let context = Arc::new(Context::new(context.flags.clone()));
    Arc::new(move || {
        let context = context.clone();
        Box::pin(async move { context.connect().await.map_err(told) })
    })
}

fn told(failure: Failure) -> RpcError {
    let fault = match failure.blame {
        Blame::Fault(fault) => fault,
        _ => Fault::Failed,
    };
    let error = RpcError::new(fault, failure.message);
    match failure.next {
        Some(next) => error.next(next),
        None => error,
    }
}
