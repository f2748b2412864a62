//! Answers that arrive while the program redraws its screen.

use super::*;
use crate::core::machine::waits::DRAWN_AT_LAST;

/// A known dialog whose screen the program has not redrawn yet.
fn redrawing(id: &str) -> Observation {
    Observation {
        certain: false,
        redrawing: true,
        ..at(dialog(id, "make"))
    }
}

fn bench() -> Bench {
    let mut bench = Bench::idle();
    bench.settled(dialog("d1", "make"));
    bench.see(redrawing("d1"));
    bench
}

#[test]
fn an_answer_waits_until_the_screen_is_drawn() {
    for (input, key) in [
        (confirm(2, "yes", Some("d1")), "1"),
        (confirm(2, "yes", None), "1"),
        (confirm(2, "no", None), "Esc"),
        (interrupt(2), "Esc"),
    ] {
        let mut bench = bench();
        bench.put(input);
        bench.pass(SETTLED);
        assert!(
            bench.keys.is_empty(),
            "nothing on a screen that is not drawn"
        );
        assert_eq!(bench.fault(2), None, "not refused");
        bench.see(at(dialog("d1", "make")));
        bench.pass(SETTLED);
        assert_eq!(bench.keys, [key]);
        bench.see(screen(State::Idle, ""));
        assert!(bench.replies[&2].is_ok());
    }
}

/// A client that names no dialog has seen the one that was up then.
#[test]
fn an_answer_that_waits_is_for_no_other_dialog() {
    for id in [None, Some("d1")] {
        let mut bench = bench();
        bench.put(confirm(2, "yes", id));
        bench.see(at(dialog("d2", "make install")));
        bench.pass(SETTLED);
        assert_eq!(bench.fault(2), Some(Fault::Refused), "{id:?}");
        assert!(bench.keys.is_empty());
    }
}

#[test]
fn no_answer_waits_for_ever() {
    let mut bench = bench();
    bench.put(confirm(2, "yes", None));
    bench.put(interrupt(3));
    bench.pass(DRAWN_AT_LAST);
    assert!(bench.keys.is_empty());
    let refused = Some(Fault::Refused);
    assert_eq!((bench.fault(2), bench.fault(3)), (refused, refused));
}

#[test]
fn an_answer_whose_client_has_gone_is_not_given() {
    let mut bench = bench();
    bench.put(confirm(2, "yes", None));
    bench.put(Input::Withdraw(2));
    bench.see(at(dialog("d1", "make")));
    bench.pass(SETTLED);
    assert!(bench.keys.is_empty());
    assert_eq!(bench.fault(2), Some(Fault::TimedOut));
}

#[test]
fn answers_that_wait_have_a_bound() {
    let mut bench = bench();
    for token in 100..200 {
        bench.put(interrupt(token));
    }
    let refused = (100..200).filter(|token| bench.fault(*token) == Some(Fault::Refused));
    assert_eq!(refused.count(), 84);
}
