//! What the kernel holds the processes of a session to.

use super::stage::*;
use crate::support::daemon::Daemon;

/// What a line for the shell prints under these flags, and its exit code.
fn limited(daemon: &Daemon, flags: &[&str], line: &str) -> (i32, String) {
    let mut words = vec!["exec", "--yield", "50s"];
    words.extend(flags);
    words.extend(["--", "sh", "-c", line]);
    let done = daemon.cmd(&words);
    (done.code, done.stdout)
}

#[test]
fn a_session_is_held_to_the_limits_that_were_asked_for() {
    let daemon = daemon();
    let files = limited(&daemon, &["--max-files", "64"], "ulimit -n; ulimit -Hn");
    assert_eq!(files, (0, "64\n64\n".to_owned()));
    // 128 and SIGXCPU.
    let cpu = limited(&daemon, &["--max-cpu", "1s"], "while :; do :; done");
    assert_eq!(cpu.0, 152, "{cpu:?}");
    let file = daemon.root().join("large");
    let line = format!(
        "exec dd if=/dev/zero bs=1000 count=2000 of={}",
        file.display()
    );
    // 128 and SIGXFSZ.
    let size = limited(&daemon, &["--max-file-size", "1MB"], &line);
    assert_eq!(size.0, 153, "{size:?}");
    assert_eq!(file.metadata().expect("a file").len(), 1_000_000);
    // The program itself, not what has set its limits.
    let name = limited(&daemon, &["--max-files", "64"], "cat /proc/$$/comm");
    assert_eq!(name, (0, "sh\n".to_owned()));
}

#[test]
fn limits_that_can_hold_nothing_are_refused() {
    let daemon = daemon();
    for (flag, value, why) in [
        ("--max-cpu", "0s", "CPU time"),
        ("--max-files", "15", "at least 16"),
        ("--max-processes", "0", "at least 1"),
        ("--max-file-size", "0", "write a size"),
    ] {
        let refused = daemon.cmd(&["exec", flag, value, "--", "true"]).expect(2);
        assert!(refused.stderr.contains(why), "{flag}: {refused}");
    }
}

#[test]
fn a_request_can_only_be_stricter_than_the_config() {
    let daemon = daemon_with("limits = { files = 64, file_size = \"1MB\" }");
    for (flags, files) in [
        (&[][..], "64\n"),
        (&["--max-files", "32"], "32\n"),
        (&["--max-files", "128"], "64\n"),
    ] {
        let told = limited(&daemon, flags, "ulimit -n");
        assert_eq!(told, (0, files.to_owned()), "{flags:?}");
    }
}
