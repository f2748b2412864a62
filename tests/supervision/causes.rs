//! Why a slot is down, and whether it is started again.

use super::scripts::{QUICK, claude, log_when, shell, status_when};
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{skip, until};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

const LIMITED: &str = "echo \"You've hit your session limit · resets 3pm\"; exit 1";

fn daemon(setup: &Setup) -> Daemon {
    Daemon::start_with(setup, &["true".to_owned()])
}

#[test]
fn each_end_has_its_cause_and_what_no_restart_can_cure_is_left_alone() {
    let never = "restart = \"never\"";
    let setup = Setup::new()
        .slot_with("absent", "command = [\"/no/such/program\"]")
        .slot_with("unready", "command = [\"/etc/passwd\"]")
        .slot_with("crashes", &shell("kill -SEGV $$", never))
        .slot_with("killed", &shell("kill -KILL $$", never))
        .slot_with("clean", &shell("exit 0", ""))
        .slot_with(
            "hungry",
            &claude("echo 'JavaScript heap out of memory'; kill -ABRT $$", never),
        )
        .slot_with("older", &claude("sleep 1000", "version = \"2.1.324\""))
        .slot_with("limited", &claude(LIMITED, "on_limit = \"stop\""))
        .slot_with("logged-out", &claude("echo 'Not logged in'; exit 1", ""))
        .slot_with(
            "bad-flag",
            &claude("echo \"error: unknown option '--x'\"; exit 1", ""),
        );
    let daemon = daemon(&setup);
    let expected = [
        ("absent", "error", "missing program"),
        ("unready", "error", "missing program"),
        ("crashes", "exited", "crash"),
        ("killed", "exited", "killed by a signal"),
        ("clean", "exited", "clean exit"),
        ("hungry", "exited", "out of memory"),
        ("older", "error", "wrong version"),
        ("limited", "exited", "usage limit"),
        ("logged-out", "error", "not logged in"),
        ("bad-flag", "error", "bad settings"),
    ];
    for (slot, state, cause) in expected {
        let status = until(&format!("the cause of {slot}"), || {
            Some(daemon.status(slot)).filter(|status| status["cause"] == cause)
        });
        assert_eq!(status["state"], state, "{status}");
        assert_eq!(status["restarts"], 0, "{status}");
        let shown = daemon.cmd(&["status", slot]).expect(0).stdout;
        assert!(shown.contains(cause), "{shown}");
        assert!(daemon.log(slot).contains(cause), "{}", daemon.log(slot));
    }
    assert!(daemon.log("unready").contains("make it executable"));
    assert!(daemon.log("crashes").contains("crash: signal 11"));
    assert!(daemon.log("older").contains("2.1.324"));
    assert!(daemon.log("logged-out").contains("Not logged in"));
}

/// Nobody is told that a slot is down which is about to start, and the log tells things in their order.
#[test]
fn a_slot_that_is_about_to_start_is_starting() {
    let script = "case \"$*\" in *--version*) while [ ! -e go ]; do sleep 0.02; done; exit;; esac\n\
        exec sleep 1000";
    let command = toml::Value::from(vec!["sh", "-fc", script, "claude"]);
    let daemon = daemon(&Setup::new().slot_with("slow", &format!("command = {command}")));
    let status = daemon.status("slow");
    assert_eq!(
        (&status["state"], &status["doing"], &status["pid"]),
        (&json!("starting"), &json!("starting"), &json!(null))
    );
    fs::write(daemon.cwd("slow").join("go"), "").expect("it can be written");
    status_when(&daemon, "slow", "its program", |status| {
        status["pid"].is_u64()
    });
    let log = log_when(&daemon, "slow", "  started ");
    let place = |words: &str| {
        log.find(words)
            .unwrap_or_else(|| panic!("{words} in {log}"))
    };
    assert!(place("exited -> starting") < place("  started "), "{log}");
}

/// The usage limit is waited for as long as the screen says.
#[test]
fn a_usage_limit_with_a_time_is_waited_for() {
    let script = "echo \"You've hit your session limit · resets Jan 2, 2090\"; exit 1";
    let mut daemon = daemon(&Setup::new().slot_with("limited", &claude(script, "")));
    let status = status_when(&daemon, "limited", "its end", |status| {
        status["cause"] == "usage limit" && status["restarts"] == 1
    });
    let doing = status["doing"].as_str().unwrap_or_default();
    assert!(
        doing.contains("; restart 1 in ") && doing.contains("years"),
        "{status}"
    );
    // Nor does the next daemon try it before.
    daemon.crash();
    daemon.again();
    let status = daemon.status("limited");
    let doing = status["doing"].as_str().unwrap_or_default();
    assert!(
        doing.starts_with("usage limit; restart 1 in ") && doing.contains("years"),
        "{status}"
    );
    // A person need not wait.
    daemon.cmd(&["start", "limited"]).expect(0);
    until("another start", || {
        (daemon.log("limited").matches("  started ").count() == 2).then_some(())
    });
}

/// The reason, the last screen and the notice; and a person's start begins anew.
#[test]
fn a_slot_that_fails_too_often_is_given_up_and_a_person_is_fetched_once() {
    let note = "printf '%s|%s|%s|%s\\n' \"$MISSIOND_EVENT\" \"$MISSIOND_SLOT\" \"$MISSIOND_TEXT\" \"$1\" >> notices";
    let notify = toml::Value::from(vec!["sh", "-c", note, "sh"]);
    let more = format!("{QUICK}restart_tries = 3\n\n[notify]\ncommand = {notify}\n");
    let script = "echo; echo the disk is made of cheese; exit 3";
    let daemon = daemon(&Setup::new().slot_with("fails", &shell(script, &more)));
    let status = status_when(&daemon, "fails", "given up", |status| {
        status["state"] == "error"
    });
    assert_eq!(status["restarts"], 2, "{status}");
    assert_eq!(status["cause"], "failed");
    let reason = status["last_error"].as_str().unwrap_or_default();
    assert!(
        reason.contains("exit 3: the disk is made of cheese"),
        "{status}"
    );
    let log = log_when(&daemon, "fails", "its last screen was:");
    assert!(log.contains("gave up"), "{log}");
    let notices = daemon.config().with_file_name("notices");
    let told = until("a notice", || {
        fs::read_to_string(&notices)
            .ok()
            .filter(|told| told.ends_with('\n'))
    });
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.starts_with("gave_up|fails|failed: exit 3"), "{told}");
    assert!(told.contains("|fails: gave_up: failed"), "{told}");
    daemon.cmd(&["start", "fails"]).expect(0);
    until("three more failures", || {
        let log = daemon.log("fails");
        (log.matches("gave up").count() == 2).then_some(())
    });
}

#[test]
fn a_persons_stop_wins_over_a_restart_that_waits() {
    let setup = Setup::new()
        .slot_with("waits", &shell("exit 1", "restart_delay = \"1h\""))
        .slot_with("fails", &shell("exit 1", "restart_tries = 1"))
        .slot_with("runs", &shell("exec sleep 1000", ""));
    let mut daemon = daemon(&setup);
    let status = status_when(&daemon, "waits", "waiting", |status| {
        status["restarts"] == 1
    });
    let doing = status["doing"].as_str().unwrap_or_default();
    assert!(doing.contains("restart 1 in"), "{status}");
    daemon.cmd(&["stop", "waits"]).expect(0);
    let status = daemon.status("waits");
    assert_eq!(
        (&status["state"], &status["doing"]),
        (&json!("exited"), &json!("stopped"))
    );
    // Also over a daemon that comes after one that was killed.
    status_when(&daemon, "fails", "given up", |status| {
        status["state"] == "error"
    });
    daemon.crash();
    daemon.again();
    daemon.wait_state("runs", "idle");
    let status = daemon.status("waits");
    assert_eq!(
        (&status["state"], &status["doing"], &status["restarts"]),
        (&json!("exited"), &json!("stopped"), &json!(1))
    );
    assert_eq!(daemon.status("fails")["state"], "error");
    for slot in ["waits", "fails"] {
        assert_eq!(daemon.log(slot).matches("started").count(), 1);
    }
    // One that ended in order begins as it is set.
    daemon.cmd(&["down", "--yes"]).expect(0);
    daemon.again();
    until("another start", || {
        (daemon.log("waits").matches("started").count() == 2).then_some(())
    });
}

/// A group of processes that may use little memory, where the kernel lets us make one.
struct Group(PathBuf);

impl Group {
    fn make(name: &str) -> Option<Group> {
        let kinds = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ];
        for (root, limit) in kinds {
            let group = Group(Path::new(root).join(name));
            let made = fs::create_dir(&group.0).is_ok();
            if made && fs::write(group.0.join(limit), "30M").is_ok() {
                return Some(group);
            }
        }
        skip("a kill by the kernel is not tried (needs root and a memory cgroup)");
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It can be removed once nobody is in it.
        until("the group to be left", || {
            (!self.0.exists() || fs::remove_dir(&self.0).is_ok()).then_some(())
        });
    }
}

#[test]
fn a_kill_by_the_kernel_for_want_of_memory_is_named() {
    let Some(group) = Group::make(&format!("missiond-{}", std::process::id())) else {
        return;
    };
    let hoard =
        "echo $$ > GROUP/cgroup.procs; x=$(head -c 80000000 /dev/zero | tr '\\0' a); echo ${#x}";
    let script = hoard.replace("GROUP", &group.0.display().to_string());
    let setup = Setup::new().slot_with("hungry", &shell(&script, "restart = \"never\""));
    let daemon = daemon(&setup);
    let status = status_when(&daemon, "hungry", "its end", |status| {
        status["cause"].is_string()
    });
    assert_eq!(status["cause"], "out of memory", "{status}");
}

/// A start waits for the program to say its version. Nobody else waits with it, and a stop cancels it.
#[test]
fn a_program_that_does_not_say_its_version_holds_up_nobody() {
    let never = "case \"$*\" in *--version*) touch asked; exec sleep 1000;; esac";
    let command = toml::Value::from(vec!["sh", "-fc", never, "claude"]);
    let slot = format!("command = {command}\nautostart = false");
    let daemon = daemon(&Setup::new().slot_with("mute", &slot));
    let starting = daemon.spawn(&["start", "mute"]);
    let asked = daemon.cwd("mute").join("asked");
    until("the question for the version", || {
        asked.exists().then_some(())
    });

    assert_eq!(daemon.status("mute")["state"], "starting");
    daemon.cmd(&["screen", "mute"]).expect(0);
    daemon.cmd(&["search", "mute", "x"]).expect(0);
    daemon.cmd(&["stop", "mute"]).expect(0);
    let refused = starting.end().expect(1);
    assert!(
        refused.stderr.contains("stopped before it had started"),
        "{refused}"
    );
    let status = daemon.status("mute");
    assert_eq!(status["state"], "exited", "{status}");
    assert_eq!(status["last_error"], "stopped", "{status}");
}
