//! Slots that leave the config while their programs run: none of them goes out of sight.

use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{processes, until};
use missiond::lab::rehearsal::Step;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;

fn shells(names: &[&str]) -> Daemon {
    let setup = names.iter().fold(Setup::new(), |setup, name| {
        setup.slot_with(name, "kind = \"shell\"")
    });
    let daemon = Daemon::start_with(&setup, &["/bin/sh".to_owned()]);
    for name in names {
        daemon.wait_state(name, "idle");
    }
    daemon
}

/// The config without this slot; the text before comes back.
fn remove(daemon: &Daemon, name: &str) -> String {
    edit(daemon, |config| {
        let slots = config["slot"].as_array_mut().expect("slots");
        let before = slots.len();
        slots.retain(|slot| slot["name"].as_str() != Some(name));
        assert_eq!(slots.len(), before - 1, "{name} is in the config");
    })
}

fn edit(daemon: &Daemon, change: impl FnOnce(&mut toml::Table)) -> String {
    let before = fs::read_to_string(daemon.config()).expect("a config");
    let mut config: toml::Table = before.parse().expect("TOML");
    change(&mut config);
    fs::write(daemon.config(), config.to_string()).expect("it is written");
    before
}

fn pid(status: &Value, key: &str) -> Pid {
    let pid = status[key].as_i64().and_then(|pid| i32::try_from(pid).ok());
    pid.and_then(Pid::from_raw)
        .unwrap_or_else(|| panic!("{key}: {status}"))
}

/// One that has ended and waits to be reaped does not run.
fn runs(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| !stat.contains(") Z"))
}

/// It is seen by everybody, has its program, and is never started again.
fn is_seen_as_removed(daemon: &Daemon, name: &str, program: &Value) {
    // A shim that was stopped takes a while to be taken up.
    let status = until("its program", || {
        let status = daemon.status(name);
        status["pid"].is_u64().then_some(status)
    });
    assert_eq!(status["removed"], true, "{status}");
    assert_eq!(status["pid"], *program, "{status}");
    let all = daemon.json(&["status"]);
    let mut all = all.as_array().expect("a list").iter();
    assert!(all.any(|status| status["slot"] == name));
    let table = daemon.cmd(&["status"]).expect(0);
    assert!(table.stdout.contains("removed from the config"), "{table}");
    assert!(table.stdout.contains("missiond stop"), "{table}");
    let why = daemon.cmd(&["why", name]).expect(0);
    assert!(why.stdout.contains("not in the config"), "{why}");
    for verb in ["start", "restart"] {
        let refused = daemon.cmd(&[verb, name]).expect(4);
        assert!(
            refused.stderr.contains("removed from the config"),
            "{refused}"
        );
        daemon.cmd(&[verb, "--all"]).expect(0);
    }
    let doctor = daemon.json(&["doctor"]);
    let checks = doctor["checks"].as_array().expect("a list");
    let told = checks.iter().find(|check| check["check"] == "daemon");
    let told = told.unwrap_or_else(|| panic!("{doctor}"));
    assert_eq!(told["health"], "warn", "{told}");
    assert!(
        told["detail"]
            .as_str()
            .is_some_and(|text| text.contains(name)),
        "{told}"
    );
    assert_eq!(daemon.status(name)["pid"], *program);
}

fn is_stopped_and_gone(daemon: &Daemon, name: &str) {
    let status = daemon.status(name);
    let (program, shim) = (pid(&status, "pid"), pid(&status, "shim_pid"));
    daemon.cmd(&["stop", name]).expect(0);
    until("the end of its processes", || {
        (!runs(program) && !runs(shim)).then_some(())
    });
    until("it is no more", || {
        (daemon.cmd(&["status", name]).code == 2).then_some(())
    });
}

#[test]
fn a_slot_that_leaves_the_config_while_there_is_no_daemon_is_seen_and_can_be_stopped() {
    let mut daemon = shells(&["one", "two"]);
    let program = daemon.status("one")["pid"].clone();
    daemon.crash();
    remove(&daemon, "one");
    let doctor = daemon.cmd(&["doctor"]).expect(0);
    assert!(doctor.stdout.contains("does not name: one"), "{doctor}");
    daemon.again();
    is_seen_as_removed(&daemon, "one", &program);
    assert_eq!(daemon.status("two")["removed"], false);
    // Its terminal is there for whoever needs it.
    daemon
        .cmd(&["write", "one", "echo it-is-$((40+2))\\r"])
        .expect(0);
    daemon
        .cmd(&["wait", "one", "--output", "it-is-42", "--timeout", "20s"])
        .expect(0);
    is_stopped_and_gone(&daemon, "one");
    // A daemon that comes later has nothing to find.
    daemon.crash();
    daemon.again();
    daemon.cmd(&["status", "one"]).expect(2);
}

#[test]
fn a_slot_that_comes_back_into_the_config_is_that_slot_again() {
    let mut daemon = shells(&["one", "two"]);
    let program = daemon.status("one")["pid"].clone();
    daemon.crash();
    let before = remove(&daemon, "one");
    daemon.again();
    assert_eq!(daemon.status("one")["removed"], true);
    fs::write(daemon.config(), before).expect("it is written");
    daemon.cmd(&["reload"]).expect(0);
    let back = until("it is a slot of the config", || {
        let status = daemon.status("one");
        (status["removed"] == false).then_some(status)
    });
    assert_eq!(
        (&back["pid"], &back["changed"]),
        (&program, &json!(false)),
        "{back}"
    );
    daemon.cmd(&["restart", "one"]).expect(0);
    daemon.wait_state("one", "idle");
    assert_ne!(daemon.status("one")["pid"], program);
}

#[test]
fn down_ends_a_removed_slot_and_keep_leaves_it() {
    let mut daemon = shells(&["one", "two"]);
    daemon.crash();
    remove(&daemon, "one");
    daemon.again();
    let status = daemon.status("one");
    daemon.cmd(&["down", "--keep"]).expect(0);
    daemon.ended();
    assert!(runs(pid(&status, "pid")));
    daemon.again();
    is_seen_as_removed(&daemon, "one", &status["pid"]);
    daemon.cmd(&["down"]).expect(0);
    daemon.ended();
    assert!(!runs(pid(&status, "pid")));
    // A shim ends by itself once its daemon has heard how its program ended.
    until("nothing is left", || {
        processes::all_of(daemon.root()).is_empty().then_some(())
    });
    assert!(!runs(pid(&status, "shim_pid")));
}

/// Whatever else has changed or is lost while there is no daemon.
#[test]
fn nothing_that_is_lost_hides_a_program_that_runs() {
    // Too long for the path of a socket, whose name is hashed then.
    let long = "l".repeat(64);
    let mut daemon = shells(&["gone", "garbage", "renamed", "stopped", &long, "stays"]);
    let removed = ["gone", "garbage", "renamed", "stopped", &long];
    let before = removed.map(|name| daemon.status(name));
    daemon.crash();
    let state = daemon.root().join("state/missiond/missiond");
    fs::remove_file(state.join("gone.json")).expect("it is there");
    fs::write(state.join("garbage.json"), "{\"sess").expect("it is written");
    kill_process(pid(&before[3], "shim_pid"), Signal::STOP).expect("it lives");
    for name in ["gone", "garbage", "stopped", &long] {
        remove(&daemon, name);
    }
    edit(&daemon, |config| {
        config["daemon"]["logs"] = "elsewhere".into();
        let slots = config["slot"].as_array_mut().expect("slots");
        let mut names = slots.iter_mut().map(|slot| &mut slot["name"]);
        let renamed = names.find(|name| name.as_str() == Some("renamed"));
        *renamed.expect("it is there") = "new-name".into();
    });
    daemon.again();
    for (name, before) in removed.iter().zip(&before) {
        is_seen_as_removed(&daemon, name, &before["pid"]);
    }
    daemon.wait_state("new-name", "idle");
    assert_ne!(daemon.status("new-name")["pid"], before[2]["pid"]);
    assert_eq!(daemon.status("stays")["removed"], false);
    for name in removed {
        is_stopped_and_gone(&daemon, name);
    }
}

/// A shell is idle as far as its screen tells; what it runs in the foreground is its work, as for `down`.
#[test]
fn a_shell_that_leaves_the_config_is_stopped_when_its_command_has_ended() {
    let daemon = shells(&["one", "two", "stays"]);
    daemon.cmd(&["write", "two", "cat\\r"]).expect(0);
    until("a command in the foreground", || {
        (daemon.status("two")["foreground"] == "cat").then_some(())
    });
    let [one, two] = ["one", "two"].map(|name| pid(&daemon.status(name), "pid"));
    remove(&daemon, "one");
    remove(&daemon, "two");
    let taken = daemon.cmd(&["reload"]).expect(0).stdout;
    assert!(taken.contains("two: removed while it runs cat"), "{taken}");
    assert!(taken.contains("one: removed and stopped"), "{taken}");
    until("the end of the idle one", || (!runs(one)).then_some(()));
    assert!(runs(two), "its command was killed");
    assert_eq!(daemon.status("two")["removed"], true);
    daemon.cmd(&["write", "two", "the end\\r"]).expect(0);
    daemon
        .cmd(&["wait", "two", "--output", "the end", "--timeout", "20s"])
        .expect(0);
    assert!(runs(two));
    daemon.cmd(&["keys", "two", "ctrl+d"]).expect(0);
    until("the end of the other", || (!runs(two)).then_some(()));
    until("both are gone", || {
        let gone = |name| daemon.cmd(&["status", name]).code == 2;
        (gone("one") && gone("two")).then_some(())
    });
    for name in ["one", "two"] {
        let log = daemon.log(name);
        assert!(log.contains("since it is no longer in the config"), "{log}");
        assert!(!log.contains("by a person"), "{log}");
    }
}

/// On the real program: a dialog stands, the slot leaves the config under the daemon, and the daemon is killed.
#[test]
fn a_slot_at_a_dialog_that_left_the_config_is_never_answered_by_rule() {
    let policy = "allow = [\"Bash(touch allowed*)\"]\n";
    let setup = Setup::new()
        .slot("coder")
        .slot("other")
        .policy("coder", policy);
    let Some(mut daemon) = Daemon::start(&setup) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let call =
        |command: &str| Step::tool("Bash", json!({"command": command, "description": "Touch"}));
    let steps = vec![
        call("touch asked"),
        call("touch allowed-1"),
        Step::text("Done."),
    ];
    daemon.endpoint.on("touch them", steps);
    daemon.cmd(&["send", "coder", "touch them"]).expect(5);
    daemon.wait_dialog("coder");
    let program = daemon.status("coder")["pid"].clone();

    let before = remove(&daemon, "coder");
    let reloaded = daemon.cmd(&["reload"]).expect(0);
    // The change of the file may have been taken up before the command was.
    let log = fs::read_to_string(daemon.root().join("daemon.stderr")).unwrap_or_default();
    let told = format!("{}{log}", reloaded.stdout);
    assert!(
        told.contains("removed while it waits at a dialog"),
        "{told}"
    );
    is_seen_as_removed(&daemon, "coder", &program);

    daemon.crash();
    daemon.again();
    daemon.wait_state("coder", "confirming");
    is_seen_as_removed(&daemon, "coder", &program);
    let first = daemon.wait_dialog("coder");
    assert_eq!(first["input"]["command"], "touch asked", "{first}");
    daemon.cmd(&["confirm", "coder", "yes"]).expect(0);
    // Its old policy allows this one; nobody says that it still holds.
    until("the second question", || {
        let dialog = daemon.status("coder")["dialog"].clone();
        (dialog["input"]["command"] == "touch allowed-1").then_some(())
    });
    let why = until("the reason", || {
        let why = daemon.status("coder")["waits_because"].clone();
        why.as_str().map(str::to_owned)
    });
    assert!(why.contains("removed"), "{why}");
    assert!(!daemon.cwd("coder").join("allowed-1").exists());

    // Back in the config, its policy holds again.
    fs::write(daemon.config(), before).expect("it is written");
    daemon.cmd(&["reload"]).expect(0);
    let back = daemon.status("coder");
    assert_eq!(
        (&back["removed"], &back["pid"]),
        (&json!(false), &program),
        "{back}"
    );
    daemon.cmd(&["confirm", "coder", "yes"]).expect(0);
    daemon.wait_state("coder", "idle");
    let steps = vec![call("touch allowed-2"), Step::text("Done.")];
    daemon.endpoint.on("once more", steps);
    daemon.cmd(&["send", "coder", "once more"]).expect(0);
    assert!(daemon.cwd("coder").join("allowed-2").exists());
}
