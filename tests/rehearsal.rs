//! `missiond doctor --rehearse`, on the real Claude Code and on programs that are none. What it finds on the real one
//! proves the scripted endpoint, the throw-away home and the reading of every screen that it leads to.

mod support;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::claude_code::claude;
use support::daemon::missiond;
use support::run::{Output, Running};
use support::{PINNED, processes, until};
use tempfile::TempDir;

/// It takes less than a minute; a loaded machine gets this long.
const PATIENCE: Duration = Duration::from_secs(300);

/// A directory for everything that a rehearsal writes.
struct Room {
    root: TempDir,
}

impl Room {
    fn new() -> Room {
        let root = tempfile::Builder::new().prefix("md").tempdir();
        let room = Room {
            root: root.expect("a directory"),
        };
        fs::create_dir(room.homes()).expect("a directory");
        room
    }

    /// Where the throw-away homes are made.
    fn homes(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    fn start(&self, arguments: &[&str]) -> Running {
        let mut command = missiond(self.root.path());
        command
            .args(arguments)
            .env("TMPDIR", self.homes())
            .env_remove("MISSIOND_CONFIG");
        Running::start(command, arguments.join(" "), "")
    }

    fn rehearse(&self, program: &Path) -> Output {
        let program = program.to_str().expect("a plain path");
        let arguments = ["doctor", "--rehearse", "--json", "--claude", program];
        self.start(&arguments).end_within(PATIENCE)
    }

    /// A program of the test's own.
    fn script(&self, text: &str) -> PathBuf {
        support::script(self.root.path(), text)
    }

    fn remembered(&self) -> String {
        let file = self.root.path().join("state/missiond/rehearsed.json");
        fs::read_to_string(file).unwrap_or_default()
    }

    /// Neither files nor processes stay behind.
    #[track_caller]
    fn is_left_empty(&self) {
        let homes = fs::read_dir(self.homes()).expect("it is there");
        assert_eq!(homes.count(), 0, "homes are left");
        let left = processes::all_of(self.root.path());
        assert!(left.is_empty(), "processes are left: {left:?}");
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        processes::kill_all_of(self.root.path());
    }
}

/// The pinned Claude Code, which is one program.
fn pinned() -> Option<PathBuf> {
    let command = claude(PINNED)?;
    assert_eq!(command.len(), 1, "{command:?}");
    command.first().map(PathBuf::from)
}

fn results(report: &Value) -> Vec<(&str, &str)> {
    let scenes = report["scenes"].as_array().map_or(&[][..], Vec::as_slice);
    scenes
        .iter()
        .map(|scene| {
            let text = |key: &str| scene[key].as_str().unwrap_or_default();
            (text("scene"), text("result"))
        })
        .collect()
}

#[test]
fn every_scene_holds_on_the_pinned_version() {
    let Some(program) = pinned() else { return };
    let room = Room::new();
    let rehearsed = room.rehearse(&program);
    let report = rehearsed.json();
    let results = results(&report);
    for (scene, result) in &results {
        assert_eq!(*result, "holds", "{scene} in {rehearsed}");
    }
    assert!(results.len() >= 23, "{rehearsed}");
    assert_eq!(report["version"], PINNED);
    rehearsed.expect(0);
    let remembered = room.remembered();
    assert!(remembered.contains(PINNED), "{remembered}");
    room.is_left_empty();
}

#[test]
fn a_rehearsal_that_is_stopped_leaves_nothing_behind() {
    let Some(program) = pinned() else { return };
    let room = Room::new();
    let program = program.to_str().expect("a plain path");
    let running = room.start(&["doctor", "--rehearse", "--claude", program]);
    until("the program on its stage", || {
        // The shim, the program and missiond itself.
        (processes::all_of(room.root.path()).len() >= 3).then_some(())
    });
    let pid = i32::try_from(running.pid()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a process"), Signal::INT).expect("it runs");
    let stopped = running.end().expect(1);
    assert!(stopped.stderr.contains("was stopped"), "{stopped}");
    assert_eq!(room.remembered(), "");
    room.is_left_empty();
}

#[test]
fn another_program_fails_at_once_and_clearly() {
    let room = Room::new();
    let nonsense = room.script("echo nonsense");
    let failed = room.rehearse(&nonsense).expect(1);
    assert!(
        failed.stderr.contains("does not tell its version"),
        "{failed}"
    );

    let pretender = room.script("[ \"$1\" = --version ] && echo 9.9.9 || echo nonsense");
    let failed = room.rehearse(&pretender).expect(1);
    let report = failed.json();
    assert_eq!(report["ok"], false, "{failed}");
    let results = results(&report);
    assert_eq!(results.first(), Some(&("trust", "fails")), "{failed}");
    assert!(
        results[1..]
            .iter()
            .all(|(_, result)| *result == "not_tried"),
        "{failed}"
    );
    let why = report["scenes"][0]["why"].as_str().unwrap_or_default();
    assert!(why.contains("ended with exit code 0"), "{failed}");
    assert_eq!(report["scenes"][0]["screen"], "nonsense", "{failed}");
    assert!(room.remembered().contains("\"holds\": false"), "{failed}");
    room.is_left_empty();
}

#[test]
fn a_missing_program_is_named() {
    let room = Room::new();
    let missing = room.rehearse(Path::new("/no/such/claude")).expect(2);
    assert!(missing.stderr.contains("/no/such/claude"), "{missing}");
    assert_eq!(room.remembered(), "");
    room.is_left_empty();
}
