//! From the start of a session to its end.

use crate::stage::*;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use std::process::Command;

#[test]
fn a_session_is_made_listed_and_closed() {
    let daemon = daemon();
    let cwd = daemon.root().join("work");
    std::fs::create_dir_all(&cwd).unwrap();
    let cwd = cwd.to_str().unwrap();
    let made = spawn(
        &daemon,
        &["--cwd", cwd, "--cols", "90", "--rows", "20", "--", "cat"],
    );
    let id = made["id"].as_str().unwrap();
    assert!(uuid::Uuid::try_parse(id).is_ok(), "{made}");
    let info = info(&daemon, id);
    assert_eq!(info["owner"], "user");
    assert_eq!((&info["cols"], &info["rows"]), (&90.into(), &20.into()));
    assert_eq!(info["cwd"], cwd);
    assert_eq!(info["command"], serde_json::json!(["cat"]));
    assert_eq!(info["is_alive"], true);
    assert_eq!(info["pid"], made["pid"]);
    assert!(info["exit_code"].is_null() && info["uptime"].is_u64());
    assert!(info["memory"].as_u64().unwrap() > 0);
    assert!(info["read_bytes"].is_u64() && info["written_bytes"].is_u64());
    assert_eq!(ids(&daemon), [id]);
    // It is a slot like any other to those who name it, and none of the configuration's.
    assert_eq!(daemon.status(id)["state"], "idle");
    assert_eq!(daemon.json(&["status"]), serde_json::json!([]));
    daemon.cmd(&["close", id]).expect(0);
    let late = daemon.cmd(&["output", id]).expect(2);
    assert!(late.stderr.contains("was closed at"), "{late}");
    assert!(!is_in_process_table(&made["pid"]));
    nothing_left(&daemon);
}

#[test]
fn the_default_is_a_shell_and_its_first_output_comes_with_the_id() {
    let daemon = daemon();
    std::fs::write(daemon.root().join("home/.bashrc"), "echo hello from rc\n").unwrap();
    let made = spawn(&daemon, &["--id", "sh", "--shell", "/bin/bash"]);
    assert_eq!(made["id"], "sh");
    wait_output(&daemon, "sh", "hello from rc");
    let plain = daemon.cmd(&["spawn", "--id", "say", "--", "echo", "first words"]);
    assert_eq!(plain.expect(0).stdout.lines().next(), Some("say"));
}

#[test]
fn an_end_is_told_once_with_its_code_and_the_output_stays() {
    let daemon = daemon();
    let events = daemon.spawn(&["events", "-f", "--json"]);
    let made = script(&daemon, "one", "echo out; exit 1");
    wait_exit(&daemon, "one");
    let info = info(&daemon, "one");
    assert_eq!(
        (&info["exit_code"], &info["is_alive"]),
        (&1.into(), &false.into())
    );
    assert_eq!(output(&daemon, "one"), "out\n");
    assert!(!is_in_process_table(&made["pid"]));
    daemon.cmd(&["close", "one"]).expect(0);
    let told = until("the end of the session", || {
        let told = events.printed();
        told.contains("\"closed\"").then_some(told)
    });
    let told: Vec<serde_json::Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of = |name: &str| {
        told.iter()
            .filter(|event| event["event"] == name)
            .collect::<Vec<_>>()
    };
    assert_eq!(of("exit").len(), 1, "{told:?}");
    assert_eq!(of("exit")[0]["code"], 1);
    assert_eq!((of("spawned").len(), of("closed").len()), (1, 1));
}

#[test]
fn one_that_is_ended_by_a_signal_says_which() {
    let daemon = daemon();
    script(&daemon, "one", "kill -9 $$");
    wait_exit(&daemon, "one");
    let info = info(&daemon, "one");
    assert_eq!(
        (&info["signal"], &info["exit_code"]),
        (&9.into(), &serde_json::Value::Null)
    );
}

#[test]
fn a_timeout_ends_it_and_says_so() {
    let daemon = daemon();
    spawn(
        &daemon,
        &["--id", "slow", "--timeout", "300ms", "--", "sleep", "1000"],
    );
    wait_exit(&daemon, "slow");
    let info = info(&daemon, "slow");
    assert_eq!(info["signal"], 15);
    assert!(
        info["last_error"]
            .as_str()
            .unwrap()
            .contains("timed out after 300ms"),
        "{info}"
    );
    assert!(daemon.log("slow").contains("timed out"));
}

#[test]
fn a_stubborn_one_is_killed_at_once_by_force() {
    let daemon = daemon();
    let made = script(
        &daemon,
        "mule",
        "trap '' TERM HUP INT; echo up; while :; do sleep 1; done",
    );
    wait_output(&daemon, "mule", "up");
    daemon.cmd(&["close", "mule", "--force"]).expect(0);
    assert!(!is_in_process_table(&made["pid"]));
    nothing_left(&daemon);
}

#[test]
fn sessions_end_with_their_owner() {
    let daemon = daemon();
    let mut owner = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = owner.id().to_string();
    let of_owner = [
        "--owner",
        "orchestrator:a",
        "--owner-pid",
        &pid,
        "--",
        "sleep",
        "1000",
    ];
    spawn(&daemon, &[&["--id", "child"], &of_owner[..]].concat());
    spawn(
        &daemon,
        &[
            "--id",
            "free",
            "--owner",
            "orchestrator:a",
            "--",
            "sleep",
            "1000",
        ],
    );
    assert_eq!(info(&daemon, "child")["owner_pid"], owner.id());
    owner.kill().unwrap();
    owner.wait().unwrap();
    wait_exit(&daemon, "child");
    let ended = info(&daemon, "child");
    assert!(
        ended["last_error"].as_str().unwrap().contains("its owner"),
        "{ended}"
    );
    assert_eq!(info(&daemon, "free")["is_alive"], true);
    let dead = [
        "spawn",
        "--id",
        "late",
        "--owner",
        "a",
        "--owner-pid",
        &pid,
        "--",
        "cat",
    ];
    let refused = daemon.cmd(&dead).expect(2);
    assert!(refused.stderr.contains("no process"), "{refused}");
}

#[test]
fn an_owner_closes_its_own_by_whole_parts_of_its_name() {
    let daemon = daemon();
    for (id, owner) in [
        ("a", "orchestrator:a"),
        ("a-sub", "orchestrator:a:sub"),
        ("ab", "orchestrator:ab"),
        ("mine", "user"),
    ] {
        spawn(&daemon, &["--id", id, "--owner", owner, "--", "cat"]);
    }
    let listed = daemon.json(&["sessions", "--owner", "orchestrator:a"]);
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let closed = daemon
        .cmd(&["close", "--owner", "orchestrator:a"])
        .expect(0);
    assert_eq!(closed.text(), "2 sessions closed");
    assert_eq!(ids(&daemon), ["ab", "mine"]);
    daemon.cmd(&["close", "--owner", ""]).expect(2);
    let none = daemon.cmd(&["close", "--owner", "nobody"]).expect(0);
    assert_eq!(none.text(), "0 sessions closed");
}

#[test]
fn there_are_limits_for_those_that_run() {
    let daemon = daemon_with("per_owner = 2\ntotal = 3");
    for id in ["old", "older", "oldest"] {
        script(&daemon, id, "exit 3");
        wait_exit(&daemon, id);
    }
    for id in ["one", "two"] {
        spawn(&daemon, &["--id", id, "--", "cat"]);
    }
    let refused = daemon
        .cmd(&["spawn", "--id", "three", "--", "cat"])
        .expect(4);
    assert!(
        refused.stderr.contains("2 sessions of user run already"),
        "{refused}"
    );
    spawn(
        &daemon,
        &["--id", "theirs", "--owner", "orchestrator:a", "--", "cat"],
    );
    let other = [
        "spawn",
        "--id",
        "four",
        "--owner",
        "orchestrator:b",
        "--",
        "cat",
    ];
    let refused = daemon.cmd(&other).expect(4);
    assert!(refused.stderr.contains("3 sessions in all"), "{refused}");
    // None of those that have ended had to go for it.
    assert_eq!(ids(&daemon).len(), 6);
    assert_eq!(info(&daemon, "old")["exit_code"], 3);
}

#[test]
fn of_those_that_have_ended_the_oldest_goes_where_there_are_too_many() {
    let daemon = daemon_with("per_owner = 1\ntotal = 1");
    for id in ["a", "b", "c", "d"] {
        script(&daemon, id, "exit 3");
        wait_exit(&daemon, id);
    }
    assert_eq!(ids(&daemon), ["a", "b", "c", "d"]);
    spawn(&daemon, &["--id", "e", "--", "cat"]);
    until("room for the new one", || {
        (ids(&daemon) == ["b", "c", "d", "e"]).then_some(())
    });
    let gone = daemon.cmd(&["output", "a"]).expect(2);
    assert!(gone.stderr.contains("newer ones need its place"), "{gone}");
}

#[test]
fn no_session_sees_another() {
    let daemon = daemon();
    let (here, there) = (daemon.root().join("a"), daemon.root().join("b"));
    for directory in [&here, &there] {
        std::fs::create_dir(directory).unwrap();
    }
    let show = [
        "--",
        "sh",
        "-c",
        "pwd; echo \"<$ONE$TWO>\"; env | grep -c MISSIOND_SLOT",
    ];
    let (here, there) = (here.to_str().unwrap(), there.to_str().unwrap());
    spawn(
        &daemon,
        &[&["--id", "a", "--cwd", here, "--env", "ONE=1"], &show[..]].concat(),
    );
    spawn(
        &daemon,
        &[&["--id", "b", "--cwd", there, "--env", "TWO=2"], &show[..]].concat(),
    );
    for (id, cwd, env) in [("a", here, "<1>"), ("b", there, "<2>")] {
        wait_exit(&daemon, id);
        assert_eq!(output(&daemon, id), format!("{cwd}\n{env}\n1\n"));
    }
}

#[test]
fn a_size_and_a_signal_reach_the_program() {
    let daemon = daemon();
    spawn(&daemon, &["--id", "sh", "--shell", "/bin/bash"]);
    daemon.cmd(&["resize", "sh", "100", "30"]).expect(0);
    until("the new size", || {
        (info(&daemon, "sh")["cols"] == 100).then_some(())
    });
    assert_eq!(typed(&daemon, "sh", "stty size"), ("30 100\n".into(), 0));
    daemon.cmd(&["resize", "sh", "1", "30"]).expect(2);
    daemon.cmd(&["type", "sh", "sleep 1000"]).expect(0);
    until("the command to run", || {
        let children = crate::support::processes::children_of(
            i32::try_from(info(&daemon, "sh")["pid"].as_i64()?).ok()?,
        );
        (!children.is_empty()).then_some(())
    });
    daemon.cmd(&["signal", "sh", "INT"]).expect(0);
    daemon
        .cmd(&["wait", "sh", "--prompt", "--timeout", "50s"])
        .expect(0);
    assert_eq!(typed(&daemon, "sh", "echo $?"), ("130\n".into(), 0));
    daemon.cmd(&["signal", "sh", "NOPE"]).expect(2);
}

#[test]
fn what_has_ended_goes_after_its_time() {
    let daemon = daemon_with("keep = \"200ms\"");
    script(&daemon, "short", "exit 0");
    until("the end of its time", || {
        let gone = daemon.cmd(&["info", "short"]);
        (gone.code == 2 && gone.stderr.contains("kept for 200ms")).then_some(())
    });
    nothing_left(&daemon);
}

#[test]
fn a_shell_at_its_prompt_is_closed_when_idle_and_a_silent_build_is_not() {
    let daemon = daemon_with("idle_close = \"1s\"");
    // What they do begins before their first prompt: from then on time counts.
    let rc = "case $MISSIOND_SLOT in behind) sleep 1000 & ;; front) sleep 1000 ;; esac\n";
    std::fs::write(daemon.root().join("home/.bashrc"), rc).unwrap();
    spawn(&daemon, &["--id", "plain", "--", "cat"]);
    for id in ["front", "behind", "idle"] {
        spawn(&daemon, &["--id", id, "--shell", "/bin/bash"]);
    }
    wait_exit(&daemon, "idle");
    let ended = info(&daemon, "idle");
    let why = ended["last_error"].as_str().expect("a reason");
    assert!(why.contains("idle at its prompt for 1s"), "{ended}");
    for id in ["plain", "front", "behind"] {
        assert_eq!(info(&daemon, id)["is_alive"], true, "{id}");
    }
}

/// Closed by idleness is ended like any other end: nothing of it is lost before its time.
#[test]
fn what_an_idle_shell_has_written_is_kept_like_that_of_any_other() {
    let mut daemon = daemon_with("idle_close = \"1s\"\nkeep = \"1h\"");
    spawn(&daemon, &["--id", "build", "--shell", "/bin/bash"]);
    let (written, code) = typed(&daemon, "build", "echo built; (exit 4)");
    assert_eq!((written.as_str(), code), ("built\n", 4));
    wait_exit(&daemon, "build");
    for round in ["at once", "with another daemon"] {
        assert!(output(&daemon, "build").contains("built"), "{round}");
        let found = daemon.json(&["search", "build", "^built$"]);
        assert_eq!(found["text"], "built", "{round}: {found}");
        let why = info(&daemon, "build")["last_error"].to_string();
        assert!(why.contains("idle at its prompt"), "{round}: {why}");
        for file in ["build.log", "build.events.jsonl", "build.cast"] {
            assert!(daemon.logs().join(file).exists(), "{round}: {file}");
        }
        assert!(daemon.logged("build.cast").contains("built"), "{round}");
        if round == "at once" {
            daemon.crash();
            daemon.again();
        }
    }
    daemon.cmd(&["close", "build"]).expect(0);
    nothing_left(&daemon);
}

#[test]
fn an_idle_shell_is_removed_when_it_was_kept_for_long_enough() {
    let daemon = daemon_with("idle_close = \"1s\"\nkeep = \"200ms\"");
    spawn(&daemon, &["--id", "build", "--shell", "/bin/bash"]);
    until("the idle one to go", || {
        let gone = daemon.cmd(&["info", "build"]);
        (gone.code == 2 && gone.stderr.contains("kept for 200ms")).then_some(())
    });
    nothing_left(&daemon);
}

#[test]
fn a_slot_that_runs_is_not_said_to_be_started() {
    let setup = Setup::new().slot_with("coder", "kind = \"shell\"\nautostart = false");
    let daemon = Daemon::start_with(&setup, &["/bin/cat".to_owned()]);
    let first = daemon.cmd(&["start", "coder"]).expect(0);
    let second = daemon.cmd(&["start", "coder"]).expect(0);
    let said = (first.text(), second.text());
    assert_eq!(said, ("coder: started", "coder: already running"));
    let json = daemon.json(&["start", "coder"]);
    assert_eq!(json[0]["already"], true, "{json}");
}

#[test]
fn a_name_is_one_thing() {
    let setup = Setup::new().slot_with("coder", "kind = \"shell\"\nautostart = false");
    let daemon = Daemon::start_with(&setup, &["/bin/cat".to_owned()]);
    let refused = daemon
        .cmd(&["spawn", "--id", "coder", "--", "cat"])
        .expect(2);
    assert!(refused.stderr.contains("`coder` is a slot"), "{refused}");
    spawn(&daemon, &["--id", "mine", "--", "cat"]);
    let refused = daemon
        .cmd(&["spawn", "--id", "mine", "--", "cat"])
        .expect(2);
    assert!(
        refused.stderr.contains("a session `mine` already"),
        "{refused}"
    );
    let config = std::fs::read_to_string(daemon.config()).unwrap();
    let clash = config.replace("name = \"coder\"", "name = \"mine\"");
    std::fs::write(daemon.config(), clash).unwrap();
    let refused = daemon.cmd(&["reload"]).expect(2);
    assert!(
        refused.stderr.contains("`mine` is taken by a session"),
        "{refused}"
    );
    std::fs::write(daemon.config(), config).unwrap();
    daemon.cmd(&["reload"]).expect(0);
    assert_eq!(info(&daemon, "mine")["is_alive"], true);
    // What is said to all slots is not said to sessions.
    daemon.cmd(&["stop", "--all"]).expect(0);
    assert_eq!(info(&daemon, "mine")["is_alive"], true);
}
