//! File descriptors that are reserved for control: if all others are in use, people can still see the status and stop
//! what uses them.

use super::requests::{Close, Down, Interrupt, Method, Ping, Sessions, Stats, Status, Stop};
use crate::core::model::{Fault, RpcError};
use std::fs::File;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Enough for a few clients at once, for the lookup of their origin, and for a file that is written at a stop.
const KEPT: usize = 8;

/// The requests that people may make while only the reserve is left. None of them waits for long or opens much.
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

/// Descriptors that are kept open only so that they can be closed when others are lacking.
#[derive(Debug, Default)]
pub(super) struct Reserve(Mutex<Vec<File>>);

impl Reserve {
    /// Refills the reserve. If it can't be filled, frees it and returns true.
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

    /// Frees the reserve; returns whether there was any.
    pub fn lend(&self) -> bool {
        !std::mem::take(&mut *self.kept()).is_empty()
    }

    fn kept(&self) -> MutexGuard<'_, Vec<File>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells whether this error is a lack of descriptors, of this process or of the machine.
pub(super) fn is_lack(error: &io::Error) -> bool {
    let lacks = [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE];
    lacks
        .iter()
        .any(|lack| error.raw_os_error() == Some(lack.raw_os_error()))
}

/// Checks whether a client with one of the last descriptors may make this request.
pub(super) fn check(method: &str) -> Result<(), RpcError> {
    if SERVED.contains(&method) {
        return Ok(());
    }
    Err(full(&format!(
        "Too many open files; `status`, `stop`, `close` and `down` still work, `{method}` does not"
    )))
}

/// The error for a client for which there is no descriptor.
pub(super) fn full(why: &str) -> RpcError {
    let text = format!("turned away: the daemon is full ({why})");
    RpcError::new(Fault::Full, text)
        .next("raise the limit (ulimit -n, LimitNOFILE= in a unit), or close something: missiond session list")
}
