//! Which processes belong to a test: those whose environment names its directory.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;

/// Ends, at once, every process that a test's daemon left behind, shims and programs included.
pub fn kill_all_of(directory: &Path) {
    for pid in all_of(directory) {
        kill(pid);
    }
}

pub fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may be gone already.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Living processes with `directory` somewhere in their environment.
pub fn all_of(directory: &Path) -> Vec<i32> {
    let wanted = directory.as_os_str().as_encoded_bytes();
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment.windows(wanted.len()).any(|part| part == wanted)
        })
        .collect()
}
