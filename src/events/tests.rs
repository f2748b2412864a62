use super::*;
use serde_json::Value;
use std::time::{Duration, Instant};

fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("events.jsonl");
    (dir, path)
}

/// Publishes a message, and returns its position once it is written.
fn say(bus: &Bus, text: &str) -> u64 {
    let text = text.to_owned();
    let seq = bus.publish(Some("a"), EventKind::Message { text });
    let begun = Instant::now();
    while told(bus) < seq || !bus.is_settled() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is not told");
        std::thread::yield_now();
    }
    seq
}

fn told(bus: &Bus) -> u64 {
    bus.listen().position
}

fn seqs(replay: EventReplay) -> Vec<u64> {
    replay.map(|event| event["seq"].as_u64().unwrap()).collect()
}

fn gaps(replay: EventReplay) -> Vec<(u64, u64)> {
    let gaps = replay.filter(|event| event["event"] == "gap");
    let number = |event: &Value, name: &str| event[name].as_u64().unwrap();
    gaps.map(|event| (number(&event, "after"), number(&event, "first")))
        .collect()
}

#[test]
fn positions_go_on_and_what_was_missed_comes_once() {
    let (_dir, path) = place();
    let first = told(&Bus::open(&path).unwrap()) + 1;
    for boot in 0..5 {
        let bus = Bus::open(&path).unwrap();
        for n in 0..10 {
            assert_eq!(say(&bus, "x"), first + boot * 10 + n);
        }
        let last = told(&bus);
        let since = (first + 3..=last).collect::<Vec<_>>();
        assert_eq!(seqs(bus.replay(first + 2, last)), since);
        assert_eq!(seqs(bus.replay(0, last))[0], first, "all that is kept");
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
        let heard = listener.events.take().unwrap().unwrap().event.clone();
        assert_eq!(heard.seq, listener.position + n);
        // At this moment the file has it, for a reader after a kill.
        assert_eq!(log::EventLog::open(&path).unwrap().2, heard.seq);
    }
}

#[test]
fn a_line_that_a_kill_has_cut_is_not_taken_for_an_event() {
    let (_dir, path) = place();
    let bus = Bus::open(&path).unwrap();
    let last = say(&bus, "x");
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str(&format!("{{\"seq\":{},\"event\":\"mess", last + 1));
    std::fs::write(&path, text).unwrap();
    let next = Bus::open(&path).unwrap();
    assert_eq!(say(&next, "y"), last + 1);
    let replayed: Vec<Value> = next.replay(last - 1, last + 1).collect();
    assert_eq!(replayed.len(), 2, "{replayed:?}");
    assert_eq!(replayed[1]["text"], "y");
}

#[test]
fn a_position_that_is_too_old_is_a_gap_with_the_first_that_is_there() {
    let (_dir, path) = place();
    let bus = Bus::open(&path).unwrap();
    let begun = told(&bus);
    let long = "x".repeat(1 << 20);
    for _ in 0..40 {
        say(&bus, &long);
    }
    let last = told(&bus);
    let first = gaps(bus.replay(begun, last))[0].1;
    assert!(first > begun + 1, "nothing was dropped");
    let all = seqs(bus.replay(begun, last));
    assert_eq!(all, (first - 1..=last).collect::<Vec<_>>());
    assert_eq!(gaps(bus.replay(first - 1, last)), []);
    assert_eq!(gaps(bus.replay(0, last)), [], "0 is all that is kept");
    let kept: u64 = [path.clone(), crate::os::files::rotated(&path, 1)]
        .map(|file| file.metadata().unwrap().len())
        .iter()
        .sum();
    assert!(kept <= 17 << 20, "{kept} bytes are kept");
}

#[test]
fn a_log_that_was_removed_is_a_gap_and_no_number_comes_again() {
    let (_dir, path) = place();
    let bus = Bus::open(&path).unwrap();
    let begun = told(&bus);
    for n in 1..=5 {
        assert_eq!(say(&bus, "x"), begun + n);
    }
    drop(Bus::open(&path).unwrap());
    std::fs::remove_file(&path).unwrap();
    let next = Bus::open(&path).unwrap();
    let (before, last) = (begun + 2, begun + 6);
    assert_eq!(say(&next, "y"), last);
    assert_eq!(gaps(next.replay(before, last)), [(before, last)]);
    assert_eq!(seqs(next.replay(before, last)), [last - 1, last]);
    // A position of another log altogether.
    assert_eq!(gaps(next.replay(last + 9, last)), [(last + 9, last + 1)]);
}

#[test]
fn where_all_is_removed_no_number_comes_again() {
    let (_dir, path) = place();
    let bus = Bus::open(&path).unwrap();
    for _ in 0..5 {
        say(&bus, "x");
    }
    let last = told(&bus);
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(path.with_extension("position")).unwrap();
    // Fewer than a thousand events in a second, as always.
    while Utc::now().timestamp_millis().unsigned_abs() <= last {
        std::thread::yield_now();
    }
    let next = Bus::open(&path).unwrap();
    let later = say(&next, "y");
    assert!(later > last, "{later} after {last}");
    assert_eq!(gaps(next.replay(last, later)), [(last, later)]);
}

#[test]
fn where_the_log_can_not_be_written_listeners_hear_and_no_number_comes_again() {
    let (dir, _) = place();
    let (here, away) = (dir.path().join("here"), dir.path().join("away"));
    std::fs::create_dir(&here).unwrap();
    let path = here.join("events.jsonl");
    let bus = Bus::open(&path).unwrap();
    let written = say(&bus, "written");
    std::fs::rename(&here, &away).unwrap();
    let mut listener = bus.listen();
    let lost = say(&bus, "told all the same");
    assert_eq!(listener.events.take().unwrap().unwrap().event.seq, lost);
    let warning = listener.events.take().unwrap().unwrap().event.clone();
    assert!(
        matches!(warning.what, EventKind::Warning { .. }),
        "{warning:?}"
    );
    std::fs::rename(&away, &here).unwrap();
    let next = Bus::open(&path).unwrap();
    let later = say(&next, "later");
    assert_eq!(later, warning.seq + 1);
    assert_eq!(gaps(next.replay(written, later)), [(written, later)]);
}

#[test]
fn whoever_is_too_far_behind_is_told_how_many_were_missed() {
    let bus = Bus::default();
    let mut listener = bus.listen();
    for text in ["x", &"x".repeat(100_000)] {
        let before = told(&bus);
        for _ in 0..2000 {
            say(&bus, text);
        }
        let Some(Err(Missed(missed))) = listener.events.take() else {
            panic!("none was missed");
        };
        let first = listener.events.take().unwrap().unwrap();
        assert_eq!(first.event.seq, before + missed + 1);
        let mut left = vec![first];
        left.extend(std::iter::from_fn(|| listener.events.take()).map(Result::unwrap));
        assert_eq!(left.len() as u64, 2000 - missed);
        let bytes: usize = left.iter().map(|told| told.line().len()).sum();
        assert!(left.len() <= 1024 && bytes <= 4 << 20, "{bytes}");
    }
}

#[test]
fn a_line_that_waits_for_its_reader_takes_no_more_memory_than_its_length() {
    let bus = Bus::default();
    let mut events = bus.listen().events;
    say(&bus, &"x".repeat(10_000));
    let line = events.take().unwrap().unwrap().line();
    drop((bus, events));
    let line = Vec::from(line);
    assert_eq!(line.capacity(), line.len());
}

/// Waits like the health check, which notices a disk that hangs.
fn until_shown(bus: &Bus, seq: u64) {
    let begun = Instant::now();
    while told(bus) < seq {
        assert!(begun.elapsed() < Duration::from_secs(60), "it is not told");
        bus.hanging(Path::new("logs"));
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn tell(bus: &Bus, text: &str) -> u64 {
    let text = text.to_owned();
    bus.publish(Some("a"), EventKind::Message { text })
}

fn until_settled(bus: &Bus) {
    let begun = Instant::now();
    while !bus.is_settled() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it hangs");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn while_the_disk_hangs_listeners_hear_and_no_number_comes_again() {
    let (_dir, path) = place();
    let bus = Bus::open(&path).unwrap();
    let written = say(&bus, "written");
    let hung = bus.writer.as_ref().unwrap().hang();
    let mut listener = bus.listen();
    let lost = tell(&bus, "told all the same");
    assert!(listener.events.take().is_none(), "it is not written yet");
    until_shown(&bus, lost);
    assert_eq!(listener.events.take().unwrap().unwrap().event.seq, lost);
    let [(place, text)] = &bus.hanging(Path::new("logs"))[..] else {
        panic!("one disk hangs");
    };
    assert!(
        place.is_absolute() && text.contains("does not answer"),
        "{text}"
    );

    // A daemon that starts now, after a kill of this one, uses none of these numbers again.
    let next = Bus::open(&path).unwrap();
    let later = say(&next, "later");
    assert!(later > lost, "{later} after {lost}");
    assert_eq!(gaps(next.replay(written, later)), [(written, later)]);
    drop(hung);
    until_settled(&bus);
}

#[test]
fn what_was_told_while_the_disk_hung_is_written_when_it_answers() {
    let (_dir, path) = place();
    let bus = Bus::open(&path).unwrap();
    let first = say(&bus, "written");
    let hung = bus.writer.as_ref().unwrap().hang();
    let numbers: Vec<_> = (0..10).map(|_| tell(&bus, "x")).collect();
    let last = *numbers.last().unwrap();
    until_shown(&bus, last);
    drop(hung);
    until_settled(&bus);
    assert_eq!(bus.hanging(Path::new("logs")), []);
    let all = seqs(bus.replay(first, last));
    assert_eq!(all, (first + 1..=last).collect::<Vec<_>>());
    // No number is still marked as used.
    let next = Bus::open(&path).unwrap();
    assert_eq!(say(&next, "y"), last + 1);
}

#[test]
fn what_does_not_fit_while_the_disk_hangs_is_counted_and_told() {
    let (_dir, path) = place();
    let bus = Bus::open(&path).unwrap();
    let first = say(&bus, "written");
    let hung = bus.writer.as_ref().unwrap().hang();
    let long = "x".repeat(1 << 20);
    let numbers: Vec<_> = (0..20).map(|_| tell(&bus, &long)).collect();
    let last = *numbers.last().unwrap();
    until_shown(&bus, last);
    let (_, health) = bus.hanging(Path::new("logs")).remove(0);
    assert!(
        health.contains(" entries of the log are missing"),
        "{health}"
    );
    drop(hung);
    until_settled(&bus);
    let until = told(&bus);
    let all: Vec<Value> = bus.replay(first, until).collect();
    let kept = all
        .iter()
        .filter(|event| event["event"] == "message")
        .count() as u64;
    let missing = last - first - kept;
    assert!(missing > 0 && kept > 0, "{kept} of {}", last - first);
    let told = all.last().unwrap()["text"].as_str().unwrap();
    let said = format!("{missing} entries of the log are missing");
    assert!(told.contains(&said), "{told}");
    assert_eq!(gaps(bus.replay(first, until)).len(), 1);
}
