//! A dialog through many sizes of the terminal, read by the screen alone.

use super::person::{Person, gets_size};
use crate::support::claude_code::claude;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{PINNED, script, until};
use missiond::core::claude::Version;
use missiond::lab::rehearsal::Step;
use missiond::launch::rehearsed::RehearsedProgram;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Fits into a row of the widest size only. What a rule allows is its front.
const COMMAND: &str =
    "mkfifo aaa b01 b02 b03 b04 b05 b06 b07 b08 b09 b10 b11 b12 b13 b14 b15 && mkfifo over";

const POLICY: &str = "default = \"ask\"\nallow = [\"Bash(mkfifo aaa *)\"]\n";

/// Columns and rows, four times in a row.
const SIZES: [(u16, u16); 4] = [(120, 40), (60, 40), (78, 24), (94, 30)];

/// Lower than all of them: 2.1.160 erases as many rows as it had drawn, which is less than all of a screen that has grown.
const LAST: (u16, u16) = (110, 22);

#[test]
fn a_dialog_outlives_every_size_of_the_terminal() {
    let Some(stage) = stage(PINNED) else { return };
    a_rule_answers(&stage.0);
    through_all_sizes(&stage.0);
}

#[test]
fn a_dialog_of_an_older_version_outlives_every_size_of_the_terminal() {
    let Some(stage) = stage("2.1.160") else {
        return;
    };
    through_all_sizes(&stage.0);
}

/// A daemon with a slot that is read by its screen alone, and the directory of the slot's program.
fn stage(version: &str) -> Option<(Daemon, TempDir)> {
    let real = claude(version)?;
    let programs = tempfile::tempdir().expect("a directory");
    let wrapper = without_hooks(programs.path(), &real);
    let setup = Setup::new()
        .slot_with("coder", "gate = \"screen\"")
        .policy("coder", POLICY);
    let daemon = Daemon::start_with(&setup, std::slice::from_ref(&wrapper));
    daemon.wait_state("coder", "idle");
    rehearsed(&daemon, version, wrapper);
    Some((daemon, programs))
}

fn through_all_sizes(daemon: &Daemon) {
    let tool = Step::tool("Bash", json!({ "command": COMMAND }));
    let steps = vec![tool, Step::text("I was not allowed to.")];
    daemon.endpoint.on("make many", steps);
    daemon.cmd(&["send", "coder", "make many"]).expect(5);
    let before = Log::of(daemon);
    let dialog = daemon.status("coder")["dialog"].clone();
    assert_eq!(dialog["input"]["command"], COMMAND, "{dialog}");
    assert_eq!(dialog["complete"], true, "{dialog}");

    let person = Person::attach(daemon, &["coder"], SIZES[0]);
    gets_size(daemon, "coder", SIZES[0].into_wide());
    in_a_row(daemon, &person);
    one_by_one(daemon, &person);
    while_the_program_stands_still(daemon, &person);

    // At a size that has room for all of it, it is read whole again.
    person.resizes(LAST.0, LAST.1);
    gets_size(daemon, "coder", LAST.into_wide());
    let settled = until("the whole dialog", || {
        let dialog = daemon.status("coder")["dialog"].clone();
        (dialog["complete"] == true).then_some(dialog)
    });
    assert_eq!(settled["id"], dialog["id"], "{settled}");
    let after = Log::of(daemon);
    assert_eq!(after.dialogs, before.dialogs, "no other dialog came");
    assert_eq!(after.gone, before.gone, "it was never gone");
    assert_eq!(after.keys, before.keys, "no key was pressed");
    nothing_cut_was_whole(daemon);
    daemon.cmd(&["confirm", "coder", "no"]).expect(0);
    daemon.wait_state("coder", "idle");
    assert!(!daemon.cwd("coder").join("over").exists());
    assert!(!daemon.cwd("coder").join("aaa").exists());
}

/// Has the slot's program count as one that was rehearsed: only then a rule allows by the screen alone.
fn rehearsed(daemon: &Daemon, version: &str, program: String) {
    let version = Version::parse(version).expect("a version");
    let program = RehearsedProgram::new(version, &[program]).expect("the program");
    let mut passed = serde_json::to_value(program).expect("JSON");
    passed["at"] = json!("2026-01-01T00:00:00Z");
    passed["holds"] = json!(true);
    let file = daemon.root().join("state/missiond/rehearsed.json");
    let written = std::fs::write(file, json!({"rehearsals": [passed]}).to_string());
    written.expect("a state directory");
    daemon.cmd(&["restart", "coder"]).expect(0);
    daemon.wait_state("coder", "idle");
}

/// The screen alone is enough for what a rule allows as a whole.
fn a_rule_answers(daemon: &Daemon) {
    let tool = Step::tool("Bash", json!({"command": "mkfifo aaa one"}));
    daemon
        .endpoint
        .on("make one", vec![tool, Step::text("Made.")]);
    // Without hooks `send` may miss on a loaded machine that its message was taken: what was made tells.
    daemon.cmd(&["send", "coder", "make one"]);
    until("the rule's answer", || {
        daemon.cwd("coder").join("one").exists().then_some(())
    });
    daemon.wait_state("coder", "idle");
    for name in ["aaa", "one"] {
        let made = std::fs::remove_file(daemon.cwd("coder").join(name));
        made.expect("it was made");
    }
}

/// As fast as a person can pull at a window: the program draws for sizes that are over.
fn in_a_row(daemon: &Daemon, person: &Person) {
    for (cols, rows) in SIZES.into_iter().cycle().skip(1).take(6) {
        person.resizes(cols, rows);
        std::thread::sleep(Duration::from_millis(15));
    }
    gets_size(daemon, "coder", SIZES[2].into_wide());
}

fn one_by_one(daemon: &Daemon, person: &Person) {
    for size in SIZES.into_iter().cycle().skip(3).take(6) {
        person.resizes(size.0, size.1);
        gets_size(daemon, "coder", size.into_wide());
    }
}

/// A program on a loaded machine draws seconds later. What it had drawn before it stopped may be read after the change of
/// size: only then it may be whole.
fn while_the_program_stands_still(daemon: &Daemon, person: &Person) {
    let pid = daemon.status("coder")["pid"].as_i64().expect("it runs");
    let pid = Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid");
    until("the drawing for the size before", || {
        is_drawn_for(daemon, SIZES[0]).then_some(())
    });
    for (round, size) in SIZES.into_iter().cycle().skip(1).take(4).enumerate() {
        kill_process(pid, Signal::STOP).expect("it runs");
        person.resizes(size.0, size.1);
        gets_size(daemon, "coder", size.into_wide());
        // Longer than it is waited for.
        std::thread::sleep(Duration::from_millis(1500));
        let cut = daemon.status("coder")["dialog"].clone();
        let may_be_whole = round > 0 && is_drawn_for(daemon, size);
        assert!(cut["complete"] == false || may_be_whole, "{size:?} {cut}");
        kill_process(pid, Signal::CONT).expect("it runs");
    }
}

/// The rule above a dialog reaches from edge to edge, where the program has drawn it for this size.
fn is_drawn_for(daemon: &Daemon, (cols, _): (u16, u16)) -> bool {
    let is_edge = |row: &str| row.chars().all(|c| "─╌".contains(c));
    let screen = daemon.cmd(&["screen", "coder"]).expect(0).stdout;
    screen
        .lines()
        .any(|row| row.chars().count() == usize::from(cols) && is_edge(row))
}

/// Every moment of the recording, as the daemon has read it.
fn nothing_cut_was_whole(daemon: &Daemon) {
    let recording = daemon.logs().join("coder.cast");
    let recording = recording.to_string_lossy();
    let moments = daemon.cmd(&["replay", &recording]).expect(0);
    let whole: Vec<Value> = moments
        .json_lines()
        .into_iter()
        .map(|moment| moment["dialog"].clone())
        .filter(|dialog| dialog["complete"] == true && dialog["kind"] == "permission")
        .collect();
    let is_whole = |dialog: &Value| {
        let command = &dialog["input"]["command"];
        command == COMMAND || command == "mkfifo aaa one"
    };
    assert!(whole.iter().all(is_whole), "{whole:?}");
    // Before the first size and after the last; how often between two sizes is up to the machine.
    assert!(whole.len() >= 2, "{whole:?}");
}

/// A program that calls Claude Code without the settings that missiond gives.
fn without_hooks(directory: &Path, real: &[String]) -> String {
    let real: Vec<String> = real.iter().map(|word| format!("'{word}'")).collect();
    let text = format!(
        "left=$#\n\
         while [ $left -gt 0 ]; do\n\
           word=$1; shift; left=$((left - 1))\n\
           if [ \"$word\" = --settings ]; then shift; left=$((left - 1)); continue; fi\n\
           set -- \"$@\" \"$word\"\n\
         done\n\
         exec {} \"$@\"\n",
        real.join(" ")
    );
    script(directory, &text).to_string_lossy().into_owned()
}

/// How often something has happened.
#[derive(Debug)]
struct Log {
    dialogs: usize,
    gone: usize,
    keys: usize,
}

impl Log {
    fn of(daemon: &Daemon) -> Log {
        let events = daemon.logged("coder.events.jsonl");
        let count = |event: &str| events.matches(&format!("\"event\":\"{event}\"")).count();
        Log {
            dialogs: count("dialog"),
            gone: count("dialog_gone"),
            keys: count("key"),
        }
    }
}

trait Wide {
    fn into_wide(self) -> (u64, u64);
}

impl Wide for (u16, u16) {
    fn into_wide(self) -> (u64, u64) {
        (self.0.into(), self.1.into())
    }
}
