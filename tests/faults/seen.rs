//! What hampers a slot or the daemon is in the status, and an event when it begins and when it ends.

use super::shells::{ECHOES, shells};
use crate::support::daemon::Daemon;
use crate::support::disk::SmallDisk;
use crate::support::until;
use rustix::process::{Pid, Signal, kill_process};

fn status_has(daemon: &Daemon, words: &str) -> bool {
    daemon.cmd(&["status"]).expect(0).stdout.contains(words)
}

#[test]
fn a_full_disk_is_in_the_status_until_there_is_room() {
    let mut daemon = shells(&["a"], "sleep 1000");
    daemon.cmd(&["down", "--yes"]).expect(0);
    let Some(disk) = SmallDisk::mount(&daemon.logs(), "1m") else {
        return;
    };
    daemon.again();
    daemon.wait_state("a", "idle");
    let events = daemon.spawn(&["events", "-f"]);
    until("the snapshot", || {
        events.printed().contains('\n').then_some(())
    });
    assert!(!status_has(&daemon, "is full"));
    disk.fill();
    let full = format!("the disk of the log directory {}", daemon.logs().display());
    until("the full disk to be seen", || {
        status_has(&daemon, &format!("{full} is full")).then_some(())
    });
    let remedy = format!("make room on the disk of {}", daemon.logs().display());
    assert!(status_has(&daemon, &remedy));
    // Scripts find it with each slot, and without any.
    let of_slot = daemon.status("a")["health"].clone();
    for health in [&of_slot, &daemon.json(&["stats"])["health"]] {
        let found = health.as_array().expect("a list").iter();
        let found: Vec<_> = found
            .filter(|one| one["condition"] == "disk_full")
            .collect();
        let [full_disk] = found[..] else {
            panic!("{health}");
        };
        let text = full_disk["text"].as_str().expect("a text");
        assert!(text.starts_with(&format!("{full} is full: ")), "{health}");
        assert_eq!(full_disk["remedy"], remedy);
        let since: chrono::DateTime<chrono::Utc> =
            serde_json::from_value(full_disk["since"].clone()).expect("a time");
        assert!(since <= chrono::Utc::now(), "{health}");
    }
    disk.free();
    until("the room to be seen", || {
        let is_seen = events.printed().contains(&format!("{full} has room again"));
        (is_seen && !status_has(&daemon, "is full")).then_some(())
    });
    until("nothing to be wrong", || {
        let is_well = |value: serde_json::Value| value["health"].is_null();
        (is_well(daemon.status("a")) && is_well(daemon.json(&["stats"]))).then_some(())
    });
    let told = events.kill();
    assert_eq!(told.matches(&format!("{full} is full")).count(), 1);
    daemon.cmd(&["down", "--yes"]).expect(0);
}

#[test]
fn a_stopped_program_or_shim_is_told_with_the_way_to_continue_it() {
    let daemon = shells(&["a", "b"], "sleep 1000");
    for slot in ["a", "b"] {
        daemon.wait_state(slot, "idle");
    }
    for (whose, name) in [("pid", "its program"), ("shim_pid", "its shim")] {
        let status = daemon.status("a");
        assert!(status["stopped"].is_null(), "{status}");
        let number = status[whose].as_i64().expect("a pid");
        let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
        let signal = |signal| kill_process(pid.expect("a pid"), signal).expect("it runs");
        let ends = daemon.log("a").matches("is stopped any more").count();
        signal(Signal::STOP);
        let begins = format!("{name} was stopped by a signal");
        let way_out = format!("SIGCONT to process {number} continues it");
        until("the stop to be told", || {
            let log = daemon.log("a");
            let line = log.lines().find(|line| line.contains(&begins))?;
            line.ends_with(&way_out).then_some(())
        });
        let status = daemon.status("a")["stopped"].to_string();
        assert!(status.contains(&begins), "{status}");
        assert!(status_has(&daemon, &begins));
        assert!(daemon.status("b")["stopped"].is_null());
        signal(Signal::CONT);
        until("its end to be told", || {
            let now = daemon.log("a").matches("is stopped any more").count();
            (now > ends).then_some(())
        });
    }
    assert!(daemon.status("a")["stopped"].is_null());
}

/// A daemon that is killed comes back also on a full disk, with its slots, and says what it can't do.
#[test]
fn a_killed_daemon_starts_again_on_a_full_disk_and_says_so() {
    for place in ["logs", "state/missiond/missiond"] {
        let mut daemon = shells(&["a"], ECHOES);
        let place = daemon.root().join(place);
        daemon.cmd(&["down", "--yes"]).expect(0);
        daemon.ended();
        let Some(disk) = SmallDisk::mount(&place, "512k") else {
            return;
        };
        daemon.again();
        daemon.wait_state("a", "idle");
        let pid = daemon.status("a")["pid"].clone();
        disk.fill();
        daemon.crash();
        daemon.again();
        daemon.wait_state("a", "idle");
        assert_eq!(daemon.status("a")["pid"], pid, "the same program");
        until("the full disk to be told", || {
            let shown = daemon.cmd(&["status"]).stdout;
            shown
                .contains(&format!("{} is full", place.display()))
                .then_some(())
        });
        disk.free();
        until("the end of it to be told", || {
            let shown = daemon.cmd(&["status"]).stdout;
            (!shown.contains("is full")).then_some(())
        });
        daemon.cmd(&["down", "--yes"]).expect(0);
        daemon.ended();
    }
}
