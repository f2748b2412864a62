//! The ground is taken away: directories, files of its own, descriptors, the clock.

use super::shells::*;
use crate::support::daemon::{Daemon, missiond};
use crate::support::setup::Setup;
use crate::support::{processes, skip, until};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn a_slot_outlives_its_directory_and_is_not_started_without_it() {
    let daemon = shells_with(&["a"], "restart = \"always\"", ECHOES);
    daemon.wait_state("a", "idle");
    fs::remove_dir_all(daemon.cwd("a")).expect("it is ours");
    echoes(&daemon, "still here");
    let pid = daemon.status("a")["pid"].as_i64().expect("a pid");
    processes::kill(pid as i32);
    daemon.wait_state("a", "error");
    let status = daemon.status("a");
    assert_eq!(status["cause"], "bad settings", "{status}");
    let why = status["last_error"].as_str().unwrap_or_default();
    let cwd = daemon.cwd("a");
    let told = format!("{} is not there: make it, or change `cwd`", cwd.display());
    assert!(why.contains(&told), "{status}");
    fs::create_dir(daemon.cwd("a")).expect("it is ours");
    daemon.cmd(&["start", "a"]).expect(0);
    echoes(&daemon, "again");
}

/// Whatever is in the files that missiond keeps for itself, the slots start, and what can't be read is set aside.
#[test]
fn garbage_in_its_own_files_stops_nothing() {
    let mut daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let state = daemon.root().join("state/missiond");
    let memory = state.join("missiond/a.json");
    let whole = fs::read(&memory).expect("a memory");
    let half = &whole[..whole.len() / 2];
    for garbage in [&b""[..], half, b"\x00\xff\xfe", b"[]", b"{\"sessions\": 7}"] {
        daemon.cmd(&["down"]).expect(0);
        daemon.ended();
        fs::write(&memory, garbage).expect("it can be written");
        for other in ["rehearsed.json", "missiond/a.settings.json"] {
            fs::write(state.join(other), garbage).expect("it can be written");
        }
        daemon.again();
        daemon.wait_state("a", "idle");
        let shown = String::from_utf8_lossy(garbage);
        let told = daemon.log("a");
        let told = told
            .lines()
            .rev()
            .find(|line| line.contains("can't be read"));
        assert!(
            told.is_some_and(|told| told.contains("a.broken")),
            "{shown}"
        );
        assert_eq!(
            fs::read(state.join("missiond/a.broken")).expect("set aside"),
            garbage
        );
    }
    assert_eq!(daemon.log("a").matches("can't be read").count(), 5);
}

const FEW_FILES: usize = 64;

/// A daemon that may have few files open.
fn with_few_files(root: &Path) -> Command {
    let program = missiond(root);
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -n {FEW_FILES}; exec \"$0\" \"$@\"")])
        .arg(program.get_program())
        .env_clear()
        .current_dir(root);
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
}

/// Adds listeners until the daemon turns one away because it has no descriptor for it. Each listener has a request under
/// way, so the daemon lets none of them go.
fn listen_until_turned_away(daemon: &Daemon, listeners: &mut Vec<UnixStream>) {
    const LISTEN: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"events\",\"params\":{}}\n";
    let socket = daemon.root().join("run/missiond/missiond.sock");
    loop {
        let mut stream = UnixStream::connect(&socket).expect("the kernel takes it");
        // The daemon may have closed it already.
        let _ = stream.write_all(LISTEN);
        let mut answer = String::new();
        let read = BufReader::new(&stream).read_line(&mut answer);
        read.expect("an answer");
        if !answer.contains("\"result\"") {
            assert!(answer.contains("Too many open files"), "{answer}");
            return;
        }
        listeners.push(stream);
        assert!(listeners.len() < FEW_FILES, "more listeners than files");
    }
}

#[test]
fn no_more_descriptors_is_a_passing_trouble() {
    let keys = "restart = \"always\"\nrestart_delay = \"200ms\"\nrestart_delay_max = \"1s\"\nrestart_tries = 1000\n";
    let mut daemon = shells_with(&["a"], keys, ECHOES);
    daemon.wait_state("a", "idle");
    daemon.crash();
    daemon.again_as(with_few_files(daemon.root()));
    daemon.wait_state("a", "idle");
    let mut listeners = Vec::new();
    // The daemon has other files open for a moment, so a listener can be turned away while a start still finds room. Then
    // there is room for another listener too, and the program is killed again.
    until("a start that fails", || {
        listen_until_turned_away(&daemon, &mut listeners);
        let status = daemon.cmd(&["status", "a", "--json"]);
        if status.code == 0
            && let Some(pid) = status.json()[0]["pid"].as_i64()
        {
            processes::kill(pid as i32);
        }
        daemon
            .log("a")
            .contains("Too many open files")
            .then_some(())
    });
    until("scripts to find it", || {
        let status = daemon.cmd(&["status", "a", "--json"]);
        let is_in_json = || {
            status.json()[0]["health"]
                .to_string()
                .contains("few_descriptors")
        };
        (status.code == 0 && is_in_json()).then_some(())
    });
    drop(listeners);
    until("another start", || {
        let status = daemon.cmd(&["status", "a", "--json"]);
        (status.code == 0 && status.json()[0]["state"] == "idle").then_some(())
    });
    echoes(&daemon, "back");
}

/// Fakes the time of day for one program; what it says is in a file, and can be changed at any moment.
fn faketime() -> Option<PathBuf> {
    let places = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
    ];
    let found = places
        .iter()
        .map(|place| Path::new(place).join("faketime/libfaketime.so.1"))
        .find(|library| library.exists());
    if found.is_none() {
        skip("a clock that jumps is not tried (needs faketime)");
    }
    found
}

#[test]
fn a_clock_that_jumps_changes_no_delay() {
    let Some(library) = faketime() else { return };
    let keys = "restart = \"always\"\nrestart_delay = \"3s\"\nrestart_delay_max = \"3s\"\nrestart_tries = 1000\n";
    let setup = Setup::new().slot_with("a", &format!("kind = \"shell\"\n{keys}"));
    let command = ["/bin/sh", "-c", "read line"].map(str::to_owned);
    let mut daemon = Daemon::start_with(&setup, &command);
    daemon.wait_state("a", "idle");
    daemon.crash();
    let clock = daemon.root().join("clock");
    fs::write(&clock, "+0").expect("a file");
    let mut program = missiond(daemon.root());
    program
        .env("LD_PRELOAD", library)
        .env("FAKETIME_TIMESTAMP_FILE", &clock)
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    daemon.again_as(program);
    daemon.wait_state("a", "idle");
    let starts = || daemon.log("a").matches("  started ").count();
    for jump in ["-2h", "+3d"] {
        let before = starts();
        // Counted from before the end: on a busy machine the test learns of it late.
        let begun = Instant::now();
        daemon.cmd(&["write", "a", "\\r"]).expect(0);
        daemon.wait_state("a", "exited");
        fs::write(&clock, jump).expect("a file");
        let wait = ["wait", "a", "--output", "never", "--timeout", "1s"];
        daemon.cmd(&wait).expect(124);
        until("the restart", || (starts() > before).then_some(()));
        let waited = begun.elapsed();
        assert!(
            waited > Duration::from_millis(2500),
            "after {jump}: {waited:?}"
        );
        daemon.wait_state("a", "idle");
        // Forward is nothing to be told; by then the time from which it was set back has passed.
        until("the status to tell of the jump", || {
            let status = daemon.cmd(&["status"]).expect(0);
            let is_told = status.stdout.contains("the clock was set back by 2h");
            let health = daemon.status("a")["health"].to_string();
            let is_in_json = health.contains("clock_set_back");
            (is_told == is_in_json && is_told == jump.starts_with('-')).then_some(())
        });
    }
    let ends = |wanted: &str| {
        let log = daemon.log("a");
        let line = log.lines().rev().find(|line| line.contains(wanted));
        line.map(|line| line[..10].to_owned()).expect("a line")
    };
    assert_ne!(ends("-> idle"), ends("number 1 in"), "the jumps were seen");
}
