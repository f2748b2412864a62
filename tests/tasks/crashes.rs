//! A slot or the daemon dies: nothing is lost, nothing runs twice.

use super::words::{asked, gated, once, submit, task, times_asked, two_coders};
use crate::support::processes;

#[test]
fn a_slot_dies_under_its_task() {
    let Some(daemon) = two_coders() else { return };
    gated(&daemon, "fatal");
    let kill = |slot: &str| {
        let pid = daemon.status(slot)["pid"].as_i64().expect("it runs");
        processes::kill(i32::try_from(pid).expect("a pid"));
    };
    let fails = submit(&daemon, &["a", "fatal"]);
    asked(&daemon, "fatal");
    kill("a");
    let failed = daemon.cmd(&["task", &fails, "--wait"]).expect(1);
    assert!(failed.stderr.contains("the program ended"), "{failed}");

    gated(&daemon, "again");
    let retried = submit(&daemon, &["--role", "coder", "--retries", "1", "again"]);
    asked(&daemon, "again");
    let slot = once(&daemon, &retried, "running")["slot"].clone();
    kill(slot.as_str().expect("a slot has it"));
    daemon.endpoint.open("again");
    let done = daemon
        .cmd(&["task", &retried, "--wait", "--json"])
        .expect(0)
        .json();
    assert_eq!(
        (&done["answer"], &done["attempts"]),
        (&"again done".into(), &2.into())
    );
    assert_eq!(times_asked(&daemon, "fatal"), 1);
}

#[test]
fn the_daemon_dies_while_tasks_wait_and_run() {
    let Some(mut daemon) = two_coders() else {
        return;
    };
    gated(&daemon, "long");
    gated(&daemon, "short");
    let long = submit(&daemon, &["a", "long"]);
    let short = submit(&daemon, &["b", "short"]);
    let waiting = submit(&daemon, &["a", "later"]);
    asked(&daemon, "long");
    asked(&daemon, "short");
    daemon.crash();
    // One turn ends while nobody looks, the other goes on after the daemon is back.
    daemon.endpoint.open("short");
    daemon.again();
    let found = once(&daemon, &short, "done");
    assert_eq!(found["answer"], "short done", "{found}");
    assert_eq!(task(&daemon, &long)["state"], "running");
    assert_eq!(task(&daemon, &waiting)["state"], "queued");
    daemon.endpoint.open("long");
    assert_eq!(once(&daemon, &long, "done")["answer"], "long done");
    let later = once(&daemon, &waiting, "done");
    assert_eq!(later["answer"], "You said: later", "{later}");
    for prompt in ["long", "short", "later"] {
        assert_eq!(times_asked(&daemon, prompt), 1, "{prompt}");
    }
    ended_in_order(&mut daemon);
}

/// `down` ends what runs with its cause and keeps what waits.
fn ended_in_order(daemon: &mut crate::support::daemon::Daemon) {
    gated(daemon, "cut");
    let cut = submit(daemon, &["a", "cut"]);
    let kept = submit(daemon, &["a", "kept"]);
    asked(daemon, "cut");
    daemon.cmd(&["down", "--yes"]).expect(0);
    daemon.ended();
    daemon.again();
    let cut = task(daemon, &cut);
    assert_eq!(cut["state"], "failed", "{cut}");
    assert!(
        cut["error"]
            .as_str()
            .is_some_and(|why| why.contains("stopped")),
        "{cut}"
    );
    assert_eq!(once(daemon, &kept, "done")["answer"], "You said: kept");
    assert_eq!(times_asked(daemon, "cut"), 1);
}
