//! Named moments at which the daemon can be held, so that races can be tested: whatever may come between two
//! steps can then be made to come there. Off unless the daemon's environment has
//! `MISSIOND_PAUSE=<moment>:<path of a named pipe>`.
//!
//! At the moment the daemon's task opens the pipe for reading, which waits for somebody who opens it for writing,
//! and goes on when that one closes it. Where there is no pipe at the path (any more), nothing is waited for.
//!
//! In the same way a debug build panics, at a moment that is made for that, for as long as there is a file at the path.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const VARIABLE: &str = "MISSIOND_PAUSE";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// A key was decided on by what the screen showed; nothing is written down.
    Decided,
    /// The key is in the audit, and not yet pressed.
    Audited,
    /// The key is with the shim, and nobody has been told what came of it.
    Pressed,
    /// A program has ended, and the next one is not yet started.
    BeforeStart,
    /// The daemon's socket is there, and nobody answers at it yet.
    Bound,
    /// A client has asked for something.
    Asked,
    /// Something was read from the keyboard of an attached terminal, by the thread that reads it.
    KeyRead,
    /// It was brought to the one task of `attach`.
    KeyTaken,
    /// Something is about to be shown on an attached terminal, by the thread that writes to it.
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

/// Panics here if it was told to.
pub fn fault(moment: Moment) {
    if cfg!(debug_assertions) && wanted(moment).is_some_and(Path::exists) {
        panic!("told to at {}", moment.name());
    }
}

/// Waits here if the daemon was told to.
pub async fn at(moment: Moment) {
    if let Some(pipe) = wanted(moment) {
        tracing::warn!("held at {}", moment.name());
        // Opening waits as well, so both are for a thread that may wait.
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
