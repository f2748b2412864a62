//! The demo as a newcomer runs it: it tells everything it is to tell, and leaves nothing behind.

mod support;

use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::run::Running;
use support::{PINNED, claude_code, processes, until};
use tempfile::TempDir;

/// It takes half a minute; a loaded machine must not fail it.
const PATIENCE: Duration = Duration::from_secs(240);

/// Everything of the demo lies in here, also what it puts into the directory for temporary files.
fn place() -> TempDir {
    tempfile::Builder::new()
        .prefix("md")
        .tempdir()
        .expect("a directory")
}

fn demo(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_missiond"));
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("TMPDIR", place)
        .env("HOME", place.join("no-such-home"))
        .arg("demo")
        .args(arguments);
    command
}

fn start(place: &Path, arguments: &[&str]) -> Running {
    Running::start(
        demo(place, arguments),
        format!("demo {}", arguments.join(" ")),
        "",
    )
}

#[track_caller]
fn nothing_is_left(place: &Path) {
    let gone = || processes::all_of(place).is_empty().then_some(());
    until("the end of every process", gone);
    let left: Vec<_> = place.read_dir().expect("a directory").flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// What it must tell, in this order.
const STORY: &[&str] = &[
    "starting → idle",
    "idle → thinking",
    "automatic yes: Read",
    "rule Read, policies/reader.toml:4",
    "answers: The notes say",
    "automatic no: Bash rm -rf build",
    "rule Bash(rm *), policies/coder.toml:10",
    "→ confirming",
    "by hand:  missiond confirm coder yes",
    "coder     answered: Yes",
    "build/ is there; the file that publish.sh writes is there",
    "asks: How thorough shall I be?",
    "reviewer  answered: Thorough",
    "answers: Then I do it that way.",
    "by hand:  kill -9",
    "its program ended",
    "restart 1 in",
    "goes on with conversation",
    "it is in the same conversation",
    "audit.jsonl",
    "missiond init",
];

#[track_caller]
fn tells(text: &str, story: &[&str]) {
    let mut rest = text;
    for fact in story {
        let Some(at) = rest.find(fact) else {
            panic!("`{fact}` is not told, or not in order:\n{text}");
        };
        rest = &rest[at + fact.len()..];
    }
}

#[test]
fn piped_it_tells_everything_and_leaves_nothing() {
    let place = place();
    let output = start(place.path(), &[]).end_within(PATIENCE).expect(0);
    tells(&output.stdout, STORY);
    // The real program may be done with a short answer before it is seen to come.
    assert!(output.stdout.contains("thinking → responding"), "{output}");
    assert!(!output.stdout.contains('\x1b'), "{output}");
    assert!(!output.stdout.contains("doubtful"), "{output}");
    let lost = "warning: it ended while something waited: a message that was not yet answered";
    assert_eq!(output.stdout.matches(lost).count(), 1, "{output}");
    assert_eq!(output.stdout.matches("warning").count(), 1, "{output}");
    nothing_is_left(place.path());
}

#[test]
fn interrupted_it_ends_in_order() {
    let place = place();
    let running = start(place.path(), &["--json"]);
    until("the first message", || {
        running.printed().contains("\"message\"").then_some(())
    });
    let pid = i32::try_from(running.pid()).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a pid"), Signal::INT).expect("it runs");
    let output = running.end_within(PATIENCE).expect(0);
    let told = output.json_lines();
    assert!(
        told.iter().any(|line| line["told"] == "stopped"),
        "{output}"
    );
    nothing_is_left(place.path());
}

#[test]
fn a_reader_that_goes_away_leaves_nothing_running() {
    let place = place();
    let mut child = demo(place.path(), &[])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("missiond runs");
    drop(child.stdout.take());
    let status = until("its end", || child.try_wait().expect("it is a child"));
    assert!(status.success(), "{status}");
    nothing_is_left(place.path());
}

/// The demo's output on a terminal, up to some words.
#[track_caller]
fn read_up_to(mut terminal: impl Read, words: &str) {
    let (mut seen, mut chunk) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&seen).contains(words) {
        let count = terminal.read(&mut chunk).unwrap_or(0);
        assert!(count > 0, "{words:?} never came: {seen:?}");
        seen.extend_from_slice(&chunk[..count]);
    }
}

#[test]
fn asking_on_a_terminal_that_goes_away_leaves_nothing_running() {
    let place = place();
    let terminal = native_pty_system()
        .openpty(PtySize::default())
        .expect("a terminal");
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_missiond"));
    command.env_clear();
    command.env("TERM", "xterm-256color");
    command.env("TMPDIR", place.path());
    command.env("HOME", place.path().join("no-such-home"));
    command.cwd(place.path());
    command.arg("demo");
    let mut child = terminal.slave.spawn_command(command).expect("it runs");
    drop(terminal.slave);
    let reader = terminal.master.try_clone_reader().expect("a reader");
    read_up_to(reader, "your answer?");
    drop(terminal.master);
    until("its end", || child.try_wait().expect("it is a child"));
    nothing_is_left(place.path());
}

#[test]
fn with_the_real_claude_code_it_tells_the_same() {
    let Some(command) = claude_code::claude(PINNED) else {
        return;
    };
    let place = place();
    let running = start(place.path(), &["--real", "--claude", &command[0]]);
    let output = running.end_within(PATIENCE).expect(0);
    tells(&output.stdout, STORY);
    nothing_is_left(place.path());
}
