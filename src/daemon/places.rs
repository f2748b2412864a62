//! The directories and files that a daemon needs, made again if they are removed while it runs: the session manager
//! removes the runtime directory at the last logout. The kernel reports a loss; nothing is checked until then.

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

/// The pause after a loss. A program that removes a directory first removes the files in it, one at a time.
const SETTLED: Duration = Duration::from_millis(50);

/// The retry interval for something that could not be made: the kernel does not report a file system that is mounted
/// later.
const RETRY: Duration = Duration::from_secs(1);

/// The interval of checks without reports from the kernel, which may have no watches left.
const LOOK: Duration = Duration::from_secs(2);

const LOG_DIRECTORY: &str = "the log directory";

/// A directory that the daemon needs.
#[derive(Debug)]
struct Needed {
    /// Its name for people; `None` if it is a part of another directory.
    name: Option<&'static str>,
    path: PathBuf,
    /// Whether the loss of a file in it matters.
    is_within: bool,
}

/// The result of a check.
#[derive(Debug, Default)]
pub(super) struct Restored {
    /// What was lost and made again, as text.
    pub made: Vec<String>,
    /// What is lost and can't be made again, with the reason and the remedy.
    pub missing: Vec<Words>,
    /// The new listener, if the socket was lost.
    pub listener: Option<UnixListener>,
}

impl Restored {
    pub fn is_made(&mut self, what: fmt::Arguments) {
        self.made
            .push(format!("{what} was removed, and is made again"));
    }

    /// Notes a directory that exists but fails the checks of a start.
    fn is_exposed(&mut self, what: fmt::Arguments, error: &dyn fmt::Display) {
        self.missing.push(Words::new(
            format!("{what} can't be used any more: {error}; the slots run on meanwhile"),
            "make it a directory that belongs to you and that nobody else can write (mode 0700)",
        ));
    }

    /// Notes a loss that can't be repaired. The next step depends only on the error, which names it.
    pub fn is_missing(&mut self, what: fmt::Arguments, error: &dyn fmt::Display) {
        self.missing.push(Words::new(
            format!(
                "{what} was removed, and can't be made again: {error}; the slots run on meanwhile"
            ),
            "as soon as that is corrected, missiond makes it again by itself",
        ));
    }
}

/// Tells when to check.
#[derive(Debug, Default)]
struct Lookout {
    watch: Option<DirectoryWatch>,
    /// The time of the next check without a report. A report that was read is kept here too.
    due: Option<Instant>,
}

impl Lookout {
    /// Watches these directories from now on; with `true` also the entries of a directory. A directory that does not
    /// exist can't be watched, nor can any if the user's watches are used up: then there is a check at an interval.
    fn watch<'a>(&mut self, directories: impl IntoIterator<Item = (&'a Path, bool)>) {
        let watch = DirectoryWatch::for_losses(directories);
        self.due = watch.is_err().then(|| Instant::now() + LOOK);
        self.watch = watch.ok();
    }

    fn look_by(&mut self, time: Instant) {
        self.due = Some(self.due.map_or(time, |due| due.min(time)));
    }

    /// Returns when something may be lost. Cancel-safe: a noticed loss is kept until the next [`Lookout::watch`].
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
    /// Whether the first check has made the directories that a new daemon does not have yet.
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
        // The socket is older than the watch: a loss in between is not reported.
        places.lookout.look_by(Instant::now());
        places
    }

    /// Makes again what is lost.
    pub async fn restore(&mut self) -> Restored {
        let mut restored = self.look().await;
        self.watch();
        // A loss before the watch began is not reported, so it is checked again.
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
        // The outer directory comes first, because it has the name.
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
                    // Reported once for each directory that still exists itself.
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

    /// Makes the directory if it is missing, and applies the checks of a start.
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
        // The loss of a directory with an open file is reported only by its parent.
        let named = self.needed.iter().filter(|needed| needed.name.is_some());
        let parents = named.filter_map(|needed| needed.path.parent());
        let socket = self.runtime_dir.socket().parent();
        let all = own.chain(parents.chain(socket).map(|parent: &Path| (parent, true)));
        self.lookout.watch(all);
    }
}

/// Tells whether this is a directory and not a link, which could lead to a directory that others may write.
fn is_own_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

/// Restores what the daemon needs in the file system while it runs.
pub(super) struct PlaceKeeper {
    places: NeededPlaces,
    /// The receiver of a new listener, if the socket is lost.
    listeners: Option<mpsc::Sender<UnixListener>>,
    /// What could not be made again at the last check.
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
    /// Restores what the daemon needs, after something was or may have been removed.
    pub(super) async fn restore(&mut self, ground: &mut PlaceKeeper) {
        let mut restored = ground.places.restore().await;
        if let Some(Err(error)) = ground.log.as_ref().map(OwnLog::restore) {
            restored.is_missing(format_args!("the daemon's log"), &error);
        }
        if let (Some(listener), Some(listeners)) = (restored.listener, &ground.listeners) {
            // A server that takes no more listeners is ending.
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
        // Other events come again and again, before the pause is over.
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
