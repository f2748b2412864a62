//! The demo: a daemon in a temporary directory with three slots, and a report of what they do.
//!
//! `scenario` defines the slots and their scripts; `stage` makes and removes the directory; `story` sends, answers and
//! reports, through the control socket like any client; `told` turns events into lines; `view` shows them; `person`
//! reads the keyboard of the person at the terminal; [`stand_in`] is the program in the slots if no Claude Code is
//! used.

mod person;
mod scenario;
mod stage;
pub mod stand_in;
mod story;
mod text;
mod told;
mod view;

pub use stage::StageProgram;
pub use view::DemoMode;

use crate::control::client::CallError;
use person::DemoPerson;
use stage::DemoStage;
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};
use view::View;

/// The options of the demo.
#[derive(Debug)]
pub struct DemoOptions {
    /// This program.
    pub missiond: PathBuf,
    pub program: StageProgram,
    pub mode: DemoMode,
    /// Do not remove the directory at the end.
    pub keep: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    #[error("the stage can't be set: {0}")]
    Stage(#[from] std::io::Error),
    #[error("{0}")]
    Call(#[from] CallError),
    #[error("the output can't be written: {0}")]
    Output(std::io::Error),
    /// The reader of the output is gone, such as a pipe to `head`.
    #[error("the reader has gone")]
    ReaderGone,
}

/// Plays the demo to its end, or until a signal ends it. No process is left running in either case.
pub async fn run(options: DemoOptions) -> Result<(), DemoError> {
    let view = View::new(options.mode);
    let mut stage = DemoStage::set(&options)?;
    let person = DemoPerson::at(options.mode);
    let played = tokio::select! {
        played = story::play(&mut stage, &view, person) => played,
        () = told_to_end() => view.say("stopped"),
    };
    // The daemon is always ended and the directory removed, even after an error or if the reader is gone.
    let told = view.say("ending the daemon and its slots");
    let ended = stage.end_daemon().await;
    let told = told.and_then(|()| story::last_words(&stage, &view, options.keep));
    let left = match (options.keep, ended) {
        (true, ended) => ended,
        (false, ended) => remove(stage, &view, ended),
    };
    let closed = view.close();
    played.and(told).and(left).and(closed)
}

/// Removes the directory, and reports it afterwards.
fn remove(stage: DemoStage, view: &View, ended: Result<(), DemoError>) -> Result<(), DemoError> {
    let root = stage.root().display().to_string();
    stage.remove()?;
    ended?;
    view.say(&format!(
        "No process is left, and {root} is removed; to keep it: missiond demo --keep"
    ))
}

async fn told_to_end() {
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let signals = kinds.into_iter().filter_map(|kind| signal(kind).ok());
    let heard = signals.map(|mut signal| Box::pin(async move { signal.recv().await }));
    futures_util::future::select_all(heard).await;
}
