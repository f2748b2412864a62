//! Named moments at which the daemon can be paused, to test races: a test can then put any event between two steps. Off
//! unless the daemon's environment has `MISSIOND_PAUSE=<moment>:<path of a named pipe>`.
//!
//! At the moment the daemon's task opens the pipe for reading, which waits for a writer, and continues when the writer
//! closes it. If there is no pipe at the path (any more), it does not wait.
//!
//! In the same way a debug build panics at a given moment, as long as there is a file at the path.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const VARIABLE: &str = "MISSIOND_PAUSE";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A key was decided from the screen; nothing is recorded yet.
    Decided,
    /// The key is in the audit, and not pressed yet.
    Audited,
    /// The shim has the key, and no client has the result yet.
    Pressed,
    /// A program has ended, and the next one is not started yet.
    BeforeStart,
    /// The daemon's socket exists, and the daemon does not answer yet.
    Bound,
    /// A client has made a request.
    Asked,
    /// The reading thread has read from the keyboard of an attached terminal.
    KeyRead,
    /// The only task of `attach` has received the key.
    KeyTaken,
    /// The writing thread is about to write to an attached terminal.
    BeforeShown,
}

impl Moment {
    fn name(self) -> &'static str {
        match self {
            Moment::Decided => "decided",
            Moment::Audited => "audited",
            Moment::Pressed => "pressed",
            Moment::BeforeStart => "before-start",
            Moment::Bound => "bound",
            Moment::Asked => "asked",
            Moment::KeyRead => "key-read",
            Moment::KeyTaken => "key-taken",
            Moment::BeforeShown => "before-shown",
        }
    }
}

/// The path that the environment names for this moment.
fn wanted(moment: Moment) -> Option<&'static Path> {
    static WANTED: OnceLock<Option<(String, PathBuf)>> = OnceLock::new();
    let wanted = WANTED.get_or_init(|| parse(&std::env::var(VARIABLE).ok()?));
    let (name, path) = wanted.as_ref()?;
    (name == moment.name()).then_some(path)
}

/// Panics here if the environment says so.
pub fn fault(moment: Moment) {
    if cfg!(debug_assertions) && wanted(moment).is_some_and(Path::exists) {
        panic!("told to at {}", moment.name());
    }
}

/// Pauses here if the environment says so.
pub async fn at(moment: Moment) {
    if let Some(pipe) = wanted(moment) {
        tracing::warn!("held at {}", moment.name());
        // Opening blocks as well, so both run on a blocking thread.
        let held = tokio::task::spawn_blocking(move || {
            File::open(pipe).and_then(|mut file| file.read_to_end(&mut Vec::new()))
        });
        let _ = held.await;
    }
}

fn parse(text: &str) -> Option<(String, PathBuf)> {
    let (name, pipe) = text.split_once(':')?;
    Some((name.to_owned(), pipe.into()))
}
