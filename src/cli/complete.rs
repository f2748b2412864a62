//! Completion of what only a running daemon knows, and of states.

use crate::cli::context::Context;
use crate::cli::flags::Flags;
use crate::cli::sanitise;
use crate::control::client::Client;
use crate::control::requests::{
    Pending, SessionInfo, Sessions, SessionsParams, Status, Tasks, TasksParams,
};
use crate::core::claude::reading::{Dialog, DialogKind, State};
use crate::core::model::{Select, SlotStatus, TaskStatus};
use crate::core::text::quoting::quoted;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use std::ffi::OsStr;
use std::pin::Pin;
use std::sync::OnceLock;
use std::time::Duration;

/// A person is waiting with a finger on the Tab key.
const PATIENCE: Duration = Duration::from_millis(500);

/// Completes names of slots, `@role`s and ids of sessions.
pub fn slots() -> ArgValueCompleter {
    completer(|client| {
        Box::pin(async {
            let slots = client.call::<Status>(Select::default()).await.ok()?;
            let sessions = client.call::<Sessions>(SessionsParams::default()).await;
            let sessions = sessions.unwrap_or_default();
            let slots = slots.iter().flat_map(candidates);
            Some(slots.chain(sessions.iter().map(session)).collect())
        })
    })
}

/// Completes roles, as `--role` takes them.
pub fn roles() -> ArgValueCompleter {
    completer(|client| {
        Box::pin(async {
            let slots = client.call::<Status>(Select::default()).await.ok()?;
            Some(slots.iter().map(|slot| plain(&slot.role)).collect())
        })
    })
}

/// Completes ids of tasks.
pub fn tasks() -> ArgValueCompleter {
    completer(|client| {
        Box::pin(async {
            let tasks = client.call::<Tasks>(TasksParams { states: Vec::new() });
            Some(tasks.await.ok()?.iter().map(task).collect())
        })
    })
}

/// Completes answers: the words that every permission takes, and the labels of what waits in the slot that is named.
pub fn answers() -> ArgValueCompleter {
    completer(|client| {
        Box::pin(async {
            let pending = client.call::<Pending>(Select::default()).await.ok()?;
            let line: Vec<String> = std::env::args().collect();
            let waiting = pending.iter().filter(|one| line.contains(&one.slot));
            let dialogs = waiting.filter_map(|one| one.dialog.as_ref());
            Some(dialogs.flat_map(answers_of).collect())
        })
    })
}

/// Completes states, the last one of a list.
pub fn states() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let current = current.to_string_lossy();
        let (before, begun) = match current.rfind(',') {
            Some(comma) => current.split_at(comma + 1),
            None => ("", &*current),
        };
        let names = State::ALL.map(State::name).into_iter();
        let fitting = names.filter(|name| name.starts_with(begun));
        fitting
            .map(|name| CompletionCandidate::new(format!("{before}{name}")))
            .collect()
    })
}

type Asked<'a> = Pin<Box<dyn Future<Output = Option<Vec<CompletionCandidate>>> + 'a>>;

/// Those of the candidates that begin with what is typed, each once.
fn completer(ask: fn(&mut Client) -> Asked<'_>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let current = current.to_string_lossy();
        let mut names = live(ask);
        names.retain(|name| name.get_value().to_string_lossy().starts_with(&*current));
        names.sort();
        names.dedup();
        names
    })
}

fn answers_of(dialog: &Dialog) -> Vec<CompletionCandidate> {
    let words: &[&str] = match dialog.kind {
        DialogKind::Permission => &["yes", "no", "always"],
        _ => &[],
    };
    let labels = dialog.options.iter().map(|option| option.label.as_str());
    words.iter().copied().chain(labels).map(plain).collect()
}

fn task(task: &TaskStatus) -> CompletionCandidate {
    let about = format!("{}: {}", task.state.name(), task.text);
    CompletionCandidate::new(&task.id).help(Some(sanitise::one_line(&about).into()))
}

/// What a slot or a model has named, as a harmless word. bash writes it into the line as it is; other shells quote it.
fn plain(word: &str) -> CompletionCandidate {
    let word = sanitise::one_line(word);
    let is_bash = SHELL.get().is_some_and(|shell| shell.ends_with("bash"));
    CompletionCandidate::new(if is_bash { quoted(&word) } else { word })
}

/// The shell that asks for completions. clap removes the variable that names it.
static SHELL: OnceLock<String> = OnceLock::new();

/// Notes which shell asks, if one does.
pub fn note_shell() {
    if let Ok(shell) = std::env::var("COMPLETE") {
        let _ = SHELL.set(shell);
    }
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
fn live(ask: fn(&mut Client) -> Asked<'_>) -> Vec<CompletionCandidate> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return Default::default();
    };
    let asked = async {
        let mut client = Context::new(Flags::default()).connect().await.ok()?;
        ask(&mut client).await
    };
    let asked = async { tokio::time::timeout(PATIENCE, asked).await.ok().flatten() };
    runtime.block_on(asked).unwrap_or_default()
}
