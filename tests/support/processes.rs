//! Which processes belong to a test: those that have its directory in their environment or their
//! arguments, or a file in it open.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;

/// Rounds of looking and killing: a process that is being forked while the first goes by is seen by the next.
const ROUNDS: usize = 5;

/// Ends, at once, every process that a test's daemon left behind, shims and programs included.
pub fn kill_all_of(directory: &Path) {
    for _ in 0..ROUNDS {
        let left = all_of(directory);
        if left.is_empty() {
            return;
        }
        left.into_iter().for_each(kill);
    }
}

pub fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may be gone already.
        let _ = kill_process(pid, Signal::KILL);
    }
}

pub fn stop(pid: i32) {
    signal(pid, Signal::STOP);
}

pub fn go_on(pid: i32) {
    signal(pid, Signal::CONT);
}

fn signal(pid: i32, signal: Signal) {
    let pid = Pid::from_raw(pid).expect("a pid");
    kill_process(pid, signal).expect("it runs");
}

/// The processes of a test that run now.
pub fn all_of(directory: &Path) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let own = std::process::id();
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| pid.unsigned_abs() != own)
        .filter(|pid| names_it(*pid, directory) || has_it_open(*pid, directory))
        .collect()
}

fn names_it(pid: i32, directory: &Path) -> bool {
    let wanted = directory.as_os_str().as_encoded_bytes();
    // A shim has the state directory in its arguments, also when its recording lies on a disk that was unmounted.
    ["environ", "cmdline"].iter().any(|file| {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text.windows(wanted.len()).any(|part| part == wanted)
    })
}

/// Shims have an empty environment, and the recording open.
fn has_it_open(pid: i32, directory: &Path) -> bool {
    let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    files
        .flatten()
        .filter_map(|file| fs::read_link(file.path()).ok())
        .any(|target| target.starts_with(directory))
}

pub fn parent_of(pid: i32) -> Option<i32> {
    field_after_name(pid, 1)?.parse().ok()
}

/// When a process was started, in ticks since the machine was.
pub fn start_of(pid: i32) -> Option<u64> {
    field_after_name(pid, 19)?.parse().ok()
}

/// A field of the kernel's line about a process, counted from the state, which follows the name.
fn field_after_name(pid: i32, at: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before it may hold anything, brackets too.
    let after_name = stat.get(stat.rfind(')')? + 2..)?;
    after_name.split(' ').nth(at).map(str::to_owned)
}

pub fn children_of(parent: i32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| parent_of(*pid) == Some(parent))
        .collect()
}
