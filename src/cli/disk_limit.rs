//! A limit on how long a command waits for a file system that does not answer. Nothing in the command itself can end such a
//! wait, so a thread watches the first thread.

use crate::cli::failure::Failure;
use crate::os::disk_wait::DiskWait;
use crate::os::remedy;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long one wait may take. A slow disk answers sooner.
const LIMIT: Duration = Duration::from_secs(5);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(250);

/// Ends this process with an error if it waits too long for a file system.
pub fn start(json: bool) {
    let watch = move || {
        let hung = first_overdue();
        let failure = failed(hung.path().as_deref());
        failure.report(json);
        std::process::exit(failure.blame.exit_code().into());
    };
    // Without the thread, the command waits as long as the disk does.
    let thread = std::thread::Builder::new().name("missiond-watch".to_owned());
    let _ = thread.spawn(watch);
}

/// Returns when the first thread has been in one wait for too long.
fn first_overdue() -> DiskWait {
    let mut seen: Option<(DiskWait, Instant)> = None;
    loop {
        std::thread::sleep(LOOK);
        seen = match (DiskWait::own(), seen) {
            (None, _) => None,
            (Some(wait), Some((before, since))) if wait == before => {
                if since.elapsed() >= LIMIT {
                    return wait;
                }
                Some((before, since))
            }
            (Some(wait), _) => Some((wait, Instant::now())),
        };
    }
}

fn failed(path: Option<&Path>) -> Failure {
    let limit = LIMIT.as_secs();
    match path {
        Some(path) => {
            let place = path.parent().unwrap_or(path);
            let text = format!(
                "the file system of {} has not answered for {limit} s",
                path.display()
            );
            Failure::timed_out(text).next(remedy::hung(place))
        }
        None => Failure::timed_out(format!("a file system has not answered for {limit} s")),
    }
}

/// What the process waits for, for an error: the files of a file system that does not answer.
pub fn waits_for(pid: u32) -> Option<String> {
    let waits = DiskWait::all(pid);
    let mut paths = waits.iter().filter_map(DiskWait::path);
    let path = paths.next()?;
    Some(format!(
        "it waits for the file system of {}",
        path.display()
    ))
}
