//! A person's answers: by label, checked before each key.

use super::*;

#[test]
fn confirm_presses_the_digit_of_the_label_and_waits_until_the_dialog_is_gone() {
    for (answer, key, label) in [("yes", "1", "Yes"), ("no", "4", "No")] {
        let mut bench = Bench::idle();
        bench.settled(dialog("d1", "make"));
        bench.put(confirm(2, answer, Some("d1")));
        assert_eq!(bench.keys, [key]);
        assert!(!bench.replies.contains_key(&2));
        bench.see(screen(State::ToolRunning, ""));
        let wanted = Reply::Confirmed {
            dialog: "d1".into(),
            chosen: label.into(),
        };
        assert_eq!(bench.replies.get(&2), Some(&Ok(wanted)));
    }
}

#[test]
fn confirm_is_refused_for_another_dialog_and_for_none() {
    let mut bench = Bench::idle();
    bench.put(confirm(2, "yes", None));
    bench.see(at(dialog("d2", "make")));
    bench.put(confirm(3, "yes", Some("d1")));
    assert_eq!(
        (bench.fault(2), bench.fault(3)),
        (Some(Fault::Refused), Some(Fault::Refused))
    );
    assert!(bench.keys.is_empty());
}

#[test]
fn no_second_key_is_pressed_on_a_dialog_that_stays() {
    let mut bench = Bench::idle();
    bench.settled(dialog("d1", "make"));
    bench.put(confirm(2, "yes", None));
    bench.see(at(dialog("d1", "make")));
    bench.pass(KEY_WORKS);
    assert_eq!(bench.keys, ["1"]);
    assert_eq!(bench.fault(2), Some(Fault::Failed));
    bench.pass(Duration::from_secs(60));
    assert_eq!(bench.keys, ["1"]);
}

#[test]
fn an_unnumbered_menu_is_walked_and_its_row_checked_before_enter() {
    let mut bench = Bench::idle();
    bench.settled(trust(0));
    bench.put(confirm(2, "yes", None));
    assert_eq!(bench.keys, ["Down"]);
    bench.see(at(trust(0)));
    assert_eq!(bench.keys, ["Down"], "the row has not moved yet");
    bench.see(at(trust(1)));
    assert_eq!(bench.keys, ["Down", "Enter"]);
}

#[test]
fn a_key_waits_until_the_dialog_has_stood_long_enough_to_take_it() {
    let mut bench = Bench::idle();
    bench.see(at(dialog("d1", "make")));
    bench.put(confirm(2, "yes", Some("d1")));
    assert!(bench.keys.is_empty());
    assert_eq!(bench.machine.poll_timeout(), Some(bench.now + SETTLED));
    bench.pass(SETTLED);
    assert_eq!(bench.keys, ["1"]);
}

#[test]
fn a_lost_arrow_is_pressed_again_and_enter_never_is() {
    let mut bench = Bench::idle();
    bench.settled(trust(0));
    bench.put(confirm(2, "yes", None));
    bench.pass(ARROW_IS_LOST);
    assert_eq!(bench.keys, ["Down", "Down"]);
    bench.see(at(trust(1)));
    bench.pass(ARROW_IS_LOST);
    bench.pass(KEY_WORKS);
    assert_eq!(bench.keys, ["Down", "Down", "Enter"]);
    assert_eq!(bench.fault(2), Some(Fault::Failed));
}

#[test]
fn a_dialog_that_changes_under_the_walk_gets_no_enter() {
    let mut bench = Bench::idle();
    bench.settled(trust(0));
    bench.put(confirm(2, "yes", None));
    bench.see(at(dialog("d9", "rm -rf /")));
    assert_eq!(bench.keys, ["Down"]);
    assert_eq!(bench.fault(2), Some(Fault::Refused));
}
