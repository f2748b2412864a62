//! Recorded sessions of the real Claude Code, and somebody who joins at any moment of them: his terminal shows what the
//! slot shows, to the end.

use missiond::core::cast::{CastKind, Recording};
use missiond::core::terminal::{At, Passage, Terminal};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use std::fs;
use std::path::{Path, PathBuf};

/// Moments at which somebody joins each recording.
const JOINS: u32 = 2;

fn recordings() -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings"),
        &mut found,
    );
    found.sort();
    assert!(found.len() > 10, "only {} recordings", found.len());
    found
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "cast")
        {
            found.push(path);
        }
    }
}

/// All that a recorded program wrote, and the size of its terminal at first.
fn output_of(path: &Path) -> (usize, usize, String) {
    let text = fs::read(path).expect("a recording");
    let recording = Recording::read(text.as_slice()).expect("a header");
    let (cols, rows) = (recording.header().cols, recording.header().rows);
    let mut output = String::new();
    for event in recording {
        match event.expect("a good event").what {
            CastKind::Output(text) => output.push_str(&text),
            CastKind::Resize { .. } | CastKind::Marker(_) | CastKind::Exit => {}
        }
    }
    (cols, rows, output)
}

/// Plays the output to the slot, and from `join` on to the one who joins, as the daemon does.
fn play(path: &Path, join: usize) -> Result<(), TestCaseError> {
    let (cols, rows, output) = output_of(path);
    // The shim passes whole characters on.
    let join = output.floor_char_boundary(join % (output.len() + 1));
    let mut slot = Terminal::new(cols, rows);
    let mut passage = Passage::default();
    let (before, mut rest) = output.split_at(join);
    slot.feed(At::ZERO, before.as_bytes());
    passage.pass(before.as_bytes());
    let mut viewer = Terminal::new(cols, rows);
    viewer.feed(At::ZERO, &slot.snapshot());
    let mut below_is_missing = slot.is_alternate();
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(rest.floor_char_boundary(1000.min(rest.len())));
        rest = after;
        slot.feed(At::ZERO, chunk.as_bytes());
        let passed = passage.pass(chunk.as_bytes()).bytes;
        if below_is_missing && !slot.is_alternate() {
            below_is_missing = false;
            viewer.feed(At::ZERO, &slot.snapshot());
        } else {
            viewer.feed(At::ZERO, &passed);
        }
        let asked = viewer.take_replies();
        if !asked.is_empty() {
            let text = String::from_utf8_lossy(&asked).into_owned();
            return Err(TestCaseError::fail(format!("a question passed: {text:?}")));
        }
    }
    let (seen, shown) = (viewer.screen(), slot.screen());
    if seen != shown {
        let rows = |screen: missiond::core::terminal::Screen| -> Vec<String> {
            screen
                .lines
                .into_iter()
                .map(|line| line.text.clone())
                .collect()
        };
        let why = format!(
            "{} joined at {join}: {:#?}\n{:#?}",
            path.display(),
            rows(seen),
            rows(shown)
        );
        return Err(TestCaseError::fail(why));
    }
    Ok(())
}

#[test]
fn whoever_joins_a_recorded_session_sees_what_it_shows() {
    for path in recordings() {
        let config = Config {
            cases: JOINS,
            failure_persistence: None,
            ..Config::default()
        };
        let outcome = TestRunner::new(config).run(&(0usize..10_000_000), |join| play(&path, join));
        assert!(outcome.is_ok(), "{outcome:?}");
    }
}
