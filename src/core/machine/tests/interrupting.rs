//! One Esc if it helps, and none if it harms.

use super::*;

#[test]
fn interrupt_presses_one_esc_when_busy_and_none_when_idle() {
    let mut bench = Bench::idle();
    bench.put(interrupt(2));
    assert!(bench.keys.is_empty());
    assert_eq!(
        bench.replies.get(&2),
        Some(&Ok(Reply::Interrupted("nothing")))
    );
    bench.see(screen(State::Thinking, ""));
    bench.put(interrupt(3));
    bench.put(interrupt(4));
    assert_eq!(bench.keys, ["Esc"]);
    bench.see(screen(State::Idle, ""));
    for token in [3, 4] {
        assert_eq!(
            bench.replies.get(&token),
            Some(&Ok(Reply::Interrupted("interrupted")))
        );
    }
}

#[test]
fn interrupt_declines_a_dialog_and_never_approves_it() {
    let mut bench = Bench::idle();
    bench.settled(dialog("d1", "make"));
    bench.put(interrupt(2));
    bench.put(interrupt(3));
    assert_eq!(bench.keys, ["Esc"]);
    assert!(!bench.replies.contains_key(&2), "it is still up");
    bench.see(screen(State::Idle, ""));
    for token in [2, 3] {
        assert_eq!(
            bench.replies.get(&token),
            Some(&Ok(Reply::Interrupted("declined")))
        );
    }
}

#[test]
fn a_dialog_that_an_interrupt_has_not_ended_is_not_called_declined() {
    let mut bench = Bench::idle();
    bench.settled(dialog("d1", "make"));
    bench.put(interrupt(2));
    bench.see(at(written("d2", "make", "4")));
    bench.pass(KEY_WORKS);
    assert_eq!(bench.fault(2), Some(Fault::Failed));
    assert_eq!(bench.keys, ["Esc"]);
}

#[test]
fn whoever_waits_for_an_interrupted_turn_is_told_so() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.arrives("hello");
    bench.see(screen(State::Thinking, ""));
    bench.put(interrupt(3));
    bench.see(screen(State::Idle, ""));
    assert!(bench.has(&Effect::FindAnswer));
    bench.put(Input::Found(answer_before()));
    assert_eq!(bench.fault(2), Some(Fault::Failed));
}

/// The transcript is silent, and the screen shows the answer of an earlier turn.
fn answer_before() -> Answer {
    Answer {
        text: Some("of the turn before".to_owned()),
        source: "screen",
        failure: None,
    }
}

#[test]
fn a_message_that_stands_in_the_input_box_again_was_not_answered() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.arrives("hello");
    bench.see(screen(State::Thinking, ""));
    // Somebody pressed Esc at the terminal, unknown to the machine.
    bench.see(screen(State::Idle, ""));
    bench.see(screen(State::Idle, "hello"));
    bench.pass(IDLE_IS_OVER);
    assert!(bench.has(&Effect::FindAnswer));
    bench.put(Input::Found(answer_before()));
    assert_eq!(bench.fault(2), Some(Fault::Failed));
}

/// The verdicts in the audit: each decision, its reason and who decided.
fn audited(bench: &Bench) -> Vec<(Decision, &str, &Decider)> {
    let mut found = Vec::new();
    for effect in &bench.others {
        if let Effect::Audit(verdict, _, decider) = effect {
            found.push((verdict.decision, verdict.why.as_str(), decider));
        }
    }
    found
}

const NO: &str = "a person interrupts at a dialog";

fn person() -> Decider {
    Decider::Person(a_person())
}

#[test]
fn at_a_dialog_a_persons_interrupt_is_audited_as_their_no() {
    let mut bench = Bench::idle();
    bench.settled(dialog("d1", "make"));
    bench.put(interrupt(2));
    bench.put(interrupt(3));
    bench.see(screen(State::Idle, ""));
    assert_eq!(audited(&bench), [(Decision::Deny, NO, &person())]);
}

#[test]
fn a_no_of_an_interrupt_that_came_to_nothing_is_taken_back_in_the_audit() {
    let mut bench = Bench::idle();
    bench.settled(dialog("d1", "make"));
    bench.put(interrupt(2));
    bench.see(at(written("d2", "make", "4")));
    bench.pass(KEY_WORKS);
    let why = "not answered so far: the key was pressed, but the dialog is still up";
    let expected = [
        (Decision::Deny, NO, &person()),
        (Decision::Ask, why, &person()),
    ];
    assert_eq!(audited(&bench), expected);
}

#[test]
fn a_task_that_is_taken_back_is_no_persons_no() {
    for by in [Interrupter::Task, Interrupter::Slot] {
        let mut bench = Bench::idle();
        bench.settled(dialog("d1", "make"));
        bench.put(Input::Interrupt(Interruption { token: 2, by }));
        assert_eq!(bench.keys, ["Esc"]);
        assert_eq!(audited(&bench), []);
    }
}

#[test]
fn an_esc_that_was_withheld_for_a_dialog_is_a_persons_no_to_it() {
    let mut bench = Bench::idle();
    bench.see(screen(State::Thinking, ""));
    bench.put(interrupt(2));
    bench.put(Input::Withheld(at(dialog("d1", "make"))));
    bench.pass(SETTLED);
    assert_eq!(bench.keys, ["Esc", "Esc"]);
    assert_eq!(audited(&bench), [(Decision::Deny, NO, &person())]);
}
