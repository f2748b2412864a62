//! What a daemon needs in the file system, made again if somebody removes it while the daemon runs: the session manager
//! does so with the runtime directory at the last logout. The kernel tells of a loss; nothing is looked at until then.

use super::Daemon;
use super::health::Words;
use super::kept_policies;
use super::own_log::OwnLog;
use super::runtime_dir::RuntimeDir;
use crate::config::LOG_FILE;
use crate::core::model::{Condition, EventKind};
use crate::os::directory_watch::DirectoryWatch;
use crate::os::paths;
use crate::slot::{SlotCommand, SlotContext};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Who removes a directory removes what is in it first, a file at a time.
const SETTLED: Duration = Duration::from_millis(50);

/// How often it is tried to make something that could not be made: a file system that is mounted later is not told of.
const RETRY: Duration = Duration::from_secs(1);

/// How often to look where the kernel tells nothing: it may have no watches left.
const LOOK: Duration = Duration::from_secs(2);

const LOG_DIRECTORY: &str = "the log directory";

/// A directory that the daemon needs.
#[derive(Debug)]
struct Needed {
    /// What a person calls it; `None` if it is a part of another one.
    name: Option<&'static str>,
    path: PathBuf,
    /// Whether the loss of a file in it matters.
    is_within: bool,
}

/// What came of a look.
#[derive(Debug, Default)]
pub(super) struct Restored {
    /// What was lost and is there again, in words.
    pub made: Vec<String>,
    /// What is lost and can't be made again, with the reason, and what helps.
    pub missing: Vec<Words>,
    /// The new listener, if the socket was lost.
    pub listener: Option<UnixListener>,
}

impl Restored {
    pub fn is_made(&mut self, what: fmt::Arguments) {
        self.made
            .push(format!("{what} was removed, and is made again"));
    }

    /// A directory is there, and is not one that a start would take.
    fn is_exposed(&mut self, what: fmt::Arguments, error: &dyn fmt::Display) {
        self.missing.push(Words::new(
            format!("{what} can't be used any more: {error}; the slots run on meanwhile"),
            "see to it that it is a directory of your own that nobody else can write (mode 0700)",
        ));
    }

    /// The next step depends on the error alone, which names it.
    pub fn is_missing(&mut self, what: fmt::Arguments, error: &dyn fmt::Display) {
        self.missing.push(Words::new(
            format!(
                "{what} was removed, and can't be made again: {error}; the slots run on meanwhile"
            ),
            "as soon as that is corrected, missiond makes it again by itself",
        ));
    }
}

/// Says when to look.
#[derive(Debug, Default)]
struct Lookout {
    watch: Option<DirectoryWatch>,
    /// When to look without being told. A notice that was read stands here too.
    due: Option<Instant>,
}

impl Lookout {
    /// Watches these directories from now on: with `true` also what is in a directory. One that is not there can't be
    /// watched, nor any if the user's watches are used up: then it is looked at from time to time.
    fn watch<'a>(&mut self, directories: impl IntoIterator<Item = (&'a Path, bool)>) {
        let watch = DirectoryWatch::for_losses(directories);
        self.due = watch.is_err().then(|| Instant::now() + LOOK);
        self.watch = watch.ok();
    }

    fn look_by(&mut self, time: Instant) {
        self.due = Some(self.due.map_or(time, |due| due.min(time)));
    }

    /// Returns when something may be lost. Cancel-safe: what was noticed is kept until the next [`Lookout::watch`].
    async fn stirred(&mut self) {
        loop {
            let told = async {
                match &self.watch {
                    Some(watch) => watch.changed().await,
                    None => std::future::pending().await,
                }
            };
            let due = async {
                match self.due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => return,
                () = told => self.look_by(Instant::now() + SETTLED),
            }
        }
    }
}

#[derive(Debug)]
struct NeededPlaces {
    runtime_dir: RuntimeDir,
    needed: Vec<Needed>,
    lookout: Lookout,
    /// Whether all that a new daemon does not have yet was made.
    has_looked: bool,
}

impl NeededPlaces {
    fn new(runtime_dir: RuntimeDir, context: &SlotContext) -> NeededPlaces {
        let needed = |name, path: PathBuf, is_within| Needed {
            name,
            path,
            is_within,
        };
        let runtime = runtime_dir.runtime().to_owned();
        let needed = vec![
            needed(None, runtime.join("shims"), true),
            needed(Some("the runtime directory"), runtime, true),
            needed(Some(LOG_DIRECTORY), context.logs.clone(), true),
            needed(None, context.sessions_dir(), false),
            needed(None, context.state.join("sends"), false),
            needed(None, context.state.join("confirms"), false),
            needed(None, context.state.join("tasks"), false),
            needed(Some("the state directory"), context.state.clone(), false),
        ];
        let mut places = NeededPlaces {
            runtime_dir,
            needed,
            lookout: Lookout::default(),
            has_looked: false,
        };
        places.watch();
        // The socket is older than the watch: what was lost in between is not told.
        places.lookout.look_by(Instant::now());
        places
    }

    /// Makes again what is lost.
    pub async fn restore(&mut self) -> Restored {
        let mut restored = self.look().await;
        self.watch();
        // What was lost before the watch began is not told.
        let again = self.look().await;
        restored.made.extend(again.made);
        restored.missing = again.missing;
        restored.listener = again.listener.or(restored.listener);
        if !restored.missing.is_empty() {
            self.lookout.look_by(Instant::now() + RETRY);
        }
        restored
    }

    async fn look(&mut self) -> Restored {
        let mut restored = Restored::default();
        let mut whole: Option<(&'static str, &Path)> = None;
        // The outer directory first: it is the one that has a name.
        for needed in self.needed.iter().rev() {
            let (path, shown) = (&needed.path, needed.path.display());
            let is_there = is_own_directory(path);
            match (needed.name, self.made(needed)) {
                (Some(name), Ok(())) if is_there => whole = Some((name, path)),
                (Some(name), Ok(())) => restored.is_made(format_args!("{name} {shown}")),
                (Some(name), Err(error)) if is_there => {
                    restored.is_exposed(format_args!("{name} {shown}"), &error);
                }
                (Some(name), Err(error)) => {
                    restored.is_missing(format_args!("{name} {shown}"), &error);
                }
                (None, Ok(())) if !is_there && self.has_looked => {
                    // Told once of each directory that is still there itself.
                    let whole = whole.take_if(|(_, whole)| path.starts_with(whole));
                    restored.made.extend(whole.map(|(name, whole)| {
                        let whole = whole.display();
                        format!("what was in {name} {whole} was removed, and is made again")
                    }));
                }
                (None, _) => {}
            }
        }
        self.has_looked = true;
        self.runtime_dir.restore(&mut restored).await;
        restored
    }

    /// The directory, made again where it is missing, if a start would take it.
    fn made(&self, needed: &Needed) -> Result<(), String> {
        match needed.name {
            Some(LOG_DIRECTORY) => {
                let made = self.runtime_dir.log_directory(&needed.path);
                made.map_err(|error| error.to_string())
            }
            _ => paths::ensure_private_dir(&needed.path).map_err(|error| error.to_string()),
        }
    }

    fn watch(&mut self) {
        let own = self
            .needed
            .iter()
            .map(|needed| (needed.path.as_path(), needed.is_within));
        // A directory of which a file is open is told of by its parent alone.
        let named = self.needed.iter().filter(|needed| needed.name.is_some());
        let parents = named.filter_map(|needed| needed.path.parent());
        let socket = self.runtime_dir.socket().parent();
        let all = own.chain(parents.chain(socket).map(|parent: &Path| (parent, true)));
        self.lookout.watch(all);
    }
}

/// A link in its place leads to where others may write.
fn is_own_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// What the daemon stands on while it runs.
pub(super) struct PlaceKeeper {
    places: NeededPlaces,
    /// Where a new listener goes, if the socket is lost.
    listeners: Option<mpsc::Sender<UnixListener>>,
    /// What could not be made again at the last look.
    missing: Vec<Words>,
    log: Option<OwnLog>,
}

impl PlaceKeeper {
    pub fn new(
        runtime_dir: RuntimeDir,
        context: &SlotContext,
        listeners: Option<mpsc::Sender<UnixListener>>,
    ) -> PlaceKeeper {
        PlaceKeeper {
            places: NeededPlaces::new(runtime_dir, context),
            listeners,
            missing: Vec::new(),
            log: OwnLog::at(&context.logs.join(LOG_FILE)),
        }
    }

    /// Returns when something may be lost.
    pub async fn stirred(&mut self) {
        self.places.lookout.stirred().await;
    }
}

impl Daemon {
    /// Something was removed that the daemon needs, or may have been.
    pub(super) async fn restore(&mut self, ground: &mut PlaceKeeper) {
        let mut restored = ground.places.restore().await;
        if let Some(Err(error)) = ground.log.as_ref().map(OwnLog::restore) {
            restored.is_missing(format_args!("the daemon's log"), &error);
        }
        if let (Some(listener), Some(listeners)) = (restored.listener, &ground.listeners) {
            // A server that takes no more is ending.
            let _ = listeners.send(listener).await;
        }
        let missing_before = std::mem::replace(&mut ground.missing, restored.missing.clone());
        let is_new = |words: &&Words| !missing_before.contains(words);
        let newly_missing = restored.missing.iter().filter(is_new);
        let newly_missing = newly_missing.map(Words::to_string);
        for text in restored.made.iter().cloned().chain(newly_missing) {
            tracing::warn!("{text}");
            self.context.bus.publish(None, EventKind::Warning { text });
        }
        self.missing.send_if_modified(|ailments| {
            let before = std::mem::take(ailments);
            let known = |words: &Words| before.iter().find(|one| one.text == words.text).cloned();
            let lost =
                |words| known(&words).unwrap_or_else(|| words.ailment(Condition::DirectoryLost));
            ailments.extend(restored.missing.into_iter().map(lost));
            *ailments != before
        });
        self.lost.send_if_modified(|lost| {
            let before = lost.len();
            for text in restored.made {
                if !lost.contains(&text) {
                    lost.push(text);
                }
            }
            lost.len() != before
        });
        if !kept_policies::file(&self.context.state).exists() {
            self.keep_policies();
        }
        for (name, kept) in &self.kept {
            let runs = kept.handle.status().shim_pid.is_some();
            if self.context.has_lost_files(name, runs) {
                // A slot whose task has ended has nothing to lose.
                let _ = kept.handle.send(SlotCommand::Restore).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_loss_is_not_forgotten_if_nobody_waits_to_the_end() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("socket");
        std::fs::write(&file, "").expect("a file");
        let mut lookout = Lookout::default();
        lookout.watch([(place.path(), true)]);
        std::fs::remove_file(&file).expect("it is ours");
        // Something else comes again and again, before the pause is over.
        for _ in 0..10 {
            let moment = Duration::from_millis(1);
            let _ = tokio::time::timeout(moment, lookout.stirred()).await;
        }
        let limit = Duration::from_secs(20);
        let stirred = tokio::time::timeout(limit, lookout.stirred()).await;
        assert!(stirred.is_ok(), "the loss is noticed");
        lookout.watch([(place.path(), true)]);
        assert!(lookout.due.is_none(), "it was looked at");
    }
}
