//! Slots that are plain programs, and what they have written.

use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use missiond::core::cast::{CastKind, Recording};
use std::collections::HashSet;
use std::path::PathBuf;

/// Counts, and says what it reads. Each line is one write, so that the two writers don't mix.
pub const COUNTS_AND_ECHOES: &str = "stty -echo; \
    (i=0; while :; do i=$((i+1)); echo \"tick $i\"; sleep 0.005; done) & \
    while read -r line; do echo \"got $line\"; done";

/// Says what it reads.
pub const ECHOES: &str = "stty -echo; while read -r line; do echo \"got $line\"; done";

/// Slot `a` still hears and answers.
pub fn echoes(daemon: &Daemon, word: &str) {
    daemon.cmd(&["write", "a", &format!("{word}\\r")]).expect(0);
    daemon
        .cmd(&[
            "wait",
            "a",
            "--output",
            &format!("got {word}"),
            "--timeout",
            "50s",
        ])
        .expect(0);
}

/// A daemon with slots that run `script`.
pub fn shells(names: &[&str], script: &str) -> Daemon {
    shells_with(names, "", script)
}

pub fn shells_with(names: &[&str], keys: &str, script: &str) -> Daemon {
    let slot =
        |setup: Setup, name: &&str| setup.slot_with(name, &format!("kind = \"shell\"\n{keys}"));
    let setup = names.iter().fold(Setup::new(), slot);
    let command = ["/bin/sh", "-c", script].map(str::to_owned);
    Daemon::start_with(&setup, &command)
}

/// Everything that a slot's program has written, by its recordings, in order.
pub fn recorded(daemon: &Daemon, slot: &str) -> String {
    let path = log_file(daemon, &format!("{slot}.cast"));
    let mut text = String::new();
    for file in missiond::os::files::with_rotated(&path).expect("a recording") {
        let recording = Recording::read(std::io::BufReader::new(file)).expect("a header");
        let mut events = recording.map(|event| event.expect("a whole event").what);
        // After a rotation the screen is drawn again, which the program did not do.
        let (first, second) = (events.next(), events.next());
        let continues =
            matches!(&second, Some(CastKind::Marker(text)) if text.starts_with("continues "));
        let own = first.filter(|_| !continues);
        for event in own.into_iter().chain(second).chain(events) {
            if let CastKind::Output(output) = event {
                text.push_str(&output);
            }
        }
    }
    text
}

pub fn log_file(daemon: &Daemon, name: &str) -> PathBuf {
    daemon.root().join("logs").join(name)
}

/// The numbers of `tick` lines follow each other, from 1 on; how many there are.
#[track_caller]
pub fn unbroken_ticks(text: &str) -> usize {
    let ticks = text.lines().filter_map(|line| line.strip_prefix("tick "));
    let mut count = 0;
    for tick in ticks {
        count += 1;
        assert_eq!(tick, count.to_string(), "a tick is missing or doubled");
    }
    count
}

/// What was read by the program, each at most once.
#[track_caller]
pub fn got(text: &str) -> HashSet<&str> {
    let mut seen = HashSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("got ")) {
        assert!(seen.insert(line), "{line} was written twice");
    }
    seen
}

/// Moments that differ from run to run; the seed is printed, and `SEED=…` repeats a run.
pub struct Chance(u64);

impl Chance {
    pub fn new() -> Chance {
        let given = std::env::var("SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| u64::from(std::process::id()) << 20 | 1);
        println!("SEED={seed}");
        Chance(seed)
    }

    /// Below `bound`, evenly enough.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// A shell at its prompt ends with the daemon; a command that it waits for is work, and needs a yes.
#[test]
fn down_asks_before_it_ends_a_command_of_a_shell() {
    let setup = Setup::new().slot_with("b", "kind = \"shell\"");
    let command = ["/bin/sh", "-i"].map(str::to_owned);
    let mut daemon = Daemon::start_with(&setup, &command);
    daemon.wait_state("b", "idle");
    assert_eq!(daemon.status("b").get("foreground"), None);
    daemon.cmd(&["write", "b", "sleep 301\\r"]).expect(0);
    crate::support::until("the command in the foreground", || {
        (daemon.status("b")["foreground"] == "sleep").then_some(())
    });
    let shown = daemon.cmd(&["status", "b"]).expect(0);
    assert!(shown.stdout.contains("runs sleep"), "{shown}");
    let refused = daemon.cmd(&["down"]).expect(4);
    let words = "1 slot (b: runs sleep)";
    assert!(refused.stderr.contains(words), "{refused}");
    assert_eq!(daemon.status("b")["foreground"], "sleep");
    daemon.cmd(&["write", "b", "\\x03"]).expect(0);
    crate::support::until("the prompt again", || {
        daemon.status("b").get("foreground").is_none().then_some(())
    });
    daemon.cmd(&["down"]).expect(0);
    daemon.ended();
}

/// What a program that has ended wrote is not what somebody waits for now: neither before its slot runs again, nor then.
#[test]
fn a_wait_for_output_is_for_the_program_that_runs() {
    let once = "[ -e once ] && exec sleep 1000; touch once; echo ready; exec sleep 1000";
    let mut daemon = shells(&["a"], once);
    let wait = |daemon: &Daemon, timeout: &str, code: i32| {
        let wait = ["wait", "a", "--output", "ready", "--timeout", timeout];
        daemon.cmd(&wait).expect(code);
    };
    wait(&daemon, "50s", 0);
    daemon.cmd(&["stop", "a"]).expect(0);
    wait(&daemon, "1s", 124);
    daemon.cmd(&["start", "a"]).expect(0);
    daemon.wait_state("a", "idle");
    wait(&daemon, "1s", 124);
    // The next daemon reads the output of both from the recording.
    daemon.crash();
    daemon.again();
    daemon.wait_state("a", "idle");
    wait(&daemon, "1s", 124);
}
