//! Sessions and a daemon that comes and goes.

use crate::stage::*;
use crate::support::daemon::Daemon;
use crate::support::{processes, until};
use missiond::control::requests::{StdinParams, UnifiedExec, WriteStdin};
use serde_json::Value;

const TICKS: &str = "i=0; while :; do i=$((i+1)); echo \"tick $i\"; sleep 0.01; done";

#[test]
fn sessions_live_through_a_crash_of_the_daemon() {
    let mut daemon = daemon();
    script(&daemon, "ticks", TICKS);
    spawn(
        &daemon,
        &[
            "--id",
            "sh",
            "--shell",
            "/bin/bash",
            "--owner",
            "orchestrator:a",
        ],
    );
    assert_eq!(typed(&daemon, "sh", "x=42"), (String::new(), 0));
    script(&daemon, "done", "echo bye; exit 4");
    wait_exit(&daemon, "done");
    let before = info(&daemon, "ticks");
    daemon.crash();
    daemon.again();
    assert_eq!(info(&daemon, "ticks")["pid"], before["pid"]);
    assert_eq!(typed(&daemon, "sh", "echo $x"), ("42\n".into(), 0));
    assert_eq!(info(&daemon, "sh")["owner"], "orchestrator:a");
    let done = info(&daemon, "done");
    assert_eq!(
        (&done["exit_code"], &done["is_alive"]),
        (&4.into(), &false.into())
    );
    assert_eq!(output(&daemon, "done"), "bye\n");
    wait_output(&daemon, "ticks", "tick");
    let ticks = output(&daemon, "ticks");
    for (n, line) in ticks.lines().enumerate() {
        assert_eq!(line, format!("tick {}", n + 1));
    }
    daemon.cmd(&["close", "ticks"]).expect(0);
    daemon.cmd(&["close", "--owner", "orchestrator"]).expect(0);
    daemon.cmd(&["close", "done"]).expect(0);
    nothing_left(&daemon);
}

/// Control characters are six times as long in the recording, which is rotated the sooner. On a busy machine that may be after
/// the last of this output: only what comes later is in the newest file for certain.
const LONG_OUTPUT: &str = r#"stty -echo; awk 'BEGIN {
    while (length(x) < 50) x = x "\001"
    for (n = 1; n <= 70000; n++) print x n
}'; read -r more; seq 70001 70100; exec sleep 1000"#;

#[test]
fn output_in_a_rotated_recording_is_kept_through_a_crash() {
    for settings in ["", "buffer = \"2MB\""] {
        let mut daemon = daemon_with(settings);
        script(&daemon, "long", LONG_OUTPUT);
        wait_output(&daemon, "long", "^70000");
        let rotated = daemon.logs().join("long.cast.1");
        until("the recording to be rotated", || {
            rotated.exists().then_some(())
        });
        daemon.cmd(&["write", "long", "more\n"]).expect(0);
        wait_output(&daemon, "long", "^70100");
        let shown = |daemon: &Daemon| {
            let output = daemon.cmd(&["output", "long"]).expect(0);
            let info = info(daemon, "long");
            let kept = (info["output_bytes"].clone(), info["dropped_bytes"].clone());
            (output.stdout, output.stderr, kept)
        };
        let before = shown(&daemon);
        assert!(before.0.ends_with("70099\n70100\n"));
        let drops = before.1.contains("bytes are no longer kept");
        assert_eq!(drops, !settings.is_empty(), "{}", before.1);
        daemon.crash();
        daemon.again();
        assert!(shown(&daemon) == before, "the same is kept as before");
        // Only the newest recording is left: no screen counts as output, and what is missing is told.
        daemon.crash();
        std::fs::remove_file(&rotated).expect("it is there");
        daemon.again();
        let (output, told, _) = shown(&daemon);
        assert!(told.contains("bytes are no longer kept"), "{told}");
        let mut lines = output.lines().skip(1);
        let first: u64 = lines
            .next()
            .and_then(|line| line.parse().ok())
            .expect("a number");
        let numbers: Vec<String> = (first..=70100).map(|n| n.to_string()).collect();
        assert!(output.lines().skip(1).eq(numbers.iter()));
        assert!(
            output.lines().next().is_some_and(|cut| cut.len() <= 5),
            "{output:.99}"
        );
        daemon.cmd(&["close", "long"]).expect(0);
    }
}

#[test]
fn what_ends_with_the_daemon_can_be_looked_at_after_it() {
    let mut daemon = daemon();
    script(&daemon, "one", "echo here; exec sleep 1000");
    wait_output(&daemon, "one", "here");
    daemon.cmd(&["clear", "one"]).expect(0);
    daemon.cmd(&["down", "--yes"]).expect(0);
    daemon.ended();
    daemon.again();
    let info = info(&daemon, "one");
    assert_eq!(
        (&info["is_alive"], &info["signal"]),
        (&false.into(), &15.into())
    );
    assert_eq!(output(&daemon, "one"), "");
}

#[test]
fn one_that_lost_its_shim_is_no_longer_alive() {
    let mut daemon = daemon();
    script(&daemon, "one", "echo here; exec sleep 1000");
    wait_output(&daemon, "one", "here");
    let shim = daemon.status("one")["shim_pid"].as_i64().unwrap();
    daemon.crash();
    let shim = i32::try_from(shim).unwrap();
    processes::kill(shim);
    until("the end of the shim", || {
        (!is_in_process_table(&shim.into())).then_some(())
    });
    daemon.again();
    let info = info(&daemon, "one");
    assert_eq!(
        (&info["is_alive"], &info["exit_code"]),
        (&false.into(), &Value::Null)
    );
    assert_eq!(output(&daemon, "one"), "here\n");
}

#[test]
fn after_a_reboot_sessions_have_ended_and_what_they_wrote_is_kept() {
    let mut daemon = daemon();
    script(&daemon, "one", "echo here; exec sleep 1000");
    script(&daemon, "done", "echo bye; exit 4");
    wait_output(&daemon, "one", "here");
    wait_exit(&daemon, "done");
    daemon.reboot();
    wait_exit(&daemon, "one");
    let one = info(&daemon, "one");
    assert_eq!(
        (&one["is_alive"], &one["exit_code"], &one["last_error"]),
        (&false.into(), &Value::Null, &"shim lost".into())
    );
    assert_eq!(output(&daemon, "one"), "here\n");
    assert_eq!(info(&daemon, "done")["exit_code"], 4);
    assert_eq!(output(&daemon, "done"), "bye\n");
    // Nothing was started in their place.
    assert_eq!(processes::all_of(daemon.root()), [daemon.pid()]);
}

const DEAF: &str =
    "trap '' HUP TERM INT; setsid sleep 1000 & echo here; while :; do sleep 0.1; done";

#[test]
fn nothing_of_a_session_runs_on_without_its_shim() {
    let mut daemon = daemon();
    script(&daemon, "one", DEAF);
    script(&daemon, "two", DEAF);
    wait_output(&daemon, "one", "here");
    wait_output(&daemon, "two", "here");
    processes::kill(shim_of(&daemon, "one"));
    wait_exit(&daemon, "one");
    let why = info(&daemon, "one")["last_error"].to_string();
    assert!(why.contains("shim lost"), "{why}");
    let shim = shim_of(&daemon, "two");
    daemon.crash();
    processes::kill(shim);
    daemon.again();
    wait_exit(&daemon, "two");
    assert_eq!(info(&daemon, "two")["last_error"], "shim lost");
    daemon.cmd(&["close", "one"]).expect(0);
    daemon.cmd(&["close", "two"]).expect(0);
    nothing_left(&daemon);
}

/// Not even its file is there any more: only the socket of its shim is.
#[test]
fn a_session_that_nobody_knows_is_not_left_behind() {
    let mut daemon = daemon();
    script(&daemon, "one", DEAF);
    wait_output(&daemon, "one", "here");
    let shim = shim_of(&daemon, "one");
    daemon.cmd(&["down", "--keep"]).expect(0);
    daemon.ended();
    processes::kill(shim);
    let state = daemon.root().join("state/missiond/missiond");
    std::fs::remove_file(state.join("sessions/one.json")).unwrap();
    daemon.again();
    assert_eq!(ids(&daemon), Vec::<String>::new());
    assert_eq!(processes::all_of(daemon.root()), [daemon.pid()]);
    let socket = daemon.root().join("run/missiond/shims/missiond.one.sock");
    assert!(!socket.exists());
}

#[test]
fn a_session_with_a_stopped_shim_is_closed() {
    let daemon = daemon();
    script(&daemon, "one", "exec sleep 1000");
    let shim = rustix::process::Pid::from_raw(shim_of(&daemon, "one")).unwrap();
    rustix::process::kill_process(shim, rustix::process::Signal::STOP).unwrap();
    daemon.cmd(&["close", "one"]).expect(0);
    nothing_left(&daemon);
}

#[test]
fn an_end_while_there_was_no_daemon_has_its_time() {
    let mut daemon = daemon();
    let script_text = "echo here; while [ ! -e end ]; do sleep 0.05; done; exit 4";
    let cwd = daemon.root().display().to_string();
    let arguments = ["--id", "one", "--cwd", &cwd, "--", "sh", "-c", script_text];
    spawn(&daemon, &arguments);
    wait_output(&daemon, "one", "here");
    daemon.crash();
    std::fs::write(daemon.root().join("end"), "").unwrap();
    until("the end of the program", || {
        daemon.logged("one.cast").contains("exit 4").then_some(())
    });
    let seen = chrono::Utc::now();
    // A second on the clock, so that a later time is a later one in the log too.
    until("another second", || {
        (chrono::Utc::now() > seen + chrono::TimeDelta::seconds(1)).then_some(())
    });
    daemon.again();
    wait_exit(&daemon, "one");
    let status = daemon.status("one");
    let ended_at = status["session"]["ended_at"].as_str().expect("a time");
    let ended_at: chrono::DateTime<chrono::Utc> = ended_at.parse().unwrap();
    assert!(
        ended_at <= seen + chrono::TimeDelta::milliseconds(500),
        "{ended_at}, seen {seen}"
    );
    let events = daemon.logged("one.events.jsonl");
    let exit = events
        .lines()
        .find(|line| line.contains("\"exit\""))
        .expect("an exit");
    let exit: Value = serde_json::from_str(exit).unwrap();
    assert_eq!(exit["ended_at"], status["session"]["ended_at"], "{exit}");
}

#[track_caller]
fn shim_of(daemon: &Daemon, id: &str) -> i32 {
    let shim = daemon.status(id)["shim_pid"].as_i64().expect("a pid");
    i32::try_from(shim).unwrap()
}

#[test]
fn an_owner_that_ended_meanwhile_is_found_out() {
    let mut daemon = daemon();
    let mut owner = std::process::Command::new("sleep")
        .arg("1000")
        .spawn()
        .unwrap();
    let pid = owner.id().to_string();
    let arguments = [
        "--id",
        "one",
        "--owner",
        "orchestrator:a",
        "--owner-pid",
        &pid,
        "--",
        "cat",
    ];
    spawn(&daemon, &arguments);
    daemon.crash();
    owner.kill().unwrap();
    owner.wait().unwrap();
    daemon.again();
    wait_exit(&daemon, "one");
}

#[test]
fn a_session_whose_file_is_broken_is_not_lost() {
    let mut daemon = daemon();
    script(&daemon, "one", "echo here; exec sleep 1000");
    wait_output(&daemon, "one", "here");
    daemon.crash();
    let file = daemon
        .root()
        .join("state/missiond/missiond/sessions/one.json");
    std::fs::write(file, "{\"id\": ").unwrap();
    daemon.again();
    assert_eq!(info(&daemon, "one")["is_alive"], true);
    assert_eq!(output(&daemon, "one"), "here\n");
    daemon.cmd(&["close", "one"]).expect(0);
    nothing_left(&daemon);
}

#[test]
fn an_agent_reads_on_where_it_was() {
    let mut daemon = daemon();
    let script = "stty -echo; echo one; while read -r line; do echo \"got $line\"; done";
    let params = serde_json::json!({"command": script, "yield_ms": 0});
    let first = call::<UnifiedExec>(&daemon, serde_json::from_value(params).unwrap()).unwrap();
    let id = first.session_id.clone();
    let look = |input: &str| -> StdinParams {
        let params = serde_json::json!({"session_id": id, "input": input, "yield_ms": 50});
        serde_json::from_value(params).unwrap()
    };
    let read_until = |daemon: &Daemon, mut seen: String, wanted: &str| {
        until(wanted, || {
            seen += &call::<WriteStdin>(daemon, look("")).unwrap().output;
            seen.contains(wanted).then(|| seen.clone())
        })
    };
    read_until(&daemon, first.output, "one\n");
    daemon.crash();
    daemon.again();
    let answer = call::<WriteStdin>(&daemon, look("two\n")).unwrap();
    assert_eq!(read_until(&daemon, answer.output, "two\n"), "got two\n");
    // What nobody has read comes with the next look.
    daemon.cmd(&["type", &id, "three"]).expect(0);
    wait_output(&daemon, &id, "got three");
    daemon.crash();
    daemon.again();
    assert_eq!(read_until(&daemon, String::new(), "three\n"), "got three\n");
}
