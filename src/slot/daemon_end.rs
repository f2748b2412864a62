//! The end of the daemon, as its slots and requests see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the daemon is ending, and whether it leaves its slots to the next daemon: then no request fails because of the
/// end. What waits stays written down as it is, and the next daemon goes on with it, as after a kill.
#[derive(Debug, Clone, Default)]
pub struct DaemonEnd(Arc<EndBegun>);

#[derive(Debug, Default)]
struct EndBegun {
    ends: AtomicBool,
    leaves: AtomicBool,
}

impl DaemonEnd {
    /// The daemon begins to end; `leaves` if its slots run on.
    pub fn begin(&self, leaves: bool) {
        self.0.leaves.store(leaves, Ordering::Release);
        self.0.ends.store(true, Ordering::Release);
    }

    /// The daemon is ending.
    pub fn has_begun(&self) -> bool {
        self.0.ends.load(Ordering::Acquire)
    }

    /// The daemon is ending, and its slots run on.
    pub fn leaves(&self) -> bool {
        self.0.leaves.load(Ordering::Acquire)
    }
}
