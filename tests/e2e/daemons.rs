//! Which daemon answers, and what is said when none does. The slots are plain shells.

use crate::support::daemon::{Daemon, missiond};
use crate::support::run::Running;
use crate::support::setup::Setup;
use crate::support::until;

fn shells() -> Daemon {
    let setup = Setup::new().slot_with("shell", "kind = \"shell\"");
    let daemon = Daemon::start_with(&setup, &["/bin/sh".to_owned()]);
    daemon.wait_state("shell", "idle");
    daemon
}

#[test]
fn one_daemon_answers_and_says_what_is_wrong() {
    let mut daemon = shells();
    let root = daemon.config().parent().expect("a directory").to_owned();

    for line in [
        vec!["send", "nobody", "hello"],
        vec!["wait", "nobody", "--for", "idle"],
        vec!["screen", "nobody"],
    ] {
        let unknown = daemon.cmd(&line).expect(2);
        assert!(unknown.stderr.contains("nobody"), "{unknown}");
    }
    let waited = daemon.cmd(&["wait", "shell", "--for", "confirming", "--timeout", "200ms"]);
    assert_eq!(waited.code, 124, "{waited}");

    let mut second = missiond(&root);
    second.arg("run");
    let second = Running::start(second, "run".to_owned(), "").end();
    assert_ne!(second.code, 0, "{second}");
    assert!(!second.stderr.is_empty(), "{second}");
    daemon.cmd(&["status"]).expect(0);

    daemon
        .cmd(&["write", "shell", "echo a-$((6*7))-b\\r"])
        .expect(0);
    daemon
        .cmd(&["wait", "shell", "--output", "a-42-b", "--timeout", "20s"])
        .expect(0);

    daemon.cmd(&["down"]).expect(0);
    until("the end of the daemon", || {
        (daemon.cmd(&["status"]).code == 3).then_some(())
    });
    let gone = daemon.cmd(&["send", "shell", "hello"]).expect(3);
    assert!(gone.stderr.contains("missiond"), "{gone}");
    daemon.cmd(&["logs", "shell"]).expect(0);
    daemon.again();
    assert_eq!(daemon.status("shell")["slot"], "shell");
}

#[test]
fn a_slot_outlives_a_crash_of_its_daemon() {
    let mut daemon = shells();
    daemon
        .cmd(&["write", "shell", "kept=$((40+2)); echo set-$kept\\r"])
        .expect(0);
    daemon
        .cmd(&["wait", "shell", "--output", "set-42", "--timeout", "20s"])
        .expect(0);
    let before = daemon.status("shell")["pid"].clone();
    daemon.crash();
    daemon.again();
    assert_eq!(daemon.status("shell")["pid"], before);
    daemon
        .cmd(&["write", "shell", "echo still-$kept\\r"])
        .expect(0);
    daemon
        .cmd(&["wait", "shell", "--output", "still-42", "--timeout", "20s"])
        .expect(0);
}
