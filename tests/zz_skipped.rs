//! The last of the test programs: it lists what the ones before it could not try on this machine. Their own words are
//! captured, so that a skipped test looks like one that has passed.

mod support;

use std::io::Write;
use std::process::{Child, Command, Stdio};
use support::processes::start_of;
use support::skipped::{Run, forget_ended_runs};

#[test]
fn what_was_not_tried_on_this_machine_is_listed_at_the_end() {
    let run = Run::this();
    let skipped = run.skipped();
    if !skipped.is_empty() {
        let lines: Vec<String> = skipped.iter().map(|s| format!("skipped: {s}\n")).collect();
        let text = format!("\nnot tried on this machine:\n{}\n", lines.concat());
        // Past the capture of the test harness, which has only the print macros.
        std::io::stderr()
            .write_all(text.as_bytes())
            .expect("standard error is open");
    }
    run.forget();
    assert_eq!(run.skipped(), [""; 0]);
    forget_ended_runs();
}

/// A process that runs until its input is closed, and the run that it would be.
fn other_run() -> (Child, Run) {
    let mut cat = Command::new("cat");
    let child = cat.stdin(Stdio::piped()).spawn().expect("cat");
    let pid = child.id().cast_signed();
    let started = start_of(pid).expect("its start");
    (child, Run { pid, started })
}

#[test]
fn a_skip_is_noted_once_and_for_its_own_run_alone() {
    let (mut child, run) = other_run();
    // The same pid was given before.
    let before = Run {
        started: run.started - 1,
        ..run
    };
    before.skip("in an earlier run", false);
    run.skip("a thing (needs another)", false);
    run.skip("a thing (needs another)", false);
    run.skip("two\nlines", false);
    forget_ended_runs();
    assert_eq!(before.skipped(), [""; 0], "its run has ended");
    assert_eq!(run.skipped(), ["a thing (needs another)", "two lines"]);
    drop(child.stdin.take());
    child.wait().expect("its end");
    forget_ended_runs();
    assert_eq!(run.skipped(), [""; 0], "this one has ended too");
}

#[test]
fn in_ci_a_skip_is_a_failure() {
    let (mut child, run) = other_run();
    let failed = std::panic::catch_unwind(|| run.skip("a thing", true));
    let said = failed.expect_err("it fails");
    assert_eq!(said.downcast_ref(), Some(&"skipped: a thing".to_owned()));
    assert_eq!(run.skipped(), [""; 0]);
    drop(child.stdin.take());
    child.wait().expect("its end");
}
