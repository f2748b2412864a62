//! A daemon that is killed at any moment loses nothing and does nothing twice.

use super::shells::*;
use crate::support::daemon::Daemon;
use crate::support::program::program_at;
use crate::support::setup::Setup;
use crate::support::{PATIENCE, processes, until};
use missiond::lab::rehearsal::Step;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub const ROUNDS: usize = 50;

#[test]
fn fifty_kills_lose_no_byte_and_write_nothing_twice() {
    let slots = ["a", "b", "c"];
    let mut daemon = shells(&slots, COUNTS_AND_ECHOES);
    let mut chance = Chance::new();
    for slot in slots {
        daemon.wait_state(slot, "idle");
    }
    let pids = slots.map(|slot| daemon.status(slot)["pid"].clone());
    let mut acknowledged = Vec::new();
    let mut adoptions = Vec::new();
    for round in 0..ROUNDS {
        let slot = slots[round % slots.len()];
        let texts = [format!("{slot}-{round}-x"), format!("{slot}-{round}-y")];
        let writes = texts.map(|text| {
            let write = daemon.spawn(&["write", slot, &format!("{text}\\r")]);
            (text, write)
        });
        std::thread::sleep(Duration::from_millis(chance.below(120)));
        daemon.crash();
        for (text, write) in writes {
            if write.end().code == 0 {
                acknowledged.push((slot, text));
            }
        }
        let begun = Instant::now();
        daemon.again();
        for (slot, pid) in slots.iter().zip(&pids) {
            daemon.wait_state(slot, "idle");
            assert_eq!(daemon.status(slot)["pid"], *pid, "round {round}");
        }
        adoptions.push(begun.elapsed());
    }
    adoptions.sort();
    println!(
        "from start to adopted, in the median: {:?}",
        adoptions[ROUNDS / 2]
    );
    for slot in slots {
        let last = format!("{slot}-last");
        daemon
            .cmd(&["write", slot, &format!("{last}\\r")])
            .expect(0);
        let text = until("the last input to be read", || {
            Some(recorded(&daemon, slot)).filter(|text| got(text).contains(last.as_str()))
        });
        assert!(unbroken_ticks(&text) > ROUNDS);
        let got = got(&text);
        for (_, sent) in acknowledged.iter().filter(|(to, _)| *to == slot) {
            assert!(
                got.contains(sent.as_str()),
                "{sent} was acknowledged and lost"
            );
        }
        assert_eq!(
            daemon
                .logged(&format!("{slot}.log"))
                .matches("  started ")
                .count(),
            1
        );
    }
    println!("{} inputs were acknowledged", acknowledged.len());
    every_key_is_audited(&daemon, &slots);
}

/// What the log tells of keys and verdicts is in the audit too, whose chain is whole.
#[track_caller]
pub fn every_key_is_audited(daemon: &Daemon, slots: &[&str]) {
    let audit = daemon.logged("audit.jsonl");
    let verified =
        missiond::audit::verify(vec![audit.as_bytes()], &[]).expect("the audit can be read");
    let entries = verified.expect("the chain is whole").head.seq;
    println!("{entries} entries in the audit");
    let audited: Vec<Value> = audit.lines().map(value).collect();
    for slot in slots {
        let events = daemon.logged(&format!("{slot}.events.jsonl"));
        let events: Vec<Value> = events.lines().map(value).collect();
        for what in ["key", "verdict"] {
            let told = events.iter().filter(|event| event["event"] == what).count();
            let mine = |entry: &&Value| entry["slot"] == **slot && entry["what"] == what;
            let written = audited.iter().filter(mine).count();
            assert!(
                told <= written,
                "{slot}: {told} of {what} told, {written} written"
            );
        }
    }
}

pub fn value(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[test]
fn down_keep_and_another_binary_leave_the_programs_alone() {
    let mut daemon = shells(&["a"], COUNTS_AND_ECHOES);
    daemon.wait_state("a", "idle");
    let pid = daemon.status("a")["pid"].clone();
    daemon.cmd(&["down", "--keep"]).expect(0);
    assert_eq!(daemon.cmd(&["status"]).code, 3);
    daemon.again();
    assert_eq!(daemon.status("a")["pid"], pid);

    // A copy of the program is run, and replaced by another file while it runs.
    daemon.crash();
    let copy = daemon.root().join("missiond-copy");
    std::fs::copy(env!("CARGO_BIN_EXE_missiond"), &copy).expect("a copy");
    daemon.again_as(program_at(&copy, daemon.root()));
    daemon.wait_state("a", "idle");
    let newer = daemon.root().join("missiond-newer");
    std::fs::copy(env!("CARGO_BIN_EXE_missiond"), &newer).expect("a copy");
    std::fs::rename(&newer, &copy).expect("it is replaced");
    daemon.cmd(&["restart", "a"]).expect(0);
    daemon.wait_state("a", "idle");
    let pid = daemon.status("a")["pid"].clone();
    daemon.crash();
    daemon.again_as(program_at(&copy, daemon.root()));
    daemon.wait_state("a", "idle");
    assert_eq!(daemon.status("a")["pid"], pid);
    daemon.cmd(&["write", "a", "hello\\r"]).expect(0);
    until("the input to be read", || {
        recorded(&daemon, "a").contains("got hello").then_some(())
    });
}

/// Claude Code asks whether it may write a line to the file that comes back.
pub fn at_a_dialog(daemon: &Daemon) -> PathBuf {
    daemon.wait_state("coder", "idle");
    let made = daemon.cwd("coder").join("made");
    let command = format!("echo once >> {}", made.display());
    let input = json!({"command": command, "description": "Write a line"});
    let steps = vec![Step::tool("Bash", input), Step::text("It is made.")];
    daemon.endpoint.on("make it", steps);
    daemon.cmd(&["send", "coder", "make it"]).expect(5);
    made
}

#[test]
fn a_dialog_stands_through_kills_and_is_answered_once() {
    let Some(mut daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    let mut chance = Chance::new();
    let made = at_a_dialog(&daemon);
    let before = daemon.status("coder");
    for round in 0..5 {
        std::thread::sleep(Duration::from_millis(chance.below(300)));
        daemon.crash();
        daemon.again();
        daemon.wait_state("coder", "confirming");
        let now = daemon.status("coder");
        for key in ["pid", "session_id", "gate"] {
            assert_eq!(now[key], before[key], "{key} in round {round}");
        }
        assert_eq!(now["dialog"]["id"], before["dialog"]["id"], "round {round}");
    }
    daemon.cmd(&["confirm", "coder", "yes"]).expect(0);
    daemon.wait_state("coder", "idle");
    let written = std::fs::read_to_string(&made).expect("the tool ran");
    assert_eq!(written, "once\n");
    let answer = daemon.cmd(&["send", "coder", "hello"]).expect(0);
    assert_eq!(answer.text(), "You said: hello");
    every_key_is_audited(&daemon, &["coder"]);
}

#[test]
fn after_a_reboot_slots_that_ran_go_on_with_their_conversation() {
    let setup = Setup::new().slot("coder").slot("stopped");
    let Some(mut daemon) = Daemon::start(&setup) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    daemon.cmd(&["send", "coder", "first words"]).expect(0);
    daemon.wait_state("stopped", "idle");
    daemon.cmd(&["stop", "stopped"]).expect(0);
    let made = at_a_dialog(&daemon);
    let before = daemon.status("coder");
    daemon.reboot();
    daemon.wait_state("coder", "idle");
    is_told_as_gone(&daemon, &before);
    let after = daemon.status("coder");
    assert_eq!(after["session_id"], before["session_id"]);
    assert_eq!(after["dialog"], Value::Null, "what waited is not repeated");
    assert!(!made.exists());
    let answer = daemon.cmd(&["send", "coder", "still there?"]).expect(0);
    assert_eq!(answer.text(), "You said: still there?");
    let request = daemon
        .endpoint
        .wait_for_request(PATIENCE, |request| request.prompt() == "still there?")
        .expect("it was asked");
    assert!(request.body.to_string().contains("first words"));
    assert_eq!(daemon.status("stopped")["pid"], Value::Null);
}

/// How a program ends while there is no daemon.
#[derive(Debug, Clone, Copy)]
enum Loss {
    /// Nothing is left of the slot, not even its shim.
    Reboot,
    /// Its shim is killed too.
    Shim,
    /// Its shim lives, and tells the next daemon.
    Program,
}

/// The program is in a turn, and messages wait behind that: one by a sender who waits, one by a sender who does not. They
/// are not typed into a conversation whose turn has died, whatever has died with it.
fn what_waits_behind_a_turn_dies_with_it(loss: Loss) {
    let setup = Setup::new().slot_with("coder", "restart = \"always\"");
    let Some(mut daemon) = Daemon::start(&setup) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let steps = vec![Step::gate("never"), Step::text("It is done.")];
    daemon.endpoint.on("take your time", steps);
    let turn = ["send", "coder", "take your time", "--no-wait"];
    daemon.cmd(&turn).expect(0);
    daemon.wait_state("coder", "thinking,responding");
    let queued = ["send", "coder", "then delete it", "--no-wait", "--id", "q1"];
    let queued = daemon.cmd(&queued).expect(0);
    assert!(queued.stdout.contains("queued"), "{queued}");
    // After a reboot no sender waits.
    let waits = (!matches!(loss, Loss::Reboot))
        .then(|| daemon.spawn(&["send", "coder", "and push it", "--id", "q2"]));
    let count = 1 + usize::from(waits.is_some());
    until("all to wait", || {
        (daemon.status("coder")["queued"] == count).then_some(())
    });
    let before = daemon.status("coder");
    let pid_of = |key: &str| before[key].as_i64().expect("a pid") as i32;
    match loss {
        Loss::Reboot => daemon.reboot(),
        Loss::Shim | Loss::Program => {
            daemon.crash();
            let (pid, shim) = (pid_of("pid"), pid_of("shim_pid"));
            processes::kill(if matches!(loss, Loss::Shim) {
                shim
            } else {
                pid
            });
            until("the end of the program", || {
                processes::start_of(pid).is_none().then_some(())
            });
            daemon.again();
        }
    }
    if let Some(waits) = waits {
        let waits = waits.end().expect(1);
        assert!(waits.stderr.contains("not sent"), "{loss:?}: {waits}");
    }
    daemon.wait_state("coder", "idle");
    let answer = daemon.cmd(&["send", "coder", "hello"]).expect(0);
    assert_eq!(answer.text(), "You said: hello", "{loss:?}");
    let told = daemon.json(&["send", "coder", "--id", "q1", "--status"]);
    assert_eq!(told["state"], "dropped", "{loss:?}: {told}");
    let log = daemon.log("coder");
    let dropped = ["was dropped (q1)", "were dropped (q1, q2)"][count - 1];
    assert!(log.contains(dropped), "{loss:?}: {log}");
    for text in ["then delete it", "and push it"] {
        assert!(!log.contains(text), "{loss:?}: {log}");
    }
}

#[test]
fn what_waits_behind_a_turn_dies_with_it_at_a_reboot() {
    what_waits_behind_a_turn_dies_with_it(Loss::Reboot);
}

#[test]
fn what_waits_behind_a_turn_dies_with_its_shim() {
    what_waits_behind_a_turn_dies_with_it(Loss::Shim);
}

#[test]
fn what_waits_behind_a_turn_dies_with_its_program() {
    what_waits_behind_a_turn_dies_with_it(Loss::Program);
}

/// Whoever follows the events knows that the dialog of this status is gone, and the program with it, before the next one.
fn is_told_as_gone(daemon: &Daemon, before: &Value) {
    let told = daemon.cmd(&["events", "--after", "0", "coder"]).expect(0);
    let told = told.json_lines();
    let place = |what: &str| {
        let is_it = |event: &Value| event["event"] == what;
        told.iter().rposition(is_it).expect(what)
    };
    let gone = place("dialog_gone");
    assert_eq!(told[gone]["id"], before["dialog"]["id"], "{before}");
    assert!(gone < place("exit") && place("exit") < place("spawned"));
    assert!(place("dialog") < gone);
    let stopped = daemon.cmd(&["events", "--after", "0", "stopped"]).expect(0);
    let stopped = stopped.json_lines();
    let exits = stopped.iter().filter(|event| event["event"] == "exit");
    assert_eq!(exits.count(), 1, "its end was told before: {stopped:?}");
}

#[test]
fn a_killed_shim_is_a_crash_and_leaves_nobody() {
    let script =
        "trap '' HUP; (trap '' HUP; setsid sleep 1000) & echo up; while :; do sleep 0.1; done";
    let daemon = shells_with(&["a"], "restart = \"always\"", script);
    daemon.wait_state("a", "idle");
    let pid = daemon.status("a")["pid"].as_i64().expect("a pid");
    let shim = processes::parent_of(pid as i32).expect("a shim");
    let before = until("the whole tree", || {
        Some(processes::all_of(daemon.root()))
            .filter(|all| all.contains(&(pid as i32)) && all.len() >= 4)
    });
    processes::kill(shim);
    let after = until("another process in the slot", || {
        let now = daemon.status("a");
        now["pid"].as_i64().filter(|now| *now != pid)
    });
    let daemon_pid = daemon.pid();
    let left: Vec<i32> = before
        .into_iter()
        .filter(|&p| p != daemon_pid && processes::all_of(daemon.root()).contains(&p))
        .collect();
    assert!(left.is_empty(), "orphans beside {after}: {left:?}");
    let status = daemon.status("a");
    assert_eq!(status["restarts"], 1, "{status}");
}

/// Runs what a test puts into the file `go` of its directory.
const RUNS_FILES: &str = "while :; do if [ -f go ]; then sh go >out 2>&1 </dev/null; echo $? >code.new; \
    rm go; mv code.new code; fi; sleep 0.05; done";

/// Runs a line inside a slot though there is no daemon: its exit code and what it printed.
fn run_inside(daemon: &Daemon, line: &str) -> (String, String) {
    let at = |name: &str| daemon.cwd("a").join(name);
    std::fs::write(at("go.new"), line).expect("a file");
    std::fs::rename(at("go.new"), at("go")).expect("a file");
    let code = until(line, || std::fs::read_to_string(at("code")).ok());
    std::fs::remove_file(at("code")).expect("a file");
    let printed = std::fs::read_to_string(at("out")).expect("a file");
    (code.trim().to_owned(), printed)
}

/// With no daemon the living shims tell who is inside a slot.
#[test]
fn a_slot_does_not_start_its_own_daemon() {
    let mut daemon = shells(&["a"], RUNS_FILES);
    daemon.wait_state("a", "idle");
    let pid = daemon.status("a")["pid"].clone();
    daemon.crash();
    let alone = daemon.cmd(&["status"]).expect(3);
    let told = "1 slot or session runs on without a daemon (a): missiond up -c ";
    assert!(alone.stderr.contains(told), "{alone}");
    let program = env!("CARGO_BIN_EXE_missiond");
    let root = daemon.root().display();
    let bare = format!(
        "env -i PATH=/usr/bin:/bin HOME={root}/home XDG_RUNTIME_DIR={root}/run XDG_STATE_HOME={root}/state"
    );
    for line in [
        format!("{program} up -c {root}/slots.toml"),
        format!("{program} run -c {root}/slots.toml"),
        format!("{bare} {program} up -c {root}/slots.toml"),
        format!("setsid -w {bare} {program} -c {root}/slots.toml"),
    ] {
        let (code, printed) = run_inside(&daemon, &line);
        assert_eq!(code, "4", "{line}: {printed}");
        assert!(printed.contains("inside the slot a"), "{line}: {printed}");
    }
    daemon.again();
    daemon.wait_state("a", "idle");
    assert_eq!(daemon.status("a")["pid"], pid);
}
