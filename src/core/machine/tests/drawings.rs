//! A no to a dialog whose reading changes before the key, because a process paints over it.

use super::doubt::{asked_about_make, swapped};
use super::*;

/// What a process may paint over the dialog about `make`: each reads as another dialog.
fn paintings() -> [Dialog; 2] {
    [swapped(dialog("d2", "make")), dialog("d2", "git status")]
}

#[test]
fn a_no_that_names_what_the_dialog_was_read_as_before_is_taken() {
    for painted in paintings() {
        for (first, then) in [
            (dialog("d1", "make"), painted.clone()),
            (painted, dialog("d1", "make")),
        ] {
            let seen = first.id.clone();
            let mut bench = asked_about_make();
            bench.settled(first);
            bench.settled(then);
            bench.pass(REDRAWN);
            bench.put(confirm(20, "yes", Some(&seen)));
            assert_eq!(bench.fault(20), Some(Fault::Refused), "a yes is not");
            bench.put(confirm(21, "no", Some(&seen)));
            assert_eq!(bench.keys, ["Esc"]);
            bench.see(screen(State::Idle, ""));
            assert!(bench.replies[&21].is_ok());
        }
    }
}

#[test]
fn a_no_under_way_goes_on_whatever_is_painted_meanwhile() {
    for painted in paintings() {
        let mut bench = asked_about_make();
        bench.see(at(dialog("d1", "make")));
        bench.put(confirm(20, "no", Some("d1")));
        assert!(bench.keys.is_empty(), "it has to settle");
        bench.see(at(painted));
        bench.pass(REDRAWN + SETTLED);
        assert_eq!(bench.keys, ["Esc"]);
    }
}

#[test]
fn who_paints_without_a_pause_puts_no_no_off() {
    for painted in paintings() {
        let mut bench = asked_about_make();
        bench.settled(dialog("d1", "make"));
        bench.see(at(painted.clone()));
        bench.put(confirm(20, "no", Some("d2")));
        let mut passed = Duration::ZERO;
        while bench.keys.is_empty() && passed < KEY_WORKS {
            let next = [dialog("d1", "make"), painted.clone()];
            for seen in next {
                bench.see(at(seen));
                bench.pass(SETTLED / 5);
                passed += SETTLED / 5;
            }
        }
        assert_eq!(bench.keys, ["Esc"], "after {passed:?}");
        assert!(passed <= REDRAWN + SETTLED + SETTLED / 5, "{passed:?}");
    }
}

#[test]
fn a_no_is_not_said_to_another_call() {
    let mut bench = asked_about_make();
    bench.settled(dialog("d1", "make"));
    bench.hear(
        10,
        HookWhat::BeforeTool {
            tool: "Bash".into(),
            input: json!({"command": "make install"}),
            id: Some("t2".into()),
        },
    );
    // Something is painted while one replaces the other.
    bench.settled(dialog("d2", "git status"));
    bench.settled(dialog("d3", "make install"));
    bench.pass(REDRAWN);
    for (token, id) in [(20, "d1"), (21, "d2")] {
        bench.put(confirm(token, "no", Some(id)));
        assert_eq!(bench.fault(token), Some(Fault::Refused), "{id}");
    }
    assert!(bench.keys.is_empty(), "{:?}", bench.keys);
    bench.see(screen(State::Idle, ""));
    bench.settled(dialog("d4", "git status"));
    bench.put(confirm(22, "no", Some("d3")));
    assert_eq!(bench.fault(22), Some(Fault::Refused), "it was gone");
}

/// Esc may be lost. A painting after that does not look like a new dialog.
#[test]
fn a_painted_dialog_is_not_the_end_of_the_one_below_it() {
    for (painted, answer) in paintings().into_iter().zip(["no", "yes"]) {
        let mut bench = asked_about_make();
        bench.settled(dialog("d1", "make"));
        bench.put(confirm(20, answer, Some("d1")));
        assert_eq!(bench.keys.len(), 1);
        bench.see(at(painted));
        assert!(!bench.replies.contains_key(&20));
        bench.pass(KEY_WORKS);
        assert_eq!(bench.fault(20), Some(Fault::Failed));
        assert_eq!(bench.keys.len(), 1, "no second one");
    }
}

#[test]
fn a_key_that_never_found_its_moment_is_not_called_pressed() {
    let mut bench = asked_about_make();
    bench.see(at(dialog("d1", "make")));
    bench.put(confirm(20, "no", Some("d1")));
    bench.see(Observation {
        certain: false,
        ..at(dialog("d1", "make"))
    });
    bench.pass(KEY_WORKS);
    let error = bench.replies[&20].as_ref().expect_err("a refusal");
    assert_eq!(error.fault, Fault::Refused);
    assert!(error.message.contains("withheld"), "{}", error.message);
    assert!(bench.keys.is_empty());
}
