//! A person's answers: by label, checked before each key.

use super::*;

#[test]
fn confirm_presses_the_digit_of_the_label_and_waits_until_the_dialog_is_gone() {
    for (answer, key, label) in [("yes", "1", "Yes"), ("no", "Esc", "Esc")] {
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

#[test]
fn in_a_text_field_no_is_esc_and_everything_else_is_refused() {
    let mut bench = Bench::idle();
    bench.settled(written("d1", "make", "go on"));
    for (token, answer) in [(2, "yes"), (3, "Yes, go on"), (4, "Yes, and don't ask")] {
        bench.put(confirm(token, answer, None));
        assert_eq!(bench.fault(token), Some(Fault::Refused), "{answer}");
    }
    assert!(bench.keys.is_empty());
    bench.put(confirm(5, "no", None));
    assert_eq!(bench.keys, ["Esc"]);
    bench.see(screen(State::Idle, ""));
    assert!(bench.replies[&5].is_ok());
}

#[test]
fn a_dialog_about_the_same_call_in_its_place_was_not_answered() {
    let mut bench = Bench::idle();
    bench.settled(dialog("d1", "make"));
    bench.told.clear();
    bench.put(confirm(2, "no", None));
    bench.see(at(written("d2", "make", "4")));
    assert!(!bench.replies.contains_key(&2), "it may go yet");
    bench.pass(KEY_WORKS);
    assert_eq!(bench.fault(2), Some(Fault::Failed));
    assert_eq!(bench.keys, ["Esc"]);
    let verdicts: Vec<(Decision, &str)> = bench.told.iter().filter_map(verdict).collect();
    let taken_back = "not answered so far: the key was pressed, but the dialog is still up";
    assert_eq!(
        verdicts,
        [
            (Decision::Deny, "a person chose Esc"),
            (Decision::Ask, taken_back)
        ]
    );
}

fn verdict(told: &EventKind) -> Option<(Decision, &str)> {
    match told {
        EventKind::Verdict { verdict, why, .. } => Some((*verdict, why)),
        _ => None,
    }
}

#[test]
fn a_dialog_about_another_call_in_its_place_shows_that_the_first_was_answered() {
    let named = |id: &str, command: &str, request: &str| Dialog {
        request: Some(request.to_owned()),
        ..dialog(id, command)
    };
    for next in [named("d2", "make test", "t1"), named("d2", "make", "t2")] {
        let first = match next.request.as_deref() {
            Some("t2") => named("d1", "make", "t1"),
            _ => dialog("d1", "make"),
        };
        let other = Dialog {
            request: next.request.clone().filter(|_| first.request.is_some()),
            ..next
        };
        let mut bench = Bench::idle();
        bench.settled(first);
        bench.put(confirm(2, "yes", None));
        bench.see(at(other));
        assert!(bench.replies[&2].is_ok());
    }
}

#[test]
fn an_esc_that_only_left_a_field_is_followed_by_one_more() {
    let noting = |selected| Dialog {
        selected,
        complete: selected.is_some(),
        ..dialog("d1", "make")
    };
    let mut bench = Bench::idle();
    bench.settled(noting(None));
    bench.put(confirm(2, "no", None));
    bench.see(at(noting(None)));
    assert_eq!(bench.keys, ["Esc"]);
    bench.see(at(noting(Some(0))));
    bench.see(at(noting(Some(0))));
    assert_eq!(bench.keys, ["Esc", "Esc"]);
    bench.pass(KEY_WORKS);
    assert_eq!(bench.keys, ["Esc", "Esc"], "and no third");
    assert_eq!(bench.fault(2), Some(Fault::Failed));
}
