//! `missiond task run`: commands side by side, over sessions.

use crate::support::daemon::{Daemon, missiond};
use crate::support::processes;
use crate::support::run::{Output, Running};
use crate::support::setup::Setup;
use crate::support::until;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;

fn daemon() -> Daemon {
    let setup = Setup::new().slot_with("coder", "autostart = false");
    Daemon::start_with(&setup, &["/bin/sh".to_owned()])
}

fn start(daemon: &Daemon, text: &str, arguments: &[&str]) -> Running {
    fs::write(daemon.root().join("tasks.toml"), text).expect("a file");
    let arguments = [&["tasks", "run", "tasks.toml"], arguments].concat();
    daemon.spawn(&arguments)
}

fn run(daemon: &Daemon, text: &str, arguments: &[&str]) -> Output {
    start(daemon, text, arguments).end()
}

/// Nothing is left of it in the daemon.
fn nothing_is_left(daemon: &Daemon) {
    assert_eq!(daemon.json(&["sessions"]), serde_json::json!([]));
}

#[test]
fn tasks_run_side_by_side_and_a_failure_hides_nothing() {
    let daemon = daemon();
    fs::create_dir(daemon.root().join("sub")).expect("a directory");
    let text = r#"
[[task]]
name = "fails"
commands = ["echo one; exit 3", "echo never"]

[[task]]
name = "needs-it"
commands = "true"
needs = ["fails"]

[[task]]
name = "works"
commands = ["echo $WHO in $(pwd)", "echo two"]
cwd = "sub"
env = { WHO = "me" }

[[task]]
name = "lost"
commands = "true"
cwd = "/no/such/place"

[[task]]
name = "late"
commands = "echo begun; sleep 300"
timeout = "5s"

# These two wait for each other: they only end if they run at the same time.
[[task]]
name = "left"
commands = "mkfifo pipe; echo hello > pipe"

[[task]]
name = "right"
commands = "until [ -p pipe ]; do sleep 0.02; done; cat pipe"
"#;
    let ended = run(&daemon, text, &["--json", "--jobs", "7"]).expect(1);
    // One object says everything.
    assert_eq!(ended.stderr, "");
    let ended = ended.json();
    let all = &ended["results"];
    let counted = (&ended["success"], &ended["failed"], &ended["skipped"]);
    assert_eq!(counted, (&false.into(), &3.into(), &1.into()), "{ended}");
    assert_eq!(all["fails"]["exit_code"], 3, "{all}");
    assert_eq!(all["needs-it"]["skipped"], true, "{all}");
    assert_eq!(all["fails"]["success"], false);
    assert!(
        all["fails"]["output"]
            .as_str()
            .is_some_and(|text| text.contains("one"))
    );
    let skipped = all["needs-it"]["error"].as_str().expect("a reason");
    assert!(skipped.contains("needs `fails`"), "{skipped}");
    assert_eq!(all["works"]["success"], true, "{all}");
    let output = all["works"]["output"].as_str().expect("text");
    let sub = daemon.root().join("sub");
    assert!(
        output.contains(&format!("me in {}", sub.display())),
        "{output}"
    );
    assert!(output.contains("two"), "{output}");
    assert!(
        all["lost"]["error"]
            .as_str()
            .is_some_and(|why| why.contains("/no/such/place"))
    );
    assert_eq!(all["late"]["error"], "not done within 5s", "{all}");
    assert!(
        all["late"]["output"]
            .as_str()
            .is_some_and(|text| text.contains("begun"))
    );
    assert_eq!(all["right"]["success"], true, "{all}");
    assert_eq!(
        all["right"]["output"].as_str().map(str::trim),
        Some("hello")
    );
    assert!(
        all["late"]["duration_ms"]
            .as_u64()
            .is_some_and(|ms| ms >= 5000)
    );
    nothing_is_left(&daemon);

    let shown = run(&daemon, text, &["--jobs", "7"]).expect(1);
    assert!(shown.stdout.contains("needs-it  skipped"), "{shown}");
    assert!(shown.stderr.contains("fails: started"), "{shown}");
    assert!(
        shown
            .stderr
            .contains("3 of 7 tasks failed, 1 more were not done"),
        "{shown}"
    );
}

#[test]
fn retries_a_limit_and_the_first_failure() {
    let daemon = daemon();
    let twice = r#"
jobs = 1
[[task]]
name = "second-time"
commands = "if [ -e tried ]; then exit 0; fi; touch tried; exit 1"
retries = 1
[[task]]
name = "alone"
commands = "true"
"#;
    run(&daemon, twice, &[]).expect(0);
    let fast = r#"
[[task]]
name = "long"
commands = "touch begun; sleep 300"
[[task]]
name = "fails"
commands = "until [ -e begun ]; do sleep 0.02; done; exit 1"
[[task]]
name = "never"
commands = "touch never"
"#;
    let ended = run(&daemon, fast, &["--fail-fast", "--jobs", "2", "--json"]).expect(1);
    let ended = ended.json();
    let all = &ended["results"];
    assert_eq!(all["long"]["error"], "stopped before its end", "{all}");
    assert_eq!(
        all["never"]["error"], "not started: `fails` failed",
        "{all}"
    );
    assert!(!daemon.root().join("never").exists());
    nothing_is_left(&daemon);
    let stdin = daemon
        .cmd_with_input(&["tasks", "run", "-", "--json"], twice)
        .expect(0);
    assert_eq!(stdin.json()["results"]["alone"]["success"], true, "{stdin}");
}

const ENDLESS: &str = "\
[[task]]
name = \"endless\"
commands = \"echo $$ > pid.new; mv pid.new pid; sleep 300\"
[[task]]
name = \"after\"
commands = \"true\"
needs = [\"endless\"]
";

fn pid_of_endless(daemon: &Daemon) -> Pid {
    let file = daemon.root().join("pid");
    let pid = until("the command to run", || fs::read_to_string(&file).ok());
    fs::remove_file(file).expect("a file");
    pid.trim()
        .parse()
        .ok()
        .and_then(Pid::from_raw)
        .expect("a pid")
}

fn until_gone(pid: Pid) {
    until("the command to end", || {
        rustix::process::test_kill_process(pid)
            .is_err()
            .then_some(())
    });
}

#[test]
fn an_interrupt_or_a_sudden_end_leaves_nothing_running() {
    let daemon = daemon();
    let running = start(&daemon, ENDLESS, &["--json"]);
    let command = pid_of_endless(&daemon);
    let own = Pid::from_raw(running.pid().cast_signed()).expect("a pid");
    kill_process(own, Signal::INT).expect("it runs");
    let ended = running.end().expect(1);
    let why = ended.json()["error"].to_string();
    assert!(why.contains("interrupted: 2 of 2 tasks"), "{ended}");
    assert_eq!(
        ended.json()["results"]["after"]["error"],
        "not started: interrupted",
        "{ended}"
    );
    until_gone(command);
    nothing_is_left(&daemon);

    let running = start(&daemon, ENDLESS, &[]);
    let command = pid_of_endless(&daemon);
    processes::kill(running.pid().cast_signed());
    until_gone(command);
    drop(running);
}

#[test]
fn faults_in_the_file_are_shown_before_anything_runs() {
    let daemon = daemon();
    let circle = "\
[[task]]
name = \"a\"
commands = \"touch ran\"
needs = [\"b\"]
[[task]]
name = \"b\"
commands = \"touch ran\"
needs = [\"a\"]
";
    let ended = run(&daemon, circle, &[]).expect(2);
    assert!(ended.stderr.contains("a -> b -> a"), "{ended}");
    assert!(ended.stderr.contains("tasks.toml:8:10"), "{ended}");
    assert!(!daemon.root().join("ran").exists());
    daemon.cmd(&["tasks", "run", "no-such-file.toml"]).expect(2);
    daemon.cmd(&["tasks", "run"]).expect(2);
    daemon
        .cmd(&["tasks", "run", "tasks.toml", "--jobs", "0"])
        .expect(2);
    let unknown = "[[task]]\nname = \"x\"\nprompt = \"hello\"\nrole = \"nobody\"\n";
    let ended = run(&daemon, unknown, &["--json"]).expect(1);
    let why = ended.json()["results"]["x"]["error"].clone();
    assert!(
        why.as_str()
            .is_some_and(|why| why.contains("no slot has the role `nobody`")),
        "{why}"
    );

    // Where the daemon that is named is not there, there is one failure, and its own exit code.
    let elsewhere = tempfile::tempdir().expect("a directory");
    fs::write(elsewhere.path().join("tasks.toml"), ENDLESS).expect("a file");
    let mut command = missiond(elsewhere.path());
    command.env_remove("MISSIOND_CONFIG").args([
        "tasks",
        "run",
        "tasks.toml",
        "--socket",
        "gone.sock",
    ]);
    Running::start(command, "tasks run".to_owned(), "")
        .end()
        .expect(3);
}
