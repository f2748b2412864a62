//! File descriptors that are kept for control: if all others are in use, people can still see how things stand and stop
//! what uses them.

use super::requests::{Close, Down, Interrupt, Method, Ping, Sessions, Stats, Status, Stop};
use crate::core::model::{Fault, RpcError};
use std::fs::File;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Enough for a few clients at once, for the look at who they are, and for a file that is written at a stop.
const KEPT: usize = 8;

/// What people may ask for while there are no descriptors but these. None of it waits for long or opens much.
const SERVED: &[&str] = &[
    Ping::NAME,
    Status::NAME,
    Stats::NAME,
    Sessions::NAME,
    Interrupt::NAME,
    Stop::NAME,
    Close::NAME,
    Down::NAME,
];

/// Descriptors that are open for no other purpose than to be closed in need.
#[derive(Debug, Default)]
pub(super) struct Reserve(Mutex<Vec<File>>);

impl Reserve {
    /// Whether the reserve had to be given free, since not all of it is to be had.
    pub fn is_in_use(&self) -> bool {
        let mut kept = self.kept();
        while kept.len() < KEPT {
            match File::open("/dev/null") {
                Ok(file) => kept.push(file),
                Err(_) => {
                    kept.clear();
                    return true;
                }
            }
        }
        false
    }

    /// Gives the reserve free; whether there was any.
    pub fn lend(&self) -> bool {
        !std::mem::take(&mut *self.kept()).is_empty()
    }

    fn kept(&self) -> MutexGuard<'_, Vec<File>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether this is a lack of descriptors, of this process or of the machine.
pub(super) fn is_lack(error: &io::Error) -> bool {
    let lacks = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
    lacks
        .iter()
        .any(|lack| error.raw_os_error() == Some(lack.raw_os_error()))
}

/// Whether a client that has one of the last descriptors may ask for this.
pub(super) fn check(method: &str) -> Result<(), RpcError> {
    if SERVED.contains(&method) {
        return Ok(());
    }
    Err(full(&format!(
        "Too many open files; `status`, `stop`, `close` and `down` still work, `{method}` does not"
    )))
}

/// What a client is told for which there is no descriptor.
pub(super) fn full(why: &str) -> RpcError {
    let text = format!("turned away: the daemon is full ({why})");
    RpcError::new(Fault::Full, text)
        .next("raise the limit (ulimit -n, LimitNOFILE= in a unit), or close something: missiond sessions")
}
