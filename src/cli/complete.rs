//! Completion of what only a running daemon knows.

use crate::cli::context::Context;
use crate::cli::flags::Flags;
use crate::control::requests::{SessionInfo, Sessions, SessionsParams, Status};
use crate::core::model::{Select, SlotStatus};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use std::ffi::OsStr;
use std::time::Duration;

/// A person is waiting with a finger on the Tab key.
const PATIENCE: Duration = Duration::from_millis(500);

/// Completes names of slots, `@role`s and ids of sessions.
pub fn slots() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let current = current.to_string_lossy();
        let (slots, sessions) = live();
        let mut names: Vec<CompletionCandidate> = slots
            .iter()
            .flat_map(candidates)
            .chain(sessions.iter().map(session))
            .filter(|candidate| {
                candidate
                    .get_value()
                    .to_string_lossy()
                    .starts_with(&*current)
            })
            .collect();
        names.sort();
        names.dedup();
        names
    })
}

fn candidates(status: &SlotStatus) -> [CompletionCandidate; 2] {
    let role = CompletionCandidate::new(format!("@{}", status.role));
    let slot = CompletionCandidate::new(&status.slot).help(Some(status.role.clone().into()));
    [slot, role.help(Some("every slot of the role".into()))]
}

fn session(info: &SessionInfo) -> CompletionCandidate {
    CompletionCandidate::new(&info.id).help(Some(info.command.join(" ").into()))
}

/// Without a daemon there is nothing to offer, and a completion must not speak of errors.
fn live() -> (Vec<SlotStatus>, Vec<SessionInfo>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return Default::default();
    };
    let asked = async { tokio::time::timeout(PATIENCE, ask()).await.ok().flatten() };
    runtime.block_on(asked).unwrap_or_default()
}

async fn ask() -> Option<(Vec<SlotStatus>, Vec<SessionInfo>)> {
    let mut client = Context::new(Flags::default()).connect().await.ok()?;
    let slots = client.call::<Status>(Select::default()).await.ok()?;
    let sessions = client.call::<Sessions>(SessionsParams::default()).await;
    Some((slots, sessions.unwrap_or_default()))
}
