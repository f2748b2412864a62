//! Directories and sockets of missiond's own are removed, while it runs or while it does not: nothing that lives is
//! lost, and what was removed is there again.

use super::races::Held;
use super::shells::*;
use super::survival::at_a_dialog;
use crate::support::daemon::{Daemon, missiond};
use crate::support::setup::Setup;
use crate::support::{processes, until};
use missiond::lab::rehearsal::Step;
use serde_json::{Value, json};
use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What somebody removes, below the directory of the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// What the session manager removes at the last logout.
    RuntimeHome,
    Runtime,
    ControlSocket,
    ShimSockets,
    State,
    Logs,
    Everything,
}

const ALL: [Lost; 7] = [
    Lost::RuntimeHome,
    Lost::Runtime,
    Lost::ControlSocket,
    Lost::ShimSockets,
    Lost::State,
    Lost::Logs,
    Lost::Everything,
];

impl Lost {
    fn paths(self) -> &'static [&'static str] {
        match self {
            Lost::RuntimeHome => &["run"],
            Lost::Runtime => &["run/missiond"],
            Lost::ControlSocket => &["run/missiond/missiond.sock"],
            Lost::ShimSockets => &["run/missiond/shims"],
            Lost::State => &["state/missiond"],
            Lost::Logs => &["logs"],
            Lost::Everything => &["run/missiond", "state/missiond", "logs"],
        }
    }

    fn remove(self, daemon: &Daemon) {
        for path in self.paths().iter().map(|path| daemon.root().join(path)) {
            let remove = || match path.is_dir() {
                true => fs::remove_dir_all(&path),
                false => fs::remove_file(&path),
            };
            // A daemon that ended has removed its socket; one that runs may write into what is being removed.
            until("it to be removed", || match remove() {
                Err(error) => (error.kind() == ErrorKind::NotFound).then_some(()),
                Ok(()) => Some(()),
            });
        }
    }
}

/// What is there again when nothing is missing any more.
fn needed(daemon: &Daemon, slot: &str) -> Vec<PathBuf> {
    let paths = [
        "run/missiond/missiond.sock".to_owned(),
        format!("run/missiond/shims/missiond.{slot}.sock"),
        "state/missiond/missiond.lock".to_owned(),
        format!("state/missiond/missiond/{slot}.json"),
        format!("logs/{slot}.cast"),
        "logs/.lock".to_owned(),
    ];
    paths.iter().map(|path| daemon.root().join(path)).collect()
}

/// Everything is made again, and how long that took.
#[track_caller]
fn is_made_again(daemon: &Daemon, slot: &str, lost: Lost) -> Duration {
    let begun = Instant::now();
    for path in needed(daemon, slot) {
        let shown = format!("{} after the loss of {lost:?}", path.display());
        until(&shown, || path.symlink_metadata().is_ok().then_some(()));
    }
    begun.elapsed()
}

#[track_caller]
fn is_same_program(daemon: &Daemon, slot: &str, before: &Value, when: &str) {
    let now = daemon.status(slot);
    for key in ["pid", "shim_pid", "session_id"] {
        assert_eq!(now[key], before[key], "{key} {when}: {now}");
    }
}

/// Each loss, while the daemon runs: made again within seconds, told, and after a kill of the daemon the slot is taken
/// up as it was.
#[test]
fn what_is_removed_under_a_daemon_is_made_again_and_told() {
    let mut daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let before = daemon.status("a");
    for lost in ALL {
        let events = daemon.spawn(&["events", "-f"]);
        until("the snapshot", || {
            events.printed().contains('\n').then_some(())
        });
        lost.remove(&daemon);
        let took = is_made_again(&daemon, "a", lost);
        println!("{lost:?}: made again after {took:?}");
        assert!(took < Duration::from_secs(5), "{lost:?} took {took:?}");
        echoes(&daemon, &format!("under-{lost:?}"));
        is_same_program(&daemon, "a", &before, &format!("under {lost:?}"));
        if lost != Lost::ShimSockets {
            until("it to be told", || {
                events
                    .printed()
                    .contains("was removed, and is made again")
                    .then_some(())
            });
            let status = daemon.cmd(&["status"]).expect(0).stdout;
            assert!(
                status.contains("was removed, and is made again"),
                "{status}"
            );
        }
        daemon.cmd(&["reload"]).expect(0);
        let status = daemon.cmd(&["status"]).expect(0).stdout;
        assert!(!status.contains("was removed"), "{status}");

        // What is there now is enough for the next daemon.
        daemon.crash();
        daemon.again();
        is_same_program(&daemon, "a", &before, &format!("after {lost:?}"));
        let screen = daemon.cmd(&["screen", "a"]).expect(0).stdout;
        assert!(screen.contains(&format!("got under-{lost:?}")), "{screen}");
        echoes(&daemon, &format!("after-{lost:?}"));
    }
    // Restarts work too, with all that they need.
    daemon.cmd(&["restart", "a"]).expect(0);
    daemon.wait_state("a", "idle");
    echoes(&daemon, "restarted");
}

/// Each loss while no daemon runs: the next one finds every program, and ends none.
#[test]
fn what_is_removed_with_no_daemon_costs_no_program() {
    let mut daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let before = daemon.status("a");
    for lost in ALL {
        for keep in [false, true] {
            let when = format!("{lost:?}, keep {keep}");
            echoes(&daemon, &format!("before-{lost:?}-{keep}"));
            match keep {
                true => drop(daemon.cmd(&["down", "--keep"]).expect(0)),
                false => daemon.crash(),
            }
            daemon.ended();
            lost.remove(&daemon);
            if lost == Lost::RuntimeHome {
                fs::create_dir(daemon.root().join("run")).expect("a new login");
            }
            daemon.again();
            is_same_program(&daemon, "a", &before, &when);
            is_made_again(&daemon, "a", lost);
            let screen = daemon.cmd(&["screen", "a"]).expect(0).stdout;
            let shown = format!("got before-{lost:?}-{keep}");
            assert!(screen.contains(&shown), "{when}: {screen}");
            echoes(&daemon, &format!("after-{lost:?}-{keep}"));
        }
    }
    let log = daemon.log("a");
    assert!(!log.contains("shim lost"), "{log}");
}

/// A daemon that is started from a place with no runtime directory, such as a cron job, finds the shims of the other.
#[test]
fn a_daemon_with_another_runtime_directory_finds_the_programs() {
    let mut daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let before = daemon.status("a");
    daemon.crash();
    fs::remove_dir_all(daemon.root().join("run")).expect("it is ours");
    // Nothing can be made where it was.
    fs::write(daemon.root().join("run"), "").expect("a file");
    let mut elsewhere = missiond(daemon.root());
    elsewhere.env_remove("XDG_RUNTIME_DIR");
    daemon.again_as(elsewhere);
    is_same_program(&daemon, "a", &before, "without a runtime directory");
    echoes(&daemon, "hello");
}

/// The hooks of a living Claude Code have the socket of the daemon that started it.
#[test]
fn hooks_find_a_daemon_with_another_runtime_directory() {
    let setup = Setup::new()
        .slot("coder")
        .policy("coder", "allow = [\"Bash(mknod *)\"]\n");
    let Some(mut daemon) = Daemon::start(&setup) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let before = daemon.status("coder");
    daemon.crash();
    fs::remove_dir_all(daemon.root().join("run")).expect("it is ours");
    // Nothing can be made where it was.
    fs::write(daemon.root().join("run"), "").expect("a file");
    let mut elsewhere = missiond(daemon.root());
    elsewhere.env_remove("XDG_RUNTIME_DIR");
    daemon.again_as(elsewhere);
    is_same_program(&daemon, "coder", &before, "without a runtime directory");
    let tool = Step::tool("Bash", json!({ "command": "mknod made p" }));
    daemon
        .endpoint
        .on("make it", vec![tool, Step::text("Done.")]);
    daemon.cmd(&["send", "coder", "make it"]).expect(0);
    assert!(daemon.cwd("coder").join("made").exists());
}

/// To open a FIFO in the usual way blocks until somebody writes to it.
#[test]
fn a_fifo_in_place_of_a_file_delays_no_start() {
    let mut daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let before = daemon.status("a");
    daemon.crash();
    let state = daemon.root().join("state/missiond/missiond");
    let put = |file: &Path| {
        fs::create_dir_all(file.parent().expect("a directory")).expect("it is ours");
        let _ = fs::remove_file(file);
        let made = Command::new("mkfifo").arg(file).status();
        assert!(made.expect("mkfifo").success());
    };
    // Positions of events go on from this file: with another in its place nobody knows from where.
    let events = state.join("events.jsonl");
    put(&events);
    let refused = daemon.cmd(&["up"]).expect(1);
    assert!(refused.stderr.contains("not a regular file"), "{refused}");
    fs::remove_file(&events).expect("it is ours");
    let files = [
        state.join("tasks/z.json"),
        state.join("policies.in-force"),
        state.join("a.json"),
        daemon.logs().join("a.events.jsonl"),
    ];
    files.iter().for_each(|file| put(file));
    daemon.again();
    is_same_program(&daemon, "a", &before, "with a FIFO for each file");
    echoes(&daemon, "hello");
}

/// What is written to a file that has no name any more is in no audit.
#[test]
fn no_key_is_pressed_while_a_directory_has_the_place_of_the_audit() {
    let daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let audit = daemon.logs().join("audit.jsonl");
    fs::remove_file(&audit).expect("an audit");
    fs::create_dir(&audit).expect("it is ours");
    let refused = daemon.cmd(&["write", "a", "x"]).expect(4);
    assert!(refused.stderr.contains("audit"), "{refused}");
    until("the status to tell it", || {
        let status = daemon.cmd(&["status"]).expect(0);
        status.stdout.contains("the audit").then_some(())
    });
    fs::remove_dir(&audit).expect("it is ours");
    echoes(&daemon, "hello");
}

/// A shim that lives and can't be reached is left alone, which is told.
#[test]
fn a_program_is_never_taken_for_dead_because_its_shim_is_silent() {
    let mut daemon = shells_with(&["a"], "restart_tries = 1", ECHOES);
    daemon.wait_state("a", "idle");
    let before = daemon.status("a");
    let pid = |key: &str| before[key].as_i64().expect("a pid") as i32;
    let (shim, program) = (pid("shim_pid"), pid("pid"));
    daemon.crash();
    processes::stop(shim);
    Lost::Runtime.remove(&daemon);
    daemon.again();
    daemon.wait_state("a", "error");
    let status = daemon.status("a");
    let why = status["last_error"].as_str().unwrap_or_default();
    assert!(
        why.contains(&format!("pid {shim}")) && why.contains("SIGCONT"),
        "{status}"
    );
    assert!(
        processes::start_of(program).is_some(),
        "it was ended: {status}"
    );
    processes::go_on(shim);
    daemon.cmd(&["start", "a"]).expect(0);
    is_same_program(&daemon, "a", &before, "when it goes on");
    echoes(&daemon, "hello");
}

/// The same loss a second time is told a second time; what can't be made is told once, and only for as long as it lasts.
#[test]
fn a_loss_is_told_each_time_and_a_lasting_one_until_it_is_over() {
    let daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let events = daemon.spawn(&["events", "-f"]);
    until("the snapshot", || {
        events.printed().contains('\n').then_some(())
    });
    let told = |text: &str| events.printed().matches(text).count();
    let logs = daemon.logs();
    for time in 1..=2 {
        fs::remove_dir_all(&logs).expect("it is ours");
        until("it to be told", || {
            (told("logs was removed, and is made again") == time).then_some(())
        });
    }
    let status = || daemon.cmd(&["status"]).expect(0).stdout;
    assert_eq!(status().matches("and is made again").count(), 1);
    fs::remove_dir_all(&logs).expect("it is ours");
    fs::write(&logs, "").expect("a file in its place");
    until("it to be in status", || {
        status().contains("can't be made again").then_some(())
    });
    let next_step = "as soon as that is corrected, missiond makes it again by itself";
    assert!(status().contains(next_step), "{}", status());
    // Scripts find it with each slot, and without any, with what helps; the event has it too.
    for health in [
        &daemon.status("a")["health"],
        &daemon.json(&["stats"])["health"],
    ] {
        let found = health.as_array().expect("a list").iter();
        let found: Vec<_> = found
            .filter(|one| one["condition"] == "directory_lost")
            .collect();
        assert!(!found.is_empty(), "{health}");
        let is_logs = |one: &&&Value| {
            one["text"]
                .as_str()
                .is_some_and(|text| text.contains("logs was removed"))
        };
        assert!(found.iter().any(|one| is_logs(&one)), "{health}");
        assert!(
            found.iter().all(|one| one["remedy"] == next_step),
            "{health}"
        );
    }
    assert!(told(next_step) > 0, "{}", events.printed());
    fs::remove_file(&logs).expect("it is ours");
    fs::create_dir(&logs).expect("by a person");
    until("it to leave status", || {
        (!status().contains("can't be made again")).then_some(())
    });
    until("nothing to be wrong", || {
        daemon.json(&["stats"])["health"].is_null().then_some(())
    });
    let lasting = told("logs was removed, and can't be made again");
    assert_eq!(lasting, 1, "{}", events.printed());
}

/// A client that comes while the socket is missing waits for it; one that finds none says what to do, and it works.
#[test]
fn a_client_finds_its_way_while_the_socket_is_missing() {
    let daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let pid = daemon.pid().to_string();
    for command in [&["status"][..], &["up"], &["sessions"]] {
        Lost::ControlSocket.remove(&daemon);
        let ran = daemon.cmd(command);
        assert_eq!(ran.code, 0, "{command:?}: {ran}");
    }
    // It can't be made while something stands in its place.
    let runtime = daemon.root().join("run/missiond");
    fs::remove_dir_all(&runtime).expect("it is ours");
    fs::write(&runtime, "").expect("a file");
    for command in [&["status"][..], &["up"], &["down"]] {
        let ran = daemon.cmd(command);
        let told =
            ran.stderr.contains(&format!("pid {pid}")) && ran.stderr.contains("missiond.sock");
        assert!(told && ran.code != 0, "{command:?}: {ran}");
        assert!(
            ran.stderr.contains(&format!("{}", runtime.display())),
            "{ran}"
        );
    }
    fs::remove_file(&runtime).expect("it is ours");
    daemon.cmd(&["status"]).expect(0);
    echoes(&daemon, "hello");
    let socket = runtime.join("missiond.sock");
    fs::remove_file(&socket).expect("it is ours");
    // The daemon may have made it again before.
    until("a directory in its place", || {
        let _ = fs::remove_file(&socket);
        fs::create_dir(&socket).ok()
    });
    let ran = daemon.cmd(&["status"]);
    let way = format!("move {} away: it is not a socket", socket.display());
    assert!(ran.code != 0 && ran.stderr.contains(&way), "{ran}");
    fs::remove_dir(&socket).expect("it is ours");
    daemon.cmd(&["down", "--yes"]).expect(0);
}

/// What is written through a link goes where others may write.
#[test]
fn a_link_in_place_of_the_state_directory_is_told() {
    let daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let state = daemon.root().join("state/missiond/missiond");
    let aside = daemon.root().join("aside");
    fs::rename(&state, &aside).expect("it is ours");
    // The daemon may have made it again before.
    until("a link in its place", || {
        let _ = fs::remove_dir_all(&state);
        std::os::unix::fs::symlink(&aside, &state).ok()
    });
    until("it to be told", || {
        let said = daemon.cmd(&["status"]).expect(0).stdout;
        let is_told = said.contains("the state directory") && said.contains("symbolic link");
        is_told.then_some(())
    });
}

/// What is removed between the daemon's first use of it and its first answer is made again too.
#[test]
fn what_is_removed_during_a_start_is_made_again() {
    let mut daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let before = daemon.status("a");
    for lost in [Lost::ControlSocket, Lost::Runtime, Lost::State] {
        let mut held = Held::restart_and_arrive(&mut daemon, "bound");
        lost.remove(&daemon);
        held.let_go();
        is_made_again(&daemon, "a", lost);
        is_same_program(&daemon, "a", &before, "after a start");
        echoes(&daemon, &format!("{lost:?}"));
    }
}

/// A recording is bounded also while there is no daemon, and reads the same afterwards.
#[test]
fn a_recording_is_bounded_with_no_daemon() {
    let script = "stty -echo; while [ ! -e go ]; do sleep 0.05; done; i=0; while [ $i -lt 4000 ]; do i=$((i+1)); \
        echo \"tick $i and some more of it, so that it becomes a lot\"; done; \
        while read -r line; do echo \"got $line\"; done";
    let mut daemon = shells_with(&["a"], "log_size = \"64KiB\"\nlog_files = 3", script);
    daemon.wait_state("a", "idle");
    daemon.crash();
    fs::write(daemon.cwd("a").join("go"), "").expect("a file");
    let cast = daemon.logs().join("a.cast");
    let sizes = || -> Vec<u64> {
        let files = missiond::os::files::with_rotated(&cast).unwrap_or_default();
        files
            .iter()
            .map(|file| file.metadata().expect("a file").len())
            .collect()
    };
    until("the last line", || {
        let text = fs::read_to_string(&cast).unwrap_or_default();
        text.contains("tick 4000 ").then_some(())
    });
    let sizes = sizes();
    println!("the recordings have {sizes:?} bytes");
    assert!(
        sizes.len() == 3 && sizes.iter().all(|size| *size < 128 << 10),
        "{sizes:?}"
    );
    daemon.again();
    let screen = daemon.cmd(&["screen", "a"]).expect(0).stdout;
    let shown = screen.matches("and some more of it").count();
    assert!(screen.contains("tick 4000 ") && shown > 30, "{screen}");
    echoes(&daemon, "hello");
}

/// The slots of a config are not those of another config that has the same name.
#[test]
fn programs_of_another_config_are_not_adopted() {
    let mut daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let before = daemon.status("a");
    daemon.cmd(&["down", "--keep"]).expect(0);
    daemon.ended();
    let (own, other) = (daemon.config(), daemon.root().join("other.toml"));
    fs::copy(&own, &other).expect("a config");
    let other = other.display().to_string();
    let refused = daemon.cmd(&["up", "-c", &other]).expect(4).stderr;
    for words in [
        "slots of another config",
        "a (shim",
        &own.display().to_string(),
        "`name`",
    ] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    daemon.again();
    is_same_program(&daemon, "a", &before, "under its own config");
    // A config that was moved is the same one.
    daemon.cmd(&["down", "--keep"]).expect(0);
    daemon.ended();
    fs::rename(&own, &other).expect("it is moved");
    daemon.cmd(&["up", "-c", &other]).expect(0);
    let status = daemon.json(&["status", "a", "-c", &other]);
    assert_eq!(status[0]["pid"], before["pid"], "{status}");
    daemon.cmd(&["down", "--yes", "-c", &other]).expect(0);
}

/// The slots of a config do not go on with the conversations that another config of the same name has left.
#[test]
fn conversations_of_another_config_are_not_continued() {
    let command = [env!("CARGO_BIN_EXE_missiond"), "stand-in"].map(str::to_owned);
    let mut daemon = Daemon::start_with(&Setup::new().slot("coder"), &command);
    daemon.wait_state("coder", "idle");
    daemon.cmd(&["send", "coder", "a secret"]).expect(0);
    let down = |daemon: &mut Daemon| {
        daemon.cmd(&["down", "--yes"]).expect(0);
        daemon.ended();
    };
    down(&mut daemon);
    let (own, other) = (daemon.config(), daemon.root().join("other.toml"));
    let text = fs::read_to_string(&own).expect("a config");
    fs::write(&other, &text).expect("a config");
    let other = other.display().to_string();
    let refused = daemon.cmd(&["up", "-c", &other]).expect(4).stderr;
    for words in ["coder", &own.display().to_string(), "`name`", &other] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    // The refusal has taken nothing.
    daemon.again();
    daemon.wait_state("coder", "idle");
    let told = daemon.cmd(&["history", "coder"]).expect(0).stdout;
    assert!(told.contains("a secret"), "{told}");
    down(&mut daemon);
    // With a name of its own it has a state of its own.
    let named = text.replacen("[daemon]", "[daemon]\nname = \"other\"", 1);
    assert_ne!(named, text);
    fs::write(&other, &named).expect("a config");
    daemon.cmd(&["up", "-c", &other]).expect(0);
    let told = daemon.cmd(&["history", "coder", "-c", &other]);
    assert!(!told.stdout.contains("a secret"), "{told}");
    daemon.cmd(&["down", "--yes", "-c", &other]).expect(0);
    // A config that was moved is the same one.
    fs::write(&other, &text).expect("a config");
    fs::remove_file(&own).expect("it is moved");
    daemon.cmd(&["up", "-c", &other]).expect(0);
    let told = daemon
        .cmd(&["history", "coder", "-c", &other])
        .expect(0)
        .stdout;
    assert!(told.contains("a secret"), "{told}");
    daemon.cmd(&["down", "--yes", "-c", &other]).expect(0);
}

/// The same for the real Claude Code: while it rests, at a dialog, while it starts and while no daemon runs.
#[test]
fn claude_code_goes_on_when_all_directories_are_removed() {
    let Some(mut daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    // While it starts.
    Lost::Everything.remove(&daemon);
    is_made_again(&daemon, "coder", Lost::Everything);
    let made = at_a_dialog(&daemon);
    let before = daemon.status("coder");
    for lost in [Lost::RuntimeHome, Lost::Everything] {
        lost.remove(&daemon);
        is_made_again(&daemon, "coder", lost);
        is_same_program(&daemon, "coder", &before, "at a dialog");
        daemon.crash();
        daemon.again();
        daemon.wait_state("coder", "confirming");
        daemon.crash();
        lost.remove(&daemon);
        fs::create_dir_all(daemon.root().join("run")).expect("a new login");
        daemon.again();
        daemon.wait_state("coder", "confirming");
        is_same_program(&daemon, "coder", &before, "with no daemon");
        let asked = |status: &Value| status["dialog"]["input"]["command"].clone();
        let now = daemon.status("coder");
        assert_eq!(asked(&now), asked(&before), "{lost:?}: {now}");
    }
    assert!(!made.exists());
    daemon.cmd(&["confirm", "coder", "yes"]).expect(0);
    daemon.wait_state("coder", "idle");
    assert_eq!(fs::read_to_string(&made).expect("the tool ran"), "once\n");
    let answer = daemon.cmd(&["send", "coder", "hello"]).expect(0);
    assert_eq!(answer.text(), "You said: hello");
    // Its hooks go on too: a person is asked as before.
    Lost::State.remove(&daemon);
    is_made_again(&daemon, "coder", Lost::State);
    fs::remove_file(&made).expect("it is ours");
    at_a_dialog(&daemon);
    let asked = daemon.status("coder")["dialog"]["text"].clone();
    let by_hook = |text: &str| text.contains("Hook PreToolUse:Bash requires confirmation");
    assert!(asked.as_str().is_some_and(by_hook), "{asked}");
    daemon.cmd(&["confirm", "coder", "no"]).expect(0);
    daemon.cmd(&["restart", "coder"]).expect(0);
    daemon.wait_state("coder", "idle");
    let now = daemon.status("coder");
    assert_eq!(now["gate"], "hook", "{now}");
    assert_eq!(now["session_id"], before["session_id"], "{now}");
    daemon.cmd(&["send", "coder", "again"]).expect(0);
}

/// The daemon's own log is on a full disk, or its reader has gone: each line is lost, and nothing else is.
#[test]
fn a_daemon_whose_own_log_takes_nothing_goes_on() {
    let mut daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    daemon.crash();
    let log = daemon.root().join("daemon.stderr");
    fs::remove_file(&log).expect("it is ours");
    std::os::unix::fs::symlink("/dev/full", &log).expect("a link");
    daemon.again();
    // The daemon warns of it in its log.
    fs::remove_dir_all(daemon.logs()).expect("it is ours");
    until("it to be told", || {
        let said = daemon.cmd(&["status"]).expect(0).stdout;
        said.contains("logs was removed, and is made again")
            .then_some(())
    });
    for command in ["stop", "start"] {
        daemon.cmd(&[command, "a"]).expect(0);
    }
    daemon.wait_state("a", "idle");
}

/// A link on the way to the state directory leads elsewhere by now: what a start would refuse is not made there either.
#[test]
fn state_is_not_made_again_where_others_can_write() {
    let daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let at = |name: &str| daemon.root().join(name);
    fs::rename(at("state"), at("old")).expect("it is ours");
    fs::create_dir(at("open")).expect("a directory");
    fs::set_permissions(at("open"), Permissions::from_mode(0o777)).expect("it is ours");
    symlink(at("open"), at("state")).expect("a link");
    fs::remove_dir_all(at("old")).expect("it is ours");
    let status = until("it to be told", || {
        let status = daemon.cmd(&["status"]).expect(0).stdout;
        status.contains("can't be made again").then_some(status)
    });
    assert!(status.contains("the state directory"), "{status}");
    let stopped = daemon.cmd(&["stop", "a"]).expect(1);
    assert!(!stopped.stderr.contains("make room"), "{stopped}");
    assert!(stopped.stderr.contains("missiond status"), "{stopped}");
    assert_eq!(fs::read_dir(at("open")).expect("a directory").count(), 0);
    // In a place of its own all comes back.
    fs::remove_file(at("state")).expect("a link");
    for file in ["a.json", "tasks"] {
        let path = at("state/missiond/missiond").join(file);
        until(file, || path.exists().then_some(()));
    }
    until("nothing to be missing", || {
        let status = daemon.cmd(&["status"]).expect(0).stdout;
        (!status.contains("can't be made again")).then_some(())
    });
}

#[test]
fn what_was_in_the_state_directory_is_made_again_and_told() {
    let daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let state = daemon.root().join("state/missiond/missiond");
    let status = daemon.cmd(&["status"]).expect(0).stdout;
    assert!(!status.contains("was removed"), "{status}");
    for entry in fs::read_dir(&state).expect("a directory").flatten() {
        let path = entry.path();
        let removed = match path.is_dir() {
            true => fs::remove_dir_all(&path),
            false => fs::remove_file(&path),
        };
        removed.expect("it is ours");
    }
    until("it to be told", || {
        let status = daemon.cmd(&["status"]).expect(0).stdout;
        let is_told = status.contains("what was in the state directory");
        (is_told && status.contains("was removed, and is made again")).then_some(())
    });
    until("its file", || state.join("a.json").exists().then_some(()));
}

#[test]
fn a_send_names_what_is_in_the_way_of_the_socket_as_a_status_does() {
    let daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let run = daemon.root().join("run");
    fs::rename(&run, daemon.root().join("moved")).expect("it is ours");
    fs::write(&run, "").expect("a file");
    let sent = daemon.cmd(&["send", "a", "hello"]);
    let status = daemon.cmd(&["status"]);
    let pid = format!("a daemon runs, pid {},", daemon.pid());
    assert!(status.stderr.contains(&pid), "{status}");
    assert!(sent.stderr.contains(&status.stderr), "{sent}{status}");
    assert_eq!(sent.code, status.code);
    fs::remove_file(&run).expect("it is ours");
    fs::create_dir(&run).expect("a directory");
    fs::set_permissions(&run, Permissions::from_mode(0o700)).expect("it is ours");
    until("the daemon to listen again", || {
        (daemon.cmd(&["status"]).code == 0).then_some(())
    });
}
