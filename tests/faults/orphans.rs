//! Whatever a slot has started ends with it.

use super::shells::*;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{processes, until};
use rustix::process::{Pid, Signal, kill_process};
use std::time::{Duration, Instant};

/// Ignores TERM, and has a tool that fled into a session of its own and ignores it too.
const STUBBORN: &str = "trap '' TERM HUP; \
    setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 0.1; done' & \
    echo up; while :; do sleep 0.1; done";

fn is_up(daemon: &Daemon, slot: &str) {
    daemon
        .cmd(&["wait", slot, "--output", "up", "--timeout", "20s"])
        .expect(0);
}

fn of_slots(daemon: &Daemon) -> Vec<i32> {
    let mut all = processes::all_of(daemon.root());
    all.retain(|pid| *pid != daemon.pid());
    all
}

fn signal(daemon: &Daemon, signal: Signal) {
    let pid = Pid::from_raw(daemon.pid()).expect("a pid");
    kill_process(pid, signal).expect("it runs");
}

#[test]
fn stop_ends_the_whole_tree_also_the_deaf() {
    let daemon = shells(&["a"], STUBBORN);
    is_up(&daemon, "a");
    let begun = Instant::now();
    daemon.cmd(&["stop", "a"]).expect(0);
    println!("stopped after {:?}", begun.elapsed());
    assert_eq!(of_slots(&daemon), [0i32; 0], "orphans");
}

/// With nobody who starts it again, and so nobody who would clean up for that.
#[test]
fn what_a_killed_shim_leaves_is_ended_at_once() {
    let daemon = shells_with(&["a"], "restart = \"never\"", STUBBORN);
    is_up(&daemon, "a");
    let socket = daemon.root().join("run/missiond/shims/missiond.a.sock");
    assert!(socket.exists());
    processes::kill(shim_of(&daemon, "a"));
    daemon.wait_state("a", "exited");
    assert_eq!(of_slots(&daemon), [0i32; 0], "orphans");
    assert!(!socket.exists(), "its socket is removed");
    let log = daemon.log("a");
    assert!(log.contains("exit      shim lost"), "{log}");
}

/// A shim that was killed while there was no daemon, of a slot that nobody wants to run.
#[test]
fn the_next_daemon_ends_what_a_killed_shim_left() {
    let mut daemon = shells_with(&["a"], "autostart = false", STUBBORN);
    daemon.cmd(&["start", "a"]).expect(0);
    is_up(&daemon, "a");
    let shim = shim_of(&daemon, "a");
    daemon.crash();
    let memory = daemon.root().join("state/missiond/missiond/a.json");
    std::fs::remove_file(memory).expect("what was known of the slot");
    processes::kill(shim);
    daemon.again();
    daemon.wait_state("a", "exited");
    assert_eq!(of_slots(&daemon), [0i32; 0], "orphans");
    assert!(daemon.log("a").contains("shim lost"), "{}", daemon.log("a"));
}

fn shim_of(daemon: &Daemon, slot: &str) -> i32 {
    daemon.status(slot)["shim_pid"].as_i64().expect("a pid") as i32
}

#[test]
fn sigterm_ends_everything_in_order_and_a_second_one_forces() {
    let mut daemon = shells(&["a", "b"], "echo up; exec sleep 1000");
    is_up(&daemon, "a");
    is_up(&daemon, "b");
    let socket = daemon.root().join("run/missiond/missiond.sock");
    assert!(socket.exists());
    signal(&daemon, Signal::TERM);
    assert_eq!(daemon.wait_for_its_end(), Some(0));
    assert!(!socket.exists(), "the socket is removed");
    assert_eq!(of_slots(&daemon), [0i32; 0], "orphans");
    assert!(daemon.log("a").contains("exit"), "{}", daemon.log("a"));

    let mut daemon = shells(&["a"], STUBBORN);
    is_up(&daemon, "a");
    let begun = Instant::now();
    signal(&daemon, Signal::TERM);
    until("the end to begin", || {
        daemon.log("a").contains("-> exited").then_some(())
    });
    signal(&daemon, Signal::TERM);
    assert_eq!(daemon.wait_for_its_end(), Some(0));
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "it waited for the grace"
    );
    assert_eq!(of_slots(&daemon), [0i32; 0], "orphans");
    let log = daemon.log("a");
    assert!(log.contains("ended by missiond: signal 9"), "{log}");
}

#[test]
fn a_thousand_orphans_leave_no_zombie() {
    let script = "i=0; while [ $i -lt 1000 ]; do (: & ); i=$((i+1)); done; echo up; read x";
    let daemon = shells(&["a"], script);
    is_up(&daemon, "a");
    let pid = daemon.status("a")["pid"].as_i64().expect("a pid") as i32;
    let shim = processes::parent_of(pid).expect("a shim");
    until("only the child to be left", || {
        (processes::children_of(shim) == [pid]).then_some(())
    });
}

/// Claude Code has a background daemon of its own, which would outlive its session.
#[test]
fn nothing_of_claude_code_is_left_after_a_stop() {
    let Some(daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    daemon.cmd(&["send", "coder", "hello"]).expect(0);
    for pid in of_slots(&daemon) {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let shown: String = line.replace('\0', " ").chars().take(150).collect();
        println!("{pid} of {:?}: {shown}", processes::parent_of(pid));
    }
    daemon.cmd(&["stop", "coder"]).expect(0);
    daemon.wait_state("coder", "exited");
    assert_eq!(of_slots(&daemon), [0i32; 0], "orphans");
}
