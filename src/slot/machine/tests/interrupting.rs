//! One Esc where it helps, and none where it harms.

use super::*;

#[test]
fn interrupt_presses_one_esc_when_busy_and_none_when_idle() {
    let mut bench = Bench::idle();
    bench.put(Input::Interrupt(2));
    assert!(bench.keys.is_empty());
    assert_eq!(
        bench.replies.get(&2),
        Some(&Ok(Reply::Interrupted("nothing")))
    );
    bench.see(screen(State::Thinking, ""));
    bench.put(Input::Interrupt(3));
    bench.put(Input::Interrupt(4));
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
    bench.put(Input::Interrupt(2));
    bench.put(Input::Interrupt(3));
    assert_eq!(bench.keys, ["4"]);
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
    bench.put(Input::Interrupt(2));
    bench.see(at(written("d2", "make", "4")));
    bench.pass(KEY_WORKS);
    assert_eq!(bench.fault(2), Some(Fault::Failed));
    assert_eq!(bench.keys, ["4"]);
}

#[test]
fn whoever_waits_for_an_interrupted_turn_is_told_so() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.arrives("hello");
    bench.see(screen(State::Thinking, ""));
    bench.put(Input::Interrupt(3));
    bench.see(screen(State::Idle, ""));
    assert!(bench.has(&Effect::FindAnswer));
    bench.put(Input::Found(answer_before()));
    assert_eq!(bench.fault(2), Some(Fault::Failed));
}

/// The transcript is silent, and the answer of an earlier turn stands on the screen.
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
    // Somebody pressed Esc at the terminal: nobody has told the machine.
    bench.see(screen(State::Idle, ""));
    bench.see(screen(State::Idle, "hello"));
    bench.pass(IDLE_IS_OVER);
    assert!(bench.has(&Effect::FindAnswer));
    bench.put(Input::Found(answer_before()));
    assert_eq!(bench.fault(2), Some(Fault::Failed));
}
