//! The same for tasks: the files are written on threads, since their disk may not answer.

use super::{Begun, Came, Once, OnceRecord, OnceRequest};
use crate::core::model::{Fault, RpcError};
use crate::os::blocking;
use std::time::Duration;

/// How long the end of a request waits for the disk.
const LIMIT: Duration = Duration::from_secs(5);

impl<R: OnceRequest> Once<R> {
    /// The same as [`Once::begin`], on a thread.
    pub async fn begin_on_disk(&self, new: OnceRecord<R>) -> Result<Begun<R>, RpcError>
    where
        R: Send + Sync + 'static,
        R::Answer: Send + Sync,
    {
        let once = self.clone();
        let begun = blocking::run(move || once.begin(new)).await;
        begun.map_err(|error| RpcError::new(Fault::Failed, error.to_string()))?
    }

    /// The same as [`Once::settle`], on a thread. Whoever waits does not wait for a disk that does not answer.
    pub async fn settle_on_disk(&self, slot: &str, id: &str, came: Came<R>)
    where
        R: Send + Sync + 'static,
        R::Answer: Send + Sync,
    {
        let (once, end) = (self.clone(), came.clone());
        let (name, of) = (slot.to_owned(), id.to_owned());
        let write = move || once.write_end(&name, &of, &end);
        if let Err(error) = blocking::run_within(LIMIT, write).await {
            tracing::warn!(
                "what came of the {} {id} is not written down yet: {error}",
                R::NOUN
            );
        }
        self.tell_end(slot, id, came);
    }
}
