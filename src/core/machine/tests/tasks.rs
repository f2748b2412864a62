//! Messages that are tasks, and the progress of a message that was not answered.

use super::*;
use crate::core::model::Trace;

fn give(bench: &mut Bench, token: Token, text: &str) {
    bench.put(Input::Send(Message {
        token: Some(token),
        text: text.to_owned(),
        slash: false,
        wait: true,
        task: Some("t1".to_owned()),
        id: None,
        person: None,
    }));
}

pub(super) fn dies() -> Input {
    let report = ExitReport {
        code: Some(1),
        signal: None,
    };
    Input::Ended(ProgramEnd {
        report,
        said: None,
        limit_reset: None,
    })
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

fn waits(bench: &mut Bench, token: Token, id: &str) {
    bench.put(Input::Send(Message {
        token: Some(token),
        text: id.to_owned(),
        slash: false,
        wait: true,
        task: None,
        id: Some(id.to_owned()),
        person: None,
    }));
}

/// In every state a stop names the dropped messages: to its caller, the senders, the log and the records.
#[test]
fn a_stop_names_the_messages_that_it_drops() {
    let running = |bench: &mut Bench| {
        give(bench, 2, "first");
        bench.arrives("first");
        bench.see(screen(State::Thinking, ""));
    };
    let restarting = |bench: &mut Bench| bench.put(dies());
    let launching = |bench: &mut Bench| {
        bench.put(Input::Stop(8));
        bench.put(dies());
        bench.put(Input::Start(9));
    };
    let reach: [fn(&mut Bench); 3] = [running, restarting, launching];
    for reach in reach {
        let mut bench = Bench::idle();
        reach(&mut bench);
        waits(&mut bench, 3, "q1");
        waits(&mut bench, 4, "q2");
        give(&mut bench, 5, "a task waits elsewhere again");
        assert_eq!(bench.replies.get(&3), None, "it waits");
        bench.told.clear();
        bench.put(Input::Stop(7));
        if !bench.replies.contains_key(&7) {
            bench.put(dies());
        }
        let dropped = vec!["q1".to_owned(), "q2".to_owned()];
        let Ok(Reply::Cut(cut)) = &bench.replies[&7] else {
            panic!("{:?}", bench.replies[&7]);
        };
        assert_eq!(cut.dropped, dropped);
        let warning = "2 messages that waited were dropped (q1, q2): the slot was stopped";
        let warned =
            |what: &EventKind| matches!(what, EventKind::Warning { text } if text == warning);
        assert!(bench.told.iter().any(warned), "{:?}", bench.told);
        let ids = bench.others.iter().filter_map(|effect| match effect {
            Effect::Drop { id, .. } => Some(id.clone()),
            _ => None,
        });
        assert_eq!(ids.collect::<Vec<_>>(), dropped);
        assert_eq!(trace(&bench, 3), Some(Trace::Untouched));
        assert_eq!(trace(&bench, 5), Some(Trace::Untouched));
    }
}

/// If the sender knows of the dialog, nobody waits for the message: it has failed anyway.
#[test]
fn a_restart_says_what_it_cuts_and_what_it_drops() {
    let mut bench = Bench::idle();
    bench.put(Input::Send(Message {
        token: Some(2),
        text: "publish".to_owned(),
        slash: false,
        wait: true,
        task: None,
        id: Some("m1".to_owned()),
        person: None,
    }));
    bench.arrives("publish");
    bench.see(screen(State::Thinking, ""));
    waits(&mut bench, 3, "q1");
    bench.settled(dialog("d1", "make"));
    assert!(matches!(bench.replies[&2], Ok(Reply::NeedsPerson(_))));
    bench.put(Input::Restart(7));
    bench.put(dies());
    assert_eq!(bench.machine.queued(), 0);
    assert_eq!(trace(&bench, 3), Some(Trace::Untouched));
    let ids = bench.others.iter().filter_map(|effect| match effect {
        Effect::Drop { id, why } => Some((id.as_str(), why.trace)),
        _ => None,
    });
    let expected = [("m1", Some(Trace::CutOff)), ("q1", Some(Trace::Untouched))];
    assert_eq!(ids.collect::<Vec<_>>(), expected);
    bench.put(Input::Started {
        pid: 43,
        continues: true,
    });
    let cut = Cut {
        waited: vec![
            "a dialog (Bash: make)".to_owned(),
            "a message that was not yet answered (m1)".to_owned(),
        ],
        dropped: vec!["q1".to_owned()],
    };
    assert_eq!(bench.replies[&7], Ok(Reply::Cut(cut)));
}
