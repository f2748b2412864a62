use super::*;
use serde_json::Value;
use std::path::PathBuf;

fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.jsonl");
    (dir, path)
}

fn say(bus: &Bus, text: &str) -> u64 {
    let text = text.to_owned();
    bus.publish(Some("a"), What::Message { text }).seq
}

fn told(bus: &Bus) -> u64 {
    bus.listen().position
}

fn seqs(replay: Replay) -> Vec<u64> {
    replay.map(|event| event["seq"].as_u64().unwrap()).collect()
}

fn gaps(replay: Replay) -> Vec<(u64, u64)> {
    let gaps = replay.filter(|event| event["event"] == "gap");
    let number = |event: &Value, name: &str| event[name].as_u64().unwrap();
    gaps.map(|event| (number(&event, "after"), number(&event, "first")))
        .collect()
}

#[test]
fn positions_go_on_and_what_was_missed_comes_once() {
    let (_dir, path) = place();
    for boot in 0..5 {
        let bus = Bus::open(&path).unwrap();
        for n in 1..=10 {
            assert_eq!(say(&bus, "x"), boot * 10 + n);
        }
        let last = told(&bus);
        assert_eq!(seqs(bus.replay(3, last)), (4..=last).collect::<Vec<_>>());
        assert_eq!(seqs(bus.replay(last, last)), Vec::<u64>::new());
    }
}

#[test]
fn nobody_is_told_before_it_is_written() {
    let (_dir, path) = place();
    let bus = Bus::open(&path).unwrap();
    let mut listener = bus.listen();
    for n in 1..=500 {
        say(&bus, "x");
        let heard = listener.events.blocking_recv().unwrap();
        assert_eq!(heard.seq, n);
        // The file has it at this moment, for whoever reads it after a kill.
        assert_eq!(EventLog::open(&path).unwrap().last(), n);
    }
}

#[test]
fn a_line_that_a_kill_has_cut_is_not_taken_for_an_event() {
    let (_dir, path) = place();
    let bus = Bus::open(&path).unwrap();
    say(&bus, "x");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("{\"seq\":2,\"event\":\"mess");
    std::fs::write(&path, text).unwrap();
    let next = Bus::open(&path).unwrap();
    assert_eq!(say(&next, "y"), 2);
    let replayed: Vec<Value> = next.replay(0, 2).collect();
    assert_eq!(replayed.len(), 2, "{replayed:?}");
    assert_eq!(replayed[1]["text"], "y");
}

#[test]
fn a_position_that_is_too_old_is_a_gap_with_the_first_that_is_there() {
    let (_dir, path) = place();
    let bus = Bus::open(&path).unwrap();
    let long = "x".repeat(1 << 20);
    for _ in 0..40 {
        say(&bus, &long);
    }
    let first = gaps(bus.replay(0, 40))[0].1;
    assert!(first > 1, "nothing was dropped");
    let all = seqs(bus.replay(0, 40));
    assert_eq!(all, (first - 1..=40).collect::<Vec<_>>());
    assert_eq!(gaps(bus.replay(first - 1, 40)), []);
    let kept: u64 = [path.clone(), crate::files::rotated(&path, 1)]
        .map(|file| file.metadata().unwrap().len())
        .iter()
        .sum();
    assert!(kept <= 17 << 20, "{kept} bytes are kept");
}

#[test]
fn a_log_that_was_removed_is_a_gap_and_no_number_comes_again() {
    let (_dir, path) = place();
    let bus = Bus::open(&path).unwrap();
    for n in 1..=5 {
        assert_eq!(say(&bus, "x"), n);
    }
    drop(Bus::open(&path).unwrap());
    std::fs::remove_file(&path).unwrap();
    let next = Bus::open(&path).unwrap();
    assert_eq!(say(&next, "y"), 6);
    assert_eq!(gaps(next.replay(2, 6)), [(2, 6)]);
    assert_eq!(seqs(next.replay(2, 6)), [5, 6]);
    // A position of another log altogether.
    assert_eq!(gaps(next.replay(99, 6)), [(99, 7)]);
}

#[test]
fn where_the_log_can_not_be_written_listeners_hear_and_no_number_comes_again() {
    let (dir, _) = place();
    let (here, away) = (dir.path().join("here"), dir.path().join("away"));
    std::fs::create_dir(&here).unwrap();
    let path = here.join("events.jsonl");
    let bus = Bus::open(&path).unwrap();
    say(&bus, "written");
    std::fs::rename(&here, &away).unwrap();
    let mut listener = bus.listen();
    let lost = say(&bus, "told all the same");
    assert_eq!(listener.events.blocking_recv().unwrap().seq, lost);
    let warning = listener.events.blocking_recv().unwrap();
    assert!(matches!(warning.what, What::Warning { .. }), "{warning:?}");
    std::fs::rename(&away, &here).unwrap();
    let next = Bus::open(&path).unwrap();
    let later = say(&next, "later");
    assert_eq!(later, warning.seq + 1);
    assert_eq!(gaps(next.replay(1, later)), [(1, later)]);
}
