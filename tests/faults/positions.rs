//! The daemon is killed while somebody listens or waits: events go on by their position, and who waits gets an answer.

use super::shells::*;
use crate::support::daemon::Daemon;
use crate::support::run::Running;
use crate::support::until;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

const KILLS: u64 = 50;

fn events(printed: &str) -> Vec<Value> {
    let whole = printed.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole.lines().map(serde_json::from_str);
    lines.map(|line| line.expect("a line of JSON")).collect()
}

fn position(event: &Value) -> u64 {
    event["seq"].as_u64().expect("a position")
}

/// What the listener has heard, but for the snapshot at its beginning.
fn happened(listener: &Running) -> Vec<Value> {
    let mut all = events(&listener.printed());
    all.retain(|event| event["event"] != "snapshot");
    all
}

/// Each position behind `after`, and each once.
fn assert_contiguous(heard: &[Value], after: u64) {
    let positions: Vec<u64> = heard.iter().map(position).collect();
    let wanted: Vec<u64> = (after + 1..=after + positions.len() as u64).collect();
    let wrong = positions
        .iter()
        .zip(&wanted)
        .find(|(got, want)| got != want);
    assert_eq!(wrong, None, "{positions:?}");
}

#[test]
fn events_have_no_gap_and_no_double_through_fifty_kills() {
    let mut chance = Chance::new();
    let mut daemon = shells(&["a", "b"], ECHOES);
    daemon.wait_state("a", "idle");
    daemon.wait_state("b", "idle");
    let listener = daemon.spawn(&["events", "-f"]);
    let begun = until("the snapshot", || {
        let heard = events(&listener.printed());
        (heard.len() >= 2).then(|| position(&heard[1]))
    });
    for _ in 0..KILLS {
        killed_at_work(&mut daemon, &mut chance);
        daemon.again();
    }
    daemon.cmd(&["write", "a", "the end\\r"]).expect(0);
    let last = daemon.cmd(&["events", "--after", "0"]).expect(0);
    let last = position(events(&last.stdout).last().expect("events"));
    until("the listener to hear all", || {
        let heard = happened(&listener);
        (heard.last().map(position) >= Some(last)).then_some(())
    });
    let heard = happened(&listener);
    assert_contiguous(&heard, begun);
    assert!(heard.iter().all(|event| event["event"] != "gap"));
    let adopted = heard.iter().filter(|event| event["event"] == "adopted");
    assert_eq!(adopted.count() as u64, 2 * KILLS);

    // A listener that comes later is told the very same.
    let after = begun.to_string();
    let again = daemon.cmd(&["events", "--after", &after]).expect(0);
    let again = events(&again.stdout);
    assert_eq!(again[..heard.len()], heard);
    logs_agree(&daemon, &heard);
    println!("{} events through {KILLS} kills", heard.len());
}

/// Whatever is lost, no position means two events: the listener is told of a gap, and goes on.
#[test]
fn positions_go_on_after_the_state_directory_was_removed() {
    let mut daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let listener = daemon.spawn(&["events", "-f"]);
    until("the snapshot", || {
        (!events(&listener.printed()).is_empty()).then_some(())
    });
    let keys = || {
        let heard = happened(&listener).into_iter();
        heard.filter(|event| event["event"] == "key").count()
    };
    let state = daemon.root().join("state/missiond");
    for round in 1..=3 {
        std::fs::remove_dir_all(&state).expect("a state directory");
        daemon.cmd(&["write", "a", "seen\\r"]).expect(0);
        until("the listener to hear it", || {
            (keys() == 2 * round - 1).then_some(())
        });
        // And once more, if it was made again: nothing is left for the next daemon.
        let _ = std::fs::remove_dir_all(&state);
        daemon.crash();
        assert!(!state.exists());
        daemon.again();
        daemon.wait_state("a", "idle");
        daemon.cmd(&["write", "a", "seen again\\r"]).expect(0);
        until("the listener to hear it", || {
            (keys() == 2 * round).then_some(())
        });
    }
    let positions: Vec<u64> = happened(&listener).iter().map(position).collect();
    assert!(
        positions.is_sorted_by(|one, next| one < next),
        "{positions:?}"
    );
}

/// Events happen, and in the middle of them the daemon is killed.
fn killed_at_work(daemon: &mut Daemon, chance: &mut Chance) {
    let pid = daemon.pid();
    let moment = Duration::from_millis(chance.below(60));
    let killer = std::thread::spawn(move || {
        std::thread::sleep(moment);
        crate::support::processes::kill(pid);
    });
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let mut client = UnixStream::connect(socket).expect("the daemon listens");
    let mut answers = BufReader::new(client.try_clone().expect("a socket"));
    let params = r#"{"slot":"a","bytes":[120]}"#;
    let write = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"write","params":{params}}}"#);
    // Until the daemon has gone: how much it has done by then differs.
    let mut answer = String::new();
    while writeln!(client, "{write}").is_ok() && answers.read_line(&mut answer).is_ok_and(|n| n > 0)
    {
        answer.clear();
    }
    killer.join().expect("it kills");
}

/// What a slot's own log has under a position is the event that listeners were told under it.
fn logs_agree(daemon: &Daemon, heard: &[Value]) {
    let told: BTreeMap<u64, &Value> = heard.iter().map(|event| (position(event), event)).collect();
    let mut compared = 0;
    for slot in ["a", "b"] {
        for event in events(&daemon.logged(&format!("{slot}.events.jsonl"))) {
            if let Some(heard) = told.get(&position(&event)) {
                assert_eq!(*heard, &event);
                compared += 1;
            }
        }
    }
    assert!(compared as u64 > KILLS, "{compared} were compared");
    let all = daemon.cmd(&["events", "--after", "0"]).expect(0);
    let all = events(&all.stdout);
    for slot in ["a", "b"] {
        let told = all
            .iter()
            .filter(|event| event["slot"] == slot)
            .map(position);
        let own = events(&daemon.logged(&format!("{slot}.events.jsonl")));
        let own: Vec<u64> = own.iter().map(position).collect();
        assert_eq!(own, told.collect::<Vec<_>>(), "the own file of {slot}");
        let entries = daemon.log(slot);
        let entries = entries.lines().filter(|line| !line.starts_with(' '));
        assert_eq!(entries.count(), own.len(), "the log of {slot}");
    }
}

/// Waits until so many clients are connected: the kernel lists each by the socket that it came to, as connected (03).
fn until_connected(daemon: &Daemon, clients: usize) {
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let socket = socket.display().to_string();
    until(&format!("{clients} clients"), || {
        let sockets = std::fs::read_to_string("/proc/net/unix").expect("the kernel's list");
        let fields = sockets
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        let is_one =
            |fields: &Vec<&str>| fields.get(5) == Some(&"03") && fields.last() == Some(&&*socket);
        (fields.filter(is_one).count() == clients).then_some(())
    });
}

#[test]
fn a_wait_and_a_follower_outlive_the_daemon() {
    let mut daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let session = ["spawn", "--id", "s", "--", "sh", "-c", ECHOES];
    daemon.cmd(&session).expect(0);
    let follower = daemon.spawn(&["follow", "s"]);
    let says = |daemon: &Daemon, word: &str| {
        daemon.cmd(&["write", "s", &format!("{word}\\r")]).expect(0);
        let line = format!("got {word}\r\n");
        until("the follower", || {
            follower.printed().contains(&line).then_some(())
        });
    };
    says(&daemon, "one");
    until_connected(&daemon, 1);
    // By its socket, the daemon is not looked for: the only connection is the one that waits.
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let at = socket.to_str().expect("a path");
    let output = [
        "wait",
        "a",
        "--output",
        "got it",
        "--timeout",
        "50s",
        "--socket",
        at,
    ];
    let output = daemon.spawn(&output);
    let state = daemon.spawn(&["wait", "a", "--for", "exited", "--socket", at]);
    until_connected(&daemon, 3);
    for _ in 0..3 {
        daemon.crash();
        daemon.again();
    }
    echoes(&daemon, "it");
    let matched = output.end().expect(0);
    assert!(matched.text().contains("got it"), "{matched}");
    says(&daemon, "two");
    assert_eq!(follower.printed(), "got one\r\ngot two\r\n");
    daemon.cmd(&["stop", "a"]).expect(0);
    state.end().expect(0);
    until_connected(&daemon, 1);
    let gone = [
        "wait",
        "a",
        "--for",
        "idle",
        "--timeout",
        "10s",
        "--socket",
        at,
    ];
    let gone = daemon.spawn(&gone);
    until_connected(&daemon, 2);
    daemon.crash();
    gone.end().expect(124);
}

#[test]
fn how_long_a_slot_is_in_its_state_outlives_the_daemon() {
    let mut daemon = shells(&["a", "b"], ECHOES);
    daemon.wait_state("a", "idle");
    daemon.wait_state("b", "idle");
    daemon.cmd(&["stop", "b"]).expect(0);
    let since = |daemon: &Daemon| ["a", "b"].map(|slot| daemon.status(slot)["since"].clone());
    let before = since(&daemon);
    for _ in 0..2 {
        daemon.crash();
        daemon.again();
        daemon.wait_state("a", "idle");
        assert_eq!(since(&daemon), before);
    }
    daemon.cmd(&["restart", "a"]).expect(0);
    daemon.wait_state("a", "idle");
    let after = daemon.status("a");
    assert_ne!(after["since"], before[0]);
    assert_eq!(
        after["restarts"], 0,
        "a person's restart is not one of its own: {after}"
    );
}
