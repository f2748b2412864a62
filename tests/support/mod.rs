//! What the tests on the real Claude Code share.

// Each test file uses its own part of this.
#![allow(dead_code)]

pub mod claude_code;
pub mod daemon;
pub mod disk;
pub mod frozen_disk;
pub mod hung_file;
pub mod npm;
pub mod processes;
pub mod program;
pub mod promised;
pub mod reaper;
pub mod run;
pub mod setup;
pub mod skipped;

use skipped::Run;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The version that the tests are written against.
pub const PINNED: &str = "2.1.325";

/// Longest wait for any one fact. Far more than is needed: a loaded machine must not fail a test.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What can't be tried on this machine is said, and noted for the list at the end of the run (tests/zz_skipped.rs); in
/// CI, which has all that is needed, it is a failure.
#[track_caller]
pub fn skip(what: &str) {
    let in_ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    Run::this().skip(what, in_ci);
}

/// Whether a test that needs root can run.
#[track_caller]
pub fn is_root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skip(&format!("{what} (needs root)"));
    }
    root
}

/// Polls for a fact that has no other way to tell; panics with `what` when it never comes.
#[track_caller]
pub fn until<T>(what: &str, fact: impl FnMut() -> Option<T>) -> T {
    until_within(PATIENCE, what, fact)
}

#[track_caller]
pub fn until_within<T>(patience: Duration, what: &str, mut fact: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + patience;
    loop {
        if let Some(found) = fact() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A shell script that can be executed. It is put in place by a process of its own: were it written here, a process
/// that another test starts at that moment would have it open, and nobody could execute it.
pub fn script(directory: &Path, text: &str) -> PathBuf {
    let (draft, program) = (directory.join("script.draft"), directory.join("script"));
    std::fs::write(&draft, format!("#!/bin/sh\n{text}\n")).expect("a file");
    let mut install = Command::new("install");
    let status = install
        .args(["-m", "755"])
        .args([&draft, &program])
        .status();
    assert!(status.is_ok_and(|status| status.success()), "no script");
    program
}
