//! Reports when slots.toml or a policy has new content. The only module that names notify.

use super::Config;
use super::load::MAX_MIB;
use crate::os::{blocking, files};
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// The debounce time: an editor writes a file in several steps, and this long without another one means that it is
/// done.
const SETTLED: Duration = Duration::from_millis(200);

/// The maximum delay of a check, for a directory that changes all the time, such as one with logs beside the config.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// A watched file has new content. It does not say which: load again and compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfigChanged;

/// Watches the files until it is dropped.
#[derive(Debug)]
pub struct ConfigWatch {
    changes: mpsc::Receiver<ConfigChanged>,
    _watcher: RecommendedWatcher,
}

#[derive(Debug, thiserror::Error)]
#[error("{} can't be watched: {source}; changes take effect with `missiond reload`", .dir.display())]
pub struct WatchError {
    pub dir: PathBuf,
    pub source: notify::Error,
}

impl ConfigWatch {
    /// Returns at the next change. No change is lost in between, since one queued report stands for all.
    pub async fn changed(&mut self) -> Option<ConfigChanged> {
        self.changes.recv().await
    }
}

/// Starts to watch the files of this configuration, as they are now. Needs a tokio runtime. Call it again after a
/// reload: the policies may be elsewhere.
pub fn watch(config: &Config) -> Result<ConfigWatch, WatchError> {
    let file = config.file.clone();
    let policies = config.daemon.policies.clone();
    // One queued event stands for all that follow: the content is compared, not the events.
    let (stirred, stirrings) = mpsc::channel(1);
    let (tell, changes) = mpsc::channel(1);
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
        // Reads are reported too, and our own check would cause the next one.
        if !event.is_ok_and(|event| event.kind.is_access()) {
            // If the queue is full, a check is due already.
            let _ = stirred.try_send(());
        }
    })
    .map_err(|source| WatchError {
        dir: file.clone(),
        source,
    })?;
    for dir in directories(&file, &policies) {
        watcher
            .watch(&dir, RecursiveMode::NonRecursive)
            .map_err(|source| WatchError { dir, source })?;
    }
    let files = Files { file, policies };
    let before = files.contents();
    tokio::spawn(compare(files, before, stirrings, tell));
    Ok(ConfigWatch {
        changes,
        _watcher: watcher,
    })
}

/// The directories to watch, and not the files: if an editor renames a new file over an old one, a watch stays on the
/// old one. A file that is a symbolic link may change at both ends.
fn directories(file: &Path, policies: &Path) -> BTreeSet<PathBuf> {
    let real = file.canonicalize().ok();
    let parents = [Some(file), real.as_deref()].into_iter().flatten();
    let parents = parents.filter_map(Path::parent);
    let all = parents.chain([policies]).filter(|dir| dir.is_dir());
    all.map(Path::to_owned).collect()
}

type Contents = BTreeMap<PathBuf, Option<SeenFile>>;

/// What decides whether a file must be loaded again: its content, and who can change it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SeenFile {
    hash: [u8; 32],
    mode: u32,
    owner: (u32, u32),
}

#[derive(Clone)]
struct Files {
    file: PathBuf,
    policies: PathBuf,
}

impl Files {
    /// The state of each file; `None` for one that can't be read.
    fn contents(&self) -> Contents {
        let entries = std::fs::read_dir(&self.policies).into_iter().flatten();
        let policies = entries.flatten().map(|entry| entry.path());
        let policies = policies.filter(|path| path.extension().is_some_and(|e| e == "toml"));
        policies
            .chain([self.file.clone()])
            .map(|path| {
                let seen = look_at(&path).ok();
                (path, seen)
            })
            .collect()
    }
}

fn look_at(file: &Path) -> io::Result<SeenFile> {
    let opened = files::open(file)?;
    let found = opened.metadata()?;
    Ok(SeenFile {
        hash: Sha256::digest(files::bounded(opened, MAX_MIB)?).into(),
        mode: found.mode(),
        owner: (found.uid(), found.gid()),
    })
}

/// Compares the contents after each event, until the watch is dropped.
async fn compare(
    files: Files,
    mut before: Contents,
    mut stirrings: mpsc::Receiver<()>,
    tell: mpsc::Sender<ConfigChanged>,
) {
    while stirrings.recv().await.is_some() {
        settle(&mut stirrings).await;
        let files = files.clone();
        let now = match blocking::run(move || files.contents()).await {
            Ok(now) => now,
            Err(error) => {
                tracing::warn!("a change of the configuration could not be checked: {error}");
                continue;
            }
        };
        if now != before {
            before = now;
            // If the queue is full, a report waits that includes this change.
            if let Err(mpsc::error::TrySendError::Closed(_)) = tell.try_send(ConfigChanged) {
                return;
            }
        }
    }
}

async fn settle(stirrings: &mut mpsc::Receiver<()>) {
    let quiet = async { while let Ok(Some(())) = timeout(SETTLED, stirrings.recv()).await {} };
    // The check that follows is the same with or without the timeout.
    let _ = timeout(LONGEST_WAIT, quiet).await;
}
