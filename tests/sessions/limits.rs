//! What the kernel holds the processes of a session to.

use super::stage::*;
use crate::support::daemon::Daemon;
use crate::support::program::program_at;
use crate::support::run::{Output, Running};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

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

/// A user without a name or a process: the limit counts all processes of a user, and does not apply to root.
const NOBODY_ELSE: u32 = 61_437;

/// A home for a user who has nothing else, with the program in it.
struct OtherUser {
    root: tempfile::TempDir,
    program: PathBuf,
}

impl OtherUser {
    fn new() -> OtherUser {
        let root = tempfile::Builder::new().prefix("md").tempdir();
        let root = root.expect("a directory");
        let program = root.path().join("missiond");
        let mut install = Command::new("install");
        let source = env!("CARGO_BIN_EXE_missiond");
        let installed = install.args(["-m", "755", source]).arg(&program).status();
        assert!(installed.is_ok_and(|status| status.success()));
        for directory in ["home", "run", "state"] {
            let directory = root.path().join(directory);
            std::fs::create_dir(&directory).expect("a directory");
            own(&directory);
        }
        own(root.path());
        let config = root.path().join("slots.toml");
        std::fs::write(&config, "[sessions]\n").expect("a file");
        own(&config);
        OtherUser { root, program }
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = program_at(&self.program, self.root.path());
        command.args(words).current_dir(self.root.path());
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY_ELSE).gid(NOBODY_ELSE);
        }
        Running::start(command, words.join(" "), "").end()
    }
}

fn own(path: &Path) {
    let private = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(path, private).expect("it is ours");
    if rustix::process::geteuid().is_root() {
        chown(path, Some(NOBODY_ELSE), Some(NOBODY_ELSE)).expect("root gives it away");
    }
}

impl Drop for OtherUser {
    fn drop(&mut self) {
        self.run(&["down", "-q", "--yes"]);
    }
}

/// The kernel refuses the program another process, and the program sees that.
#[test]
fn a_session_can_make_no_more_processes_than_it_may() {
    let user = OtherUser::new();
    user.run(&["up"]).expect(0);
    let forks = |flags: &[&str]| {
        let exec = ["exec", "--yield", "50s"];
        let line = ["--", "sh", "-c", "sleep 0 && echo it forks"];
        user.run(&[&exec[..], flags, &line].concat())
    };
    // The daemon and its threads are more than one already.
    for _ in 0..2 {
        let held = forks(&["--max-processes", "1"]);
        let said = format!("{}{}", held.stdout, held.stderr).to_lowercase();
        assert!(held.code != 0 && said.contains("fork"), "{held}");
        assert!(!said.contains("it forks"), "{held}");
        // It is a limit of that session alone.
        assert_eq!(forks(&[]).expect(0).text(), "it forks");
        assert_eq!(
            forks(&["--max-processes", "100000"]).expect(0).text(),
            "it forks"
        );
    }
}
