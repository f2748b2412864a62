//! A program that writes without a pause, and never anything that is worth reading.

use super::shells::{log_file, shells};
use crate::support::daemon::Daemon;
use crate::support::until;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Most of the time is that of the command's own start, on a loaded machine; a daemon that is deaf never answers.
const SOON: Duration = Duration::from_secs(10);

/// Rows without end, screens that are cleared again and again, questions, and strings that are never ended.
const FLOODS: &str = r#"case "$PWD" in
    */calm) exec cat;;
    */rows) exec yes "$(printf 'x\033[65535b')";;
    */clears) exec yes "$(printf 'x\033[2J\033#8\033[?1049h\033[?1049l\033c')";;
    */asks) exec yes "$(printf '\033[c\033[6n\033[>q\033[21t\033]52;c;?\007\033]11;?\007')";;
    */string) printf '\033]0;'; exec yes title;;
esac"#;

/// Runs the command, which is answered in time.
#[track_caller]
fn answers_soon(daemon: &Daemon, command: &[&str]) {
    let began = Instant::now();
    daemon.cmd(command).expect(0);
    let took = began.elapsed();
    assert!(took < SOON, "{command:?} took {took:?}");
}

#[test]
fn others_are_answered_while_programs_flood_their_terminals() {
    let floods = ["rows", "clears", "asks", "string"];
    let daemon = shells(&["calm", "rows", "clears", "asks", "string"], FLOODS);
    for _ in 0..3 {
        for slot in floods {
            for command in [
                ["status", "calm"],
                ["screen", "calm"],
                ["screen", slot],
                ["status", slot],
            ] {
                answers_soon(&daemon, &command);
            }
        }
    }
    // A stop does not wait behind what is still unread.
    daemon.cmd(&["stop", "--all"]).expect(0);
    for slot in floods {
        let log = daemon.log(slot);
        assert!(!log.contains("the shim is lost"), "{log}");
    }
}

/// What was written while there was no daemon, nobody held back, and it takes long to read.
#[test]
fn a_daemon_that_has_much_to_catch_up_with_is_not_deaf() {
    let mut daemon = shells(&["rows", "clears"], FLOODS);
    for slot in ["rows", "clears"] {
        until(&format!("{slot} to be started"), || {
            daemon.log(slot).contains("  started ").then_some(())
        });
    }
    daemon.crash();
    for slot in ["rows", "clears"] {
        grows_to(&daemon, slot, 4 << 20);
    }
    daemon.again();
    for slot in ["rows", "clears"] {
        answers_soon(&daemon, &["status", slot]);
        answers_soon(&daemon, &["stop", slot]);
        // The shim itself has said how the program ended.
        let log = daemon.log(slot);
        assert!(!log.contains("does not answer"), "{log}");
    }
}

fn grows_to(daemon: &Daemon, slot: &str, bytes: u64) {
    let recording = log_file(daemon, &format!("{slot}.cast"));
    until(&format!("{slot} to have written {bytes} bytes"), || {
        let length = std::fs::metadata(&recording).ok()?.len();
        (length > bytes).then_some(())
    });
}

/// A time limit is kept, though there is always more output to read.
#[test]
fn a_session_that_floods_its_terminal_ends_at_its_time() {
    let daemon = shells(&["calm"], FLOODS);
    let flood = r#"exec yes "$(printf 'x\033[65535b')""#;
    let spawn = [
        "spawn",
        "--id",
        "flood",
        "--timeout",
        "2s",
        "--",
        "sh",
        "-c",
        flood,
    ];
    daemon.cmd(&spawn).expect(0);
    daemon
        .cmd(&["wait", "flood", "--exit", "--timeout", "50s"])
        .expect(0);
    let info = daemon.json(&["info", "flood"]);
    assert!(info.to_string().contains("timed out after 2s"), "{info}");
}

/// Clients that ask for much at once and never read it: what is at work for them at a time has a bound.
#[test]
fn searches_and_output_for_clients_who_do_not_read_fill_no_memory() {
    let daemon = shells(&["calm"], FLOODS);
    let lines = "seq 1 600000; exec sleep 1000";
    let spawn = ["spawn", "--id", "big", "--", "sh", "-c", lines];
    daemon.cmd(&spawn).expect(0);
    let all = ["wait", "big", "--output", "^600000", "--timeout", "50s"];
    daemon.cmd(&all).expect(0);
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let client = |method: &str| {
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"slot":"big"{}}}}}"#,
            if method == "search" {
                r#","pattern":".""#
            } else {
                ""
            }
        );
        let mut stream = UnixStream::connect(&socket).expect("the daemon listens");
        let requests = format!("{request}\n").repeat(20);
        stream.write_all(requests.as_bytes()).expect("it reads");
        stream
    };
    let searching: Vec<UnixStream> = (0..10).map(|_| client("search")).collect();
    let reading: Vec<UnixStream> = (0..40).map(|_| client("output")).collect();
    // A person's own requests go on meanwhile, also one that has to wait for its turn.
    daemon.cmd(&["status"]).expect(0);
    let found = daemon.cmd(&["search", "big", "^599999$"]).expect(0);
    assert!(found.stdout.contains("599999"), "{found}");
    daemon.cmd(&["stop", "calm"]).expect(0);
    drop((searching, reading));
    daemon.cmd(&["screen", "big", "-n", "50"]).expect(0);
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid()));
    let status = status.expect("it lives");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|line| line.trim().strip_suffix(" kB"));
    let peak: u64 = peak.and_then(|kb| kb.parse().ok()).expect("a number");
    // Without a bound it was more than a gigabyte.
    assert!(peak < 400 << 10, "{peak} kB");
}
