//! The lines of a file that a person reads: the last ones, and with `-f` those that are still to come.

use crate::cli::failure::Failure;
use crate::cli::reader;
use crate::cli::tail::Tail;
use notify::{RecursiveMode, Watcher};
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;
use tokio::sync::mpsc;

/// How many lines following begins with, as tail does.
pub const LINES_BEFORE_FOLLOWING: usize = 10;
/// Some file systems tell nothing about their changes: look by ourselves as well.
const LOOK_ANYWAY: Duration = Duration::from_secs(1);

/// Which lines.
#[derive(Debug, Clone, Copy)]
pub struct Which {
    /// Only the last so many of those that are there; all where `None`.
    pub last: Option<usize>,
    /// Go on with what is added, for ever.
    pub follow: bool,
}

/// Prints those lines of a file that `keeps` keeps.
pub async fn lines(
    file: &Path,
    which: Which,
    mut keeps: impl FnMut(&str) -> bool,
    mut print: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    // Watched before it is read, so that nothing comes in between.
    let changes = which.follow.then(|| Changes::watch(file));
    let mut tail = Tail::open(file).map_err(|error| unreadable(file, &error))?;
    let mut held: VecDeque<String> = VecDeque::new();
    each_line(&mut tail, |line| {
        match (keeps(&line), which.last) {
            (false, _) => {}
            (true, None) => print(&line)?,
            (true, Some(last)) => {
                held.push_back(line);
                if held.len() > last {
                    held.pop_front();
                }
            }
        }
        Ok(())
    })?;
    held.iter().try_for_each(|line| print(line))?;
    let Some(mut changes) = changes else {
        return Ok(());
    };
    reader::while_read(async {
        loop {
            changes.next().await;
            each_line(&mut tail, |line| match keeps(&line) {
                true => print(&line),
                false => Ok(()),
            })?;
        }
    })
    .await
}

/// Everything that is written by now.
fn each_line(
    tail: &mut Tail,
    mut use_it: impl FnMut(String) -> Result<(), Failure>,
) -> Result<(), Failure> {
    loop {
        let lines = tail
            .lines()
            .map_err(|error| unreadable(tail.path(), &error))?;
        if lines.is_empty() {
            return Ok(());
        }
        lines.into_iter().try_for_each(&mut use_it)?;
    }
}

pub fn unreadable(file: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot read {}: {error}", file.display()))
}

/// Tells when something happened beside a file: it may be renamed and made anew.
pub struct Changes {
    happened: mpsc::Receiver<()>,
    /// Kept for as long as the directory is watched; `None` where that cannot be.
    _watcher: Option<notify::RecommendedWatcher>,
}

impl Changes {
    pub fn watch(file: &Path) -> Changes {
        // One is enough: it says "look", and a look sees everything.
        let (tell, happened) = mpsc::channel(1);
        let directory = file.parent().unwrap_or(file);
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Our own reading is an event too, and must not wake us.
            if !event.is_ok_and(|event| event.kind.is_access()) {
                let _ = tell.try_send(());
            }
        })
        .and_then(|mut watcher| {
            watcher.watch(directory, RecursiveMode::NonRecursive)?;
            Ok(watcher)
        });
        Changes {
            happened,
            _watcher: watcher.ok(),
        }
    }

    pub async fn next(&mut self) {
        match tokio::time::timeout(LOOK_ANYWAY, self.happened.recv()).await {
            Ok(Some(())) | Err(_) => {}
            // There is no watcher: only the clock tells.
            Ok(None) => tokio::time::sleep(LOOK_ANYWAY).await,
        }
    }
}
