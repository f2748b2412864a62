//! Messages that are tasks, and how far a message had come that was not answered.

use super::*;
use crate::control::protocol::Trace;

fn give(bench: &mut Bench, token: Token, text: &str) {
    bench.put(Input::Send(Message {
        token: Some(token),
        text: text.to_owned(),
        slash: false,
        wait: true,
        task: Some("t1".to_owned()),
        id: None,
    }));
}

fn dies() -> Input {
    let report = ExitReport {
        code: Some(1),
        signal: None,
    };
    Input::Ended {
        report,
        said: None,
        lifted: None,
    }
}

fn trace(bench: &Bench, token: Token) -> Option<Trace> {
    bench.replies[&token].as_ref().unwrap_err().trace
}

#[test]
fn a_task_is_waited_for_through_a_question() {
    let mut bench = Bench::idle();
    give(&mut bench, 2, "hello");
    assert_eq!(bench.machine.task(), Some("t1"));
    bench.arrives("hello");
    bench.see(screen(State::Thinking, ""));
    bench.see(at(dialog("d1", "make")));
    bench.pass(SETTLED);
    assert!(bench.machine.why_a_person().is_some());
    assert!(!bench.replies.contains_key(&2));
    assert_eq!(bench.machine.task(), Some("t1"));
    bench.see(screen(State::Idle, ""));
    bench.pass(IDLE_IS_OVER);
    bench.find("done");
    assert!(matches!(
        bench.replies.get(&2),
        Some(Ok(Reply::Answered { .. }))
    ));
    assert_eq!(bench.machine.task(), None);
}

#[test]
fn what_was_never_submitted_is_told_from_what_was_cut_off() {
    let mut bench = Bench::idle();
    give(&mut bench, 2, "first");
    bench.arrives("first");
    bench.see(screen(State::Thinking, ""));
    bench.send(3, "second");
    bench.put(Input::Withdraw(3));
    assert_eq!(trace(&bench, 3), Some(Trace::Untouched));
    bench.send(4, "third");
    bench.put(dies());
    assert_eq!(trace(&bench, 2), Some(Trace::CutOff));
    assert_eq!(trace(&bench, 4), Some(Trace::Untouched));

    let mut bench = Bench::idle();
    bench.see(at(dialog("d1", "make")));
    bench.send(2, "not now");
    assert_eq!(trace(&bench, 2), Some(Trace::Untouched));
}
