//! Something that every start needs has run out: memory, terminals, descriptors. What runs goes on, what can't be
//! started says why, and starts when there is enough again.

use super::shells::*;
use crate::support::daemon::{Daemon, missiond};
use crate::support::setup::Setup;
use crate::support::{skip, until};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;

/// A daemon with a shell that echoes lines in slot `a`, and room for sessions.
fn with_a_shell() -> Daemon {
    let daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    daemon
}

/// What the running daemon may have of something from now on; `None` is no bound of its own.
fn bound(daemon: &Daemon, what: Resource, most: Option<u64>) {
    let maximum = getrlimit(what).maximum;
    let current = most.or(maximum);
    let limit = Rlimit { current, maximum };
    prlimit(Pid::from_raw(daemon.pid()), what, limit).expect("a limit");
}

fn names(daemon: &Daemon) -> Vec<String> {
    let sessions = daemon.json(&["sessions"]);
    let sessions = sessions.as_array().expect("an array").iter();
    sessions.map(|one| one["id"].to_string()).collect()
}

#[test]
fn too_little_memory_is_said_before_anything_is_started() {
    let daemon = with_a_shell();
    let spawn = [
        "spawn",
        "--id",
        "one",
        "--",
        "sh",
        "-c",
        "read x; echo said $x; read x",
    ];
    daemon.cmd(&spawn).expect(0);
    bound(&daemon, Resource::As, Some(60_000_000));
    for _ in 0..3 {
        let refused = daemon.cmd(&["spawn", "--id", "two", "--", "cat"]).expect(1);
        assert!(refused.stderr.contains("not enough memory"), "{refused}");
        assert!(refused.stderr.contains("ulimit -v"), "{refused}");
    }
    assert_eq!(names(&daemon), ["\"one\""]);
    assert!(daemon.logged("two.log").is_empty());
    echoes(&daemon, "still here");
    daemon
        .cmd(&["type", "one", "hello", "--quiet", "200ms"])
        .expect(0);
    assert!(daemon.cmd(&["output", "one"]).stdout.contains("said hello"));

    bound(&daemon, Resource::As, None);
    daemon.cmd(&["spawn", "--id", "two", "--", "cat"]).expect(0);
    assert_eq!(names(&daemon), ["\"one\"", "\"two\""]);
}

/// The daemon has a thread that gives memory back to the system. Its shims have none, and programs are not told of it.
#[test]
fn the_settings_of_the_allocator_are_for_the_daemon_alone() {
    let daemon = shells(&["a"], "echo \"found $(env | grep -c MALLOC)\"; cat");
    daemon
        .cmd(&["wait", "a", "--output", "found 0", "--timeout", "50s"])
        .expect(0);
    let threads = |pid: &str| {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
        let names =
            tasks.map(|task| std::fs::read_to_string(task.expect("one").path().join("comm")));
        names.flatten().collect::<Vec<_>>()
    };
    let own = threads(&daemon.pid().to_string());
    assert!(own.iter().any(|name| name.contains("jemalloc")), "{own:?}");
    let shim = threads(&daemon.status("a")["shim_pid"].to_string());
    // One of them writes its recording.
    assert_eq!(shim, ["missiond-shim\n", "missiond-cast\n"]);
}

#[test]
fn what_runs_goes_on_when_no_memory_can_be_had() {
    let daemon = with_a_shell();
    let flood = "while read -r lines; do seq $lines; echo done $lines; done";
    daemon
        .cmd(&["spawn", "--id", "flood", "--", "sh", "-c", flood])
        .expect(0);
    bound(&daemon, Resource::As, Some(60_000_000));
    // Some megabytes, all of which it would keep.
    daemon.cmd(&["type", "flood", "1000000"]).expect(0);
    let wait = [
        "wait",
        "flood",
        "--output",
        "^done 1000000",
        "--timeout",
        "50s",
    ];
    daemon.cmd(&wait).expect(0);
    echoes(&daemon, "still here");
    // No thread can be had for these.
    let searched = daemon.cmd(&["search", "flood", "done"]);
    assert!(
        searched.code == 0 || searched.stderr.contains("no thread"),
        "{searched}"
    );
    assert_eq!(names(&daemon), ["\"flood\""]);
    bound(&daemon, Resource::As, None);
    daemon.cmd(&["search", "flood", "done 26"]).expect(0);
    echoes(&daemon, "and after");
}

/// A daemon in a place of its own with this many pseudo-terminals; `None` where there can't be one.
fn with_few_terminals(root: &Path, most: u32) -> Option<Command> {
    let private = format!(
        "mount -t devpts -o newinstance,ptmxmode=0666,max={most} devpts /dev/pts && \
         mount --bind /dev/pts/ptmx /dev/ptmx"
    );
    let inside = |then: &str| {
        let mut command = Command::new("unshare");
        command.args(["-rm", "sh", "-c", &format!("{private} && {then}")]);
        command
    };
    if !inside("true").status().is_ok_and(|status| status.success()) {
        skip("a machine with few pseudo-terminals is not tried (needs unshare and mount)");
        return None;
    }
    let program = missiond(root);
    let mut command = inside("exec \"$0\" \"$@\"");
    command
        .arg(program.get_program())
        .env_clear()
        .current_dir(root);
    for (name, value) in program.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    Some(command)
}

#[test]
fn too_few_terminals_are_said_and_nothing_is_left() {
    let setup = Setup::new().table("[sessions]");
    let mut daemon = Daemon::start_with(&setup, &["/bin/sh".to_owned()]);
    let Some(program) = with_few_terminals(daemon.root(), 2) else {
        return;
    };
    daemon.crash();
    daemon.again_as(program);
    for id in ["one", "two"] {
        daemon.cmd(&["spawn", "--id", id, "--", "cat"]).expect(0);
    }
    let refused = daemon
        .cmd(&["spawn", "--id", "three", "--", "cat"])
        .expect(1);
    assert!(
        refused.stderr.contains("all pseudo-terminals are in use"),
        "{refused}"
    );
    assert_eq!(names(&daemon), ["\"one\"", "\"two\""]);
    assert!(!daemon.logs().join("three.cast").exists());
    daemon.cmd(&["close", "one"]).expect(0);
    daemon
        .cmd(&["spawn", "--id", "three", "--", "cat"])
        .expect(0);
}

#[test]
fn too_few_descriptors_are_named_as_the_cause() {
    let daemon = with_a_shell();
    daemon.cmd(&["spawn", "--id", "one", "--", "cat"]).expect(0);
    let open = || {
        let files = std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).expect("it lives");
        let numbers = files.flatten().map(|file| file.file_name().into_string());
        let numbers = numbers.filter_map(|name| name.ok()?.parse::<u64>().ok());
        numbers.collect::<std::collections::BTreeSet<u64>>()
    };
    // Numbers of earlier clients fall free.
    let used = until("the last client to go", || {
        let used = open();
        std::thread::sleep(std::time::Duration::from_millis(50));
        (used == open()).then_some(used)
    });
    let free = |count: usize| (0..).filter(|number| !used.contains(number)).nth(count);
    // One for the connection, and none for anything else but those of the reserve.
    bound(&daemon, Resource::Nofile, free(1));
    let refused = daemon.cmd(&["spawn", "--", "cat"]).expect(6);
    assert!(refused.stderr.contains("Too many open files"), "{refused}");
    assert!(refused.stderr.contains("ulimit -n"), "{refused}");
    daemon.cmd(&["sessions"]).expect(0);
    daemon.cmd(&["close", "one"]).expect(0);
    // Not even that.
    bound(&daemon, Resource::Nofile, Some(3));
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let mut command = missiond(daemon.root());
    command.env_remove("MISSIOND_CONFIG").arg("sessions");
    let output = command.output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(124), "{told}");
    let listens = format!(
        "a daemon listens at {} and does not answer",
        socket.display()
    );
    assert!(told.contains(&listens), "{told}");

    bound(&daemon, Resource::Nofile, None);
    echoes(&daemon, "back");
    daemon.cmd(&["spawn", "--", "cat"]).expect(0);
}

/// Programs and listeners take all descriptors but those that are kept for control.
#[test]
fn with_64_files_people_see_and_stop_what_takes_them() {
    let mut daemon = with_a_shell();
    bound(&daemon, Resource::Nofile, Some(64));
    let refused = until("no more sessions to start", || {
        let spawned = daemon.cmd(&["spawn", "--", "cat"]);
        (spawned.code != 0).then_some(spawned)
    });
    assert!(refused.stderr.contains("Too many open files"), "{refused}");
    assert!(refused.stderr.contains("ulimit -n"), "{refused}");
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let listen = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"events\",\"params\":{}}\n";
    // Each has a request under way for as long as it may stay.
    let listener = || {
        let mut stream = UnixStream::connect(&socket).expect("the daemon listens");
        // The daemon may have closed it already.
        let _ = stream.write_all(listen);
        stream
    };
    let mut listeners: Vec<UnixStream> = (0..60).map(|_| listener()).collect();
    let refused = until("no more listeners to be heard", || {
        listeners.push(listener());
        let events = daemon.cmd(&["events"]);
        (events.code != 0).then_some(events)
    });
    let refused = refused.expect(6);
    assert!(refused.stderr.contains("`events` does not"), "{refused}");
    for _ in 0..3 {
        daemon.cmd(&["status"]).expect(0);
        daemon.cmd(&["sessions"]).expect(0);
    }
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", daemon.pid()));
    let limits = limits.expect("it lives");
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let soft = files.and_then(|line| line.split_whitespace().nth(3));
    assert_eq!(soft, Some("64"), "a look at the processes raises no limit");
    until("the status to name the cause", || {
        let status = daemon.cmd(&["status"]).expect(0);
        let is_told = status.stdout.contains("file descriptors run out");
        (is_told && status.stdout.contains("ulimit -n")).then_some(())
    });
    daemon.cmd(&["stop", "a"]).expect(0);
    assert_eq!(daemon.status("a")["state"], "exited");
    daemon.cmd(&["down", "--yes"]).expect(0);
    daemon.ended();
    drop(listeners);
}
