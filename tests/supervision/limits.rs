//! What a slot may use, and how it is watched.

use super::scripts::{QUICK, claude, log_when, shell, status_when};
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use missiond::lab::rehearsal::Step;
use std::path::Path;
use std::process::Command;

fn daemon(setup: &Setup) -> Daemon {
    Daemon::start_with(setup, &["true".to_owned()])
}

/// A program that never draws anything claims to be starting, for ever.
#[test]
fn a_stall_is_marked_reported_and_ended_as_it_is_set() {
    let short = "stall_after = \"600ms\"\n";
    let restarts = format!("{short}{QUICK}on_stall = \"restart\"\nrestart_tries = 2\n");
    let setup = Setup::new()
        .slot_with("told", &claude("exec sleep 1000", short))
        .slot_with("ended", &claude("exec sleep 1000", &restarts))
        .slot_with(
            "patient",
            &claude("exec sleep 1000", "stall_after = \"off\""),
        );
    let daemon = daemon(&setup);
    let told = status_when(&daemon, "told", "a stall", |status| {
        status["doing"]
            .as_str()
            .is_some_and(|doing| doing.contains("no sign of life"))
    });
    assert_eq!(told["restarts"], 0, "{told}");
    let ended = status_when(&daemon, "ended", "given up", |status| {
        status["state"] == "error"
    });
    assert_eq!(
        (&ended["cause"], &ended["restarts"]),
        (&"stalled".into(), &1.into()),
        "{ended}"
    );
    let log = log_when(&daemon, "told", "TROUBLE   stalled: no sign of life");
    assert_eq!(log.matches("TROUBLE").count(), 1, "told once: {log}");
    assert!(!daemon.log("patient").contains("TROUBLE"));
}

#[test]
fn memory_is_shown_and_too_much_of_it_ends_the_run() {
    // The shell itself holds the text, so it must not become the sleep.
    let hoard = "x=$(head -c 60000000 /dev/zero | tr '\\0' a); sleep 1000; echo \"${#x}\"";
    let limited = format!("{QUICK}max_memory = \"30MB\"\nrestart = \"never\"\n");
    let setup = Setup::new()
        .slot_with("free", &shell(hoard, ""))
        .slot_with("bound", &shell(hoard, &limited));
    let daemon = daemon(&setup);
    let free = status_when(&daemon, "free", "its memory", |status| {
        status["memory"]
            .as_u64()
            .is_some_and(|memory| memory > 60_000_000)
    });
    assert!(free["cpu"].is_number(), "{free}");
    let bound = status_when(&daemon, "bound", "its end", |status| {
        status["cause"] == "over max_memory"
    });
    assert_eq!(bound["state"], "exited", "{bound}");
    assert!(daemon.log("bound").contains("30 MB allowed"));
    assert_eq!(daemon.status("free")["restarts"], 0);
}

fn git(at: &Path, words: &[&str]) {
    let done = Command::new("git")
        .arg("-C")
        .arg(at)
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(words)
        .output()
        .expect("git runs");
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn a_slot_works_in_a_worktree_of_its_own() {
    let keys = shell(
        "pwd; git branch --show-current; exec sleep 1000",
        "worktree = true\nautostart = false",
    );
    let daemon = daemon(&Setup::new().slot_with("tree", &keys));
    let refused = daemon.cmd(&["start", "tree"]).expect(1);
    assert!(
        refused.stderr.contains("needs a git repository"),
        "{refused}"
    );
    let repository = daemon.cwd("tree");
    git(&repository, &["init", "-q"]);
    git(
        &repository,
        &["commit", "-q", "--allow-empty", "-m", "first"],
    );
    daemon.cmd(&["start", "tree"]).expect(0);
    daemon
        .cmd(&[
            "wait",
            "tree",
            "--output",
            "^missiond/tree$",
            "--timeout",
            "50s",
        ])
        .expect(0);
    let status = daemon.status("tree");
    let cwd = status["cwd"].as_str().unwrap_or_default();
    assert!(cwd.ends_with("missiond/worktrees/tree/tree"), "{status}");
    assert!(Path::new(cwd).join(".git").exists(), "{status}");
    until("the directory on the screen", || {
        let screen = daemon.cmd(&["screen", "tree"]).expect(0);
        screen
            .stdout
            .replace('\n', "")
            .contains("worktrees/tree")
            .then_some(())
    });
}

/// The real program: what a slot may do in turns, at rest, without a sign of life, and at the limit of its account.
/// One after the other, since four of them at once are slow.
#[test]
fn limits_hold_on_the_real_program() {
    let keys = |more: &str| format!("autostart = false\n{more}");
    let setup = Setup::new()
        .slot_with("brief", &keys("max_turns = 1"))
        .slot_with("resting", &keys("idle_stop = \"2s\""))
        .slot_with("capped", &keys("on_limit = \"stop\""))
        .slot_with(
            "hasty",
            &keys("stall_after = \"3s\"\non_stall = \"interrupt\""),
        );
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    let limit = "You've hit your session limit · resets 3pm";
    let over = Step::error(400, "invalid_request_error", limit);
    daemon.endpoint.on("too much", vec![over]);
    daemon.endpoint.on("hang", vec![Step::gate("never")]);
    let ends = [
        ("brief", Some("hello"), "max_turns: 1 turns"),
        ("resting", None, "idle_stop: idle for 2s"),
        ("capped", Some("too much"), limit),
    ];
    for (slot, message, why) in ends {
        daemon.cmd(&["start", slot]).expect(0);
        if let Some(message) = message {
            daemon.cmd(&["send", slot, message]);
        }
        let status = until(&format!("the end of {slot}"), || {
            let status = daemon.status(slot);
            (status["state"] == "exited" && status["last_error"].is_string()).then_some(status)
        });
        let told = status["last_error"].as_str().unwrap_or_default();
        assert!(told.contains(why), "{status}");
        assert_eq!(status["restarts"], 0, "{status}");
        let log = daemon.log(slot);
        assert!(log.contains("TROUBLE") && log.contains("stopped   by a limit"));
    }
    assert!(daemon.log("brief").contains("You said: hello"));
    daemon.cmd(&["start", "hasty"]).expect(0);
    let interrupted = daemon.cmd(&["send", "hasty", "hang"]);
    assert_ne!(interrupted.code, 0, "{interrupted}");
    daemon.wait_state("hasty", "idle");
    let log = daemon.log("hasty");
    assert_eq!(log.matches("Esc — it has stalled").count(), 1, "{log}");
    let answer = daemon.cmd(&["send", "hasty", "hello"]).expect(0);
    assert_eq!(answer.text(), "You said: hello");
}
