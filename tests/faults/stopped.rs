//! Programs and shims that are stopped with SIGSTOP: they hold up nobody else, and are not taken for dead.

use super::shells::shells;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{processes, until};
use missiond::lab::rehearsal::Step;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

fn signal(pid: &Value, signal: Signal) {
    let pid = pid.as_i64().and_then(|pid| i32::try_from(pid).ok());
    let pid = pid.and_then(Pid::from_raw).expect("a pid");
    kill_process(pid, signal).expect("it runs");
}

fn answers(daemon: &Daemon, slot: &str) {
    let answer = daemon.cmd(&["send", slot, "hello"]).expect(0);
    assert_eq!(answer.text(), "You said: hello");
}

#[test]
fn a_stopped_claude_code_is_told_of_and_holds_up_nobody() {
    let setup = Setup::new()
        .slot_with("coder", "stall_after = \"2s\"")
        .slot("tester");
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    daemon.wait_state("tester", "idle");
    let steps = vec![Step::gate("later"), Step::text("It is done.")];
    daemon.endpoint.on("take your time", steps);
    let send = daemon.spawn(&["send", "coder", "take your time"]);
    daemon.wait_state("coder", "thinking,responding");
    let before = daemon.status("coder");
    signal(&before["pid"], Signal::STOP);
    until("the stall to be told", || {
        let doing = daemon.status("coder")["doing"].to_string();
        doing.contains("no sign of life").then_some(())
    });
    answers(&daemon, "tester");
    signal(&before["pid"], Signal::CONT);
    daemon.endpoint.open("later");
    assert_eq!(send.end().expect(0).text(), "It is done.");

    // Its shim as well: nothing comes from the slot, and nothing is lost. A message is only typed into a slot that is not
    // in doubt, and the stop may have left one.
    until("the witnesses to agree", || {
        daemon.status("coder")["doubtful"].is_null().then_some(())
    });
    signal(&before["shim_pid"], Signal::STOP);
    answers(&daemon, "tester");
    daemon
        .cmd(&["send", "coder", "late", "--timeout", "1s"])
        .expect(124);
    signal(&before["shim_pid"], Signal::CONT);
    until("the end of the late turn", || {
        let answered = daemon.log("coder").contains("You said: late");
        (answered && daemon.status("coder")["state"] == "idle").then_some(())
    });
    answers(&daemon, "coder");

    // A shim that is killed takes its program along, which is a crash: the conversation goes on.
    let shim = before["shim_pid"].as_i64().expect("a pid");
    processes::kill(shim as i32);
    let after = until("another process in the slot", || {
        let now = daemon.status("coder");
        (now["pid"].is_u64() && now["pid"] != before["pid"]).then_some(now)
    });
    assert_eq!(after["session_id"], before["session_id"]);
    daemon.wait_state("coder", "idle");
    let history = daemon.cmd(&["history", "coder"]).expect(0);
    assert!(history.stdout.contains("It is done."), "{history}");

    // One that is stopped can be ended.
    signal(&after["pid"], Signal::STOP);
    daemon.cmd(&["stop", "coder"]).expect(0);
    assert!(
        !processes::all_of(daemon.root()).contains(&(after["pid"].as_i64().unwrap_or(0) as i32))
    );
}

/// A message is typed while the program or its shim is stopped, its sender gives up, and the daemon is killed: the next one
/// knows the text as its own, and presses Enter once when it is shown.
fn what_was_typed_for_nobody_is_entered_by_the_next_daemon(stopped: &str) {
    let Some(mut daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let before = daemon.status("coder");
    signal(&before[stopped], Signal::STOP);
    let late = ["send", "coder", "late", "--timeout", "2s", "--id", "late"];
    let late = daemon.cmd(&late).expect(124);
    assert!(!late.stderr.contains("was sent"), "{stopped}: {late}");
    assert!(late.stderr.contains("was typed"), "{stopped}: {late}");
    daemon.crash();
    daemon.again();
    signal(&before[stopped], Signal::CONT);
    let status = ["send", "coder", "--id", "late", "--status"];
    until("the late message to be answered", || {
        let told = daemon.json(&status);
        (told["state"] == "answered").then_some(())
    });
    daemon.wait_state("coder", "idle");
    answers(&daemon, "coder");
    assert_eq!(daemon.status("coder")["pid"], before["pid"]);
    let log = daemon.log("coder");
    let count = |what: &str| log.matches(what).count();
    assert_eq!(count("message   late"), 1, "{stopped}: {log}");
    assert_eq!(count("key       paste"), 2, "{stopped}: {log}");
    assert_eq!(count("key       Ctrl-C"), 0, "{stopped}: {log}");
}

#[test]
fn what_was_typed_at_a_stopped_program_is_entered_by_the_next_daemon() {
    what_was_typed_for_nobody_is_entered_by_the_next_daemon("pid");
}

#[test]
fn what_was_typed_at_a_stopped_shim_is_entered_by_the_next_daemon() {
    what_was_typed_for_nobody_is_entered_by_the_next_daemon("shim_pid");
}

/// Nobody waits for a shim that was stopped: it goes on in order to end.
#[test]
fn a_stopped_shim_holds_up_no_stop_and_no_end() {
    let mut daemon = shells(&["a", "b"], "trap '' HUP TERM; while :; do sleep 0.1; done");
    daemon.wait_state("a", "idle");
    daemon.wait_state("b", "idle");
    let (a, b) = (daemon.status("a"), daemon.status("b"));
    signal(&a["shim_pid"], Signal::STOP);
    daemon.cmd(&["stop", "a"]).expect(0);
    assert_eq!(daemon.status("a")["state"], "exited");
    signal(&b["shim_pid"], Signal::STOP);
    daemon.cmd(&["down"]).expect(0);
    daemon.ended();
    assert_eq!(processes::all_of(daemon.root()), [0i32; 0]);
}

/// The same for one of which the daemon knows only that it does not answer.
#[test]
fn a_stopped_shim_that_was_never_taken_up_is_ended_by_a_stop() {
    let mut daemon = shells(&["a"], "trap '' HUP TERM; while :; do sleep 0.1; done");
    daemon.wait_state("a", "idle");
    let before = daemon.status("a");
    daemon.crash();
    signal(&before["shim_pid"], Signal::STOP);
    daemon.again();
    until("the shim to be missed", || {
        let doing = daemon.status("a")["doing"].to_string();
        doing.contains("does not answer").then_some(())
    });
    daemon.cmd(&["stop", "a"]).expect(0);
    let left = processes::all_of(daemon.root());
    assert_eq!(left, [daemon.pid()]);
}

/// The next daemon starts no second program beside one whose shim does not answer, and finds it when it does.
#[test]
fn a_stopped_shim_is_taken_up_when_it_goes_on() {
    let mut daemon = shells(&["a", "b"], "stty -echo; exec cat");
    daemon.wait_state("a", "idle");
    daemon.wait_state("b", "idle");
    let before = daemon.status("a");
    daemon.crash();
    signal(&before["shim_pid"], Signal::STOP);
    daemon.again();
    daemon.wait_state("b", "idle");
    until("the shim to be missed", || {
        daemon
            .log("a")
            .contains("does not answer")
            .then_some(())
            .or_else(|| {
                let doing = daemon.status("a")["doing"].to_string();
                doing.contains("does not answer").then_some(())
            })
    });
    is_steadily_unreached(&daemon);
    // Whoever ends the daemon is told that the program runs on.
    let down = daemon.cmd(&["down", "--keep"]).expect(0);
    let left = "though this daemon did not reach them: a; missiond up";
    assert!(down.stdout.contains(left), "{down}");
    daemon.ended();
    daemon.again();
    is_steadily_unreached(&daemon);
    signal(&before["shim_pid"], Signal::CONT);
    daemon.wait_state("a", "idle");
    let after = daemon.status("a");
    assert_eq!(after["pid"], before["pid"]);
    assert_eq!(after["restarts"], 0);
    assert_eq!(daemon.log("a").matches("  started ").count(), 1);
}

/// A shim may end some milliseconds after the daemon: one that is ending is not "still running".
#[test]
fn down_waits_for_a_shim_that_is_ending() {
    let mut daemon = shells(&["a"], "stty -echo; exec cat");
    daemon.wait_state("a", "idle");
    let before = daemon.status("a");
    daemon.crash();
    signal(&before["shim_pid"], Signal::STOP);
    daemon.again();
    daemon.wait_state("a", "error");
    let down = daemon.spawn(&["down", "--keep"]);
    daemon.ended();
    signal(&before["shim_pid"], Signal::KILL);
    let down = down.end().expect(0);
    assert!(!down.stdout.contains("did not reach"), "{down}");
}

/// The slot is in the state `error`, with the remedy, and stays there: nothing is started again, and nothing counted.
fn is_steadily_unreached(daemon: &Daemon) {
    daemon.wait_state("a", "error");
    let states = |daemon: &Daemon| daemon.log("a").matches("  state  ").count();
    let before = states(daemon);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(3) {
        let status = daemon.status("a");
        assert_eq!(status["state"], "error", "{status}");
        assert_eq!(status["restarts"], 0, "{status}");
        let doing = status["doing"].to_string();
        assert!(doing.contains("SIGCONT"), "{status}");
    }
    assert_eq!(states(daemon), before, "{}", daemon.log("a"));
}

/// Takes the shim's connection from the daemon, as another daemon would, and gives it back.
fn break_connection(daemon: &Daemon, slot: &str) {
    let shims = daemon.root().join("run/missiond/shims");
    let socket = shims.join(format!("missiond.{slot}.sock"));
    let mut stream = UnixStream::connect(socket).expect("the shim listens");
    // It greets whoever counts from now on.
    stream.read_exact(&mut [0]).expect("a greeting");
}

/// A program that ends only when it is killed, so that its end takes some seconds.
const DEAF: &str = "trap '' HUP TERM; echo up; while :; do sleep 0.1; done";

fn is_up(daemon: &Daemon, slot: &str) {
    let wait = ["wait", slot, "--output", "up", "--timeout", "20s"];
    daemon.cmd(&wait).expect(0);
}

fn is_ended_in_order(daemon: &Daemon, slot: &str) {
    let log = daemon.log(slot);
    assert!(log.contains("exit      ended by missiond"), "{log}");
    assert!(log.contains("stopped   by a person"), "{log}");
    for wrong in ["does not answer", "shim lost", "adopted", "restart "] {
        assert!(!log.contains(wrong), "{wrong}: {log}");
    }
}

#[test]
fn a_stop_holds_though_the_connection_to_the_shim_breaks() {
    let mut daemon = shells(&["a", "b"], DEAF);
    is_up(&daemon, "a");
    is_up(&daemon, "b");
    let stop = daemon.spawn(&["stop", "a"]);
    until("the stop to be under way", || {
        (daemon.status("a")["doing"] == "stopping").then_some(())
    });
    break_connection(&daemon, "a");
    stop.end().expect(0);
    is_ended_in_order(&daemon, "a");
    assert_eq!(daemon.status("a")["state"], "exited");

    let down = daemon.spawn(&["down", "--yes"]);
    until("the end to be under way", || {
        daemon.log("b").contains("idle -> exited").then_some(())
    });
    break_connection(&daemon, "b");
    down.end().expect(0);
    daemon.ended();
    is_ended_in_order(&daemon, "b");
}

/// The shim has 12 s to say that its program has ended. If the daemon itself had no time to hear it, it has been said.
#[test]
fn a_daemon_that_was_stopped_hears_of_an_end_before_it_misses_it() {
    let daemon = shells(&["a"], DEAF);
    is_up(&daemon, "a");
    let before = daemon.status("a");
    let stop = daemon.spawn(&["stop", "a"]);
    until("the stop to be under way", || {
        (daemon.status("a")["doing"] == "stopping").then_some(())
    });
    processes::stop(daemon.pid());
    let told = Instant::now();
    until("the program to be gone", || {
        let pid = before["pid"].as_i64().expect("a pid") as i32;
        (!processes::all_of(daemon.root()).contains(&pid)).then_some(())
    });
    // The time is over by the clock, whatever the daemon does meanwhile.
    std::thread::sleep(Duration::from_secs(13).saturating_sub(told.elapsed()));
    processes::go_on(daemon.pid());
    stop.end().expect(0);
    is_ended_in_order(&daemon, "a");
}

/// The program has five seconds to end after its shim was told to. It is not at rest in that time, and takes nothing.
#[test]
fn a_slot_whose_shim_is_told_to_end_is_not_at_rest_until_its_program_has_ended() {
    let daemon = shells(
        &["a"],
        "trap '' TERM HUP; echo up; while :; do sleep 1; done",
    );
    let wait = ["wait", "a", "--output", "up", "--timeout", "20s"];
    daemon.cmd(&wait).expect(0);
    signal(&daemon.status("a")["shim_pid"], Signal::TERM);
    until("the exit", || {
        daemon.log("a").contains("exit      ").then_some(())
    });
    let log = daemon.log("a");
    let line = |part: &str| log.lines().position(|line| line.contains(part));
    let (state, exit) = (line("idle -> exited"), line("exit      "));
    assert!(state.is_some() && state < exit, "{log}");
    until("the next start", || {
        let status = daemon.status("a");
        (status["state"] == "idle" && status["restarts"] == 1).then_some(())
    });
}
