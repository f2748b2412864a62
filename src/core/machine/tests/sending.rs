//! Messages: into the input box, proven, entered, answered.

use super::*;
use crate::core::model::Trace;

#[test]
fn enter_follows_only_when_the_text_stands_in_the_input_box() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    assert_eq!(bench.keys, ["paste"]);
    bench.see(screen(State::Idle, "hel"));
    assert_eq!(bench.keys, ["paste"]);
    bench.see(screen(State::Idle, "hello"));
    assert_eq!(bench.keys, ["paste"], "on its heels Enter is lost");
    assert_eq!(
        bench.machine.poll_timeout(),
        Some(bench.now + PASTE_SETTLES)
    );
    bench.pass(PASTE_SETTLES);
    assert_eq!(bench.keys, ["paste", "Enter"]);
    bench.see(screen(State::Thinking, ""));
    assert!(bench.told.contains(&EventKind::Message {
        text: "hello".into()
    }));
    assert!(!bench.replies.contains_key(&2));
}

#[test]
fn an_enter_that_was_lost_is_pressed_once_more() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.arrives("hello");
    bench.pass(ENTER_IS_LOST);
    assert_eq!(bench.keys, ["paste", "Enter", "Enter"]);
    bench.pass(ENTER_IS_LOST);
    assert_eq!(bench.keys.len(), 3);
    bench.see(screen(State::Thinking, ""));
    assert!(bench.fault(2).is_none());
}

#[test]
fn enter_is_not_pressed_again_where_a_dialog_came_up() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.arrives("hello");
    bench.see(at(dialog("d1", "make")));
    bench.pass(ENTER_IS_LOST);
    assert_eq!(bench.keys, ["paste", "Enter"]);
}

#[test]
fn enter_is_withheld_when_a_dialog_comes_in_between() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.see(at(dialog("d1", "make")));
    assert_eq!(bench.keys, ["paste"]);
    assert_eq!(bench.fault(2), Some(Fault::Refused));
}

#[test]
fn enter_is_withheld_when_the_text_never_shows() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.pass(PASTE_SHOWS);
    assert_eq!(bench.keys, ["paste"]);
    assert_eq!(bench.fault(2), Some(Fault::Failed));
}

#[test]
fn a_text_that_enter_has_changed_was_not_sent() {
    let mut bench = Bench::idle();
    bench.send(2, "well :smi");
    bench.arrives("well :smi");
    bench.see(screen(State::Idle, "well 😄"));
    bench.pass(ENTER_IS_LOST);
    assert_eq!(bench.keys, ["paste", "Enter"], "no second one");
    assert_eq!(bench.fault(2), None);
    bench.pass(ENTER_WORKS);
    assert_eq!(bench.fault(2), Some(Fault::Failed));
    let taken = |what: &EventKind| matches!(what, EventKind::Message { .. });
    assert!(!bench.told.iter().any(taken));
}

#[test]
fn a_text_that_does_not_show_has_the_screen_drawn_again_once() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    assert!(!bench.has(&Effect::Repaint));
    bench.pass(PASTE_IS_HIDDEN);
    bench.pass(PASTE_IS_HIDDEN);
    let repaints = |bench: &Bench| {
        let all = bench.others.iter();
        all.filter(|effect| **effect == Effect::Repaint).count()
    };
    assert_eq!(repaints(&bench), 1);
    bench.arrives("hello");
    assert_eq!(bench.keys, ["paste", "Enter"]);
}

#[test]
fn a_text_whose_enter_was_withheld_makes_room_for_the_next() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.see(at(dialog("d1", "make")));
    bench.see(screen(State::Idle, "hello"));
    bench.send(3, "again");
    assert_eq!(bench.keys, ["paste", "Ctrl-C"]);
    bench.see(screen(State::Idle, ""));
    bench.pass(CLEARED);
    assert_eq!(bench.keys, ["paste", "Ctrl-C", "paste"]);
    assert_eq!(bench.fault(3), None);
}

/// A program that is stopped again and again draws late: missiond always recognises its own text, presses no second Ctrl-C, and
/// types nothing after it.
#[test]
fn a_draft_of_our_own_that_is_cleared_late_is_never_a_strangers() {
    let stays = || {
        let mut bench = Bench::idle();
        bench.send(2, "hello");
        bench.pass(PASTE_SHOWS);
        assert_eq!(bench.fault(2), Some(Fault::Failed));
        bench.see(screen(State::Idle, "hello"));
        bench.send(3, "again");
        assert_eq!(bench.keys, ["paste", "Ctrl-C"]);
        bench.pass(CLEARED);
        assert_eq!(bench.keys, ["paste", "Ctrl-C"], "not seen to be cleared");
        assert_eq!(bench.fault(3), None, "it waits");
        bench
    };
    let mut late = stays();
    late.see(screen(State::Idle, ""));
    assert_eq!(late.keys, ["paste", "Ctrl-C", "paste"]);
    late.arrives("again");
    assert_eq!(late.keys.last().map(String::as_str), Some("Enter"));

    let mut never = stays();
    never.pass(CLEARED_LATE);
    assert_eq!(never.fault(3), Some(Fault::Refused));
    assert!(!never.words(3).contains("not missiond's"));
    never.send(4, "once more");
    assert_eq!(never.fault(4), Some(Fault::Refused));
    assert!(!never.words(4).contains("not missiond's"));
    assert_eq!(never.keys, ["paste", "Ctrl-C"], "no second Ctrl-C");
    never.see(screen(State::Idle, ""));
    never.send(5, "at last");
    never.arrives("at last");
    assert_eq!(never.keys, ["paste", "Ctrl-C", "paste", "Enter"]);
}

/// Two messages that were pasted before the program drew anything appear together, and are cleared together.
#[test]
fn texts_that_were_never_seen_are_known_as_our_own_in_a_row() {
    for shown in ["hello", "again", "helloagain"] {
        let mut bench = Bench::idle();
        for (token, text) in [(2, "hello"), (3, "again")] {
            bench.send(token, text);
            bench.pass(PASTE_SHOWS);
            assert_eq!(bench.fault(token), Some(Fault::Failed));
        }
        bench.see(screen(State::Idle, shown));
        bench.send(4, "third");
        assert_eq!(bench.keys, ["paste", "paste", "Ctrl-C"], "{shown}");
        bench.see(screen(State::Idle, ""));
        bench.pass(CLEARED);
        bench.arrives("third");
        assert_eq!(bench.keys.last().map(String::as_str), Some("Enter"));
        assert_eq!(bench.fault(4), None, "{shown}");
    }
}

/// A Ctrl-C that was not pressed is pressed later.
#[test]
fn a_withheld_ctrl_c_counts_for_nothing() {
    let mut bench = Bench::idle();
    bench.put(Input::WasTyped(seen("hello")));
    bench.see(screen(State::Idle, "hello"));
    bench.send(3, "again");
    assert_eq!(bench.keys, ["Ctrl-C"]);
    bench.put(Input::Withheld(screen(State::Idle, "hello")));
    assert_eq!(bench.keys, ["Ctrl-C", "Ctrl-C"]);
}

#[test]
fn a_long_message_is_proven_by_its_placeholder_or_its_end() {
    let lines = vec!["line"; 50].join("\n");
    let long = "word ".repeat(300);
    for (text, shown) in [
        (&lines, "[Pasted text #1 +49 lines]"),
        (&long, "[Pasted text #3]"),
    ] {
        let mut bench = Bench::idle();
        bench.send(2, text);
        bench.arrives(shown);
        assert_eq!(bench.keys, ["paste", "Enter"], "{shown}");
    }
    let mut bench = Bench::idle();
    bench.send(2, &lines);
    bench.see(screen(State::Idle, "[Pasted text #1 +7 lines]"));
    assert_eq!(bench.keys, ["paste"]);
}

#[test]
fn a_turn_ends_with_the_stop_hook_and_the_idle_screen() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.arrives("hello");
    bench.see(screen(State::Thinking, ""));
    bench.hear(
        3,
        HookWhat::TurnOver {
            text: Some("from the hook".into()),
            failure: None,
        },
    );
    assert!(!bench.has(&Effect::FindAnswer));
    bench.see(screen(State::Idle, ""));
    assert!(bench.has(&Effect::FindAnswer));
    bench.find("hi");
    let wanted = Reply::Answered {
        text: Some("hi".into()),
        source: "transcript",
    };
    assert_eq!(bench.replies.get(&2), Some(&Ok(wanted)));
}

#[test]
fn without_a_stop_hook_a_turn_ends_after_a_while_of_idle() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.arrives("hello");
    bench.see(screen(State::Idle, ""));
    assert!(!bench.has(&Effect::FindAnswer));
    assert_eq!(bench.machine.poll_timeout(), Some(bench.now + IDLE_IS_OVER));
    bench.pass(IDLE_IS_OVER);
    assert!(bench.has(&Effect::FindAnswer));
}

#[test]
fn messages_go_one_after_another_in_order() {
    let mut bench = Bench::idle();
    bench.send(2, "one");
    bench.send(3, "two");
    assert_eq!(bench.machine.queued(), 1);
    for (token, text) in [(2, "one"), (3, "two")] {
        bench.arrives(text);
        bench.see(screen(State::Thinking, ""));
        bench.hear(
            token + 100,
            HookWhat::TurnOver {
                text: None,
                failure: None,
            },
        );
        bench.see(screen(State::Idle, ""));
        bench.put(Input::Found(Answer {
            text: Some(text.into()),
            source: "transcript",
            failure: None,
        }));
        assert!(matches!(
            bench.replies.get(&token),
            Some(Ok(Reply::Answered { .. }))
        ));
    }
    assert_eq!(bench.keys, ["paste", "Enter", "paste", "Enter"]);
}

#[test]
fn a_withdrawn_message_is_not_typed() {
    let mut bench = Bench::idle();
    bench.see(screen(State::Thinking, ""));
    bench.send(2, "late");
    bench.put(Input::Withdraw(2));
    bench.see(screen(State::Idle, ""));
    assert!(bench.keys.is_empty());
    assert!(
        bench.replies[&2]
            .as_ref()
            .unwrap_err()
            .message
            .contains("not sent")
    );
}

#[test]
fn a_turn_that_nobody_waits_for_goes_on() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.arrives("hello");
    bench.see(screen(State::Thinking, ""));
    bench.put(Input::Withdraw(2));
    assert!(
        bench.replies[&2]
            .as_ref()
            .unwrap_err()
            .message
            .contains("goes on")
    );
    bench.see(screen(State::Idle, ""));
    bench.pass(IDLE_IS_OVER);
    bench.find("hi");
    assert!(
        bench
            .told
            .iter()
            .any(|what| matches!(what, EventKind::Answer { .. }))
    );
}

#[test]
fn a_draft_that_is_not_ours_is_left_alone() {
    let mut bench = Bench::idle();
    bench.see(screen(State::Idle, "somebody types"));
    bench.send(2, "hello");
    assert!(bench.keys.is_empty());
    assert_eq!(bench.fault(2), Some(Fault::Refused));
}

#[test]
fn send_is_refused_at_a_dialog_and_when_the_slot_is_down() {
    let mut bench = Bench::idle();
    bench.see(at(dialog("d1", "make")));
    bench.send(2, "hello");
    assert_eq!(bench.fault(2), Some(Fault::Refused));
    let mut down = Bench::with(config());
    down.send(3, "hello");
    assert_eq!(down.fault(3), Some(Fault::Refused));
}

#[test]
fn what_an_earlier_daemon_typed_and_never_entered_is_cleared() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    assert_eq!(bench.machine.typed_last(), Some("hello"));
    let typed = bench.machine.own_text().unwrap().clone();
    let mut bench = Bench::idle();
    bench.put(Input::WasTyped(typed));
    bench.see(screen(State::Idle, "hello"));
    bench.send(3, "next");
    assert_eq!(bench.keys, ["Ctrl-C"]);
    bench.see(screen(State::Idle, ""));
    bench.pass(CLEARED);
    assert_eq!(bench.keys, ["Ctrl-C", "paste"]);
    let mut bench = Bench::idle();
    bench.put(Input::WasTyped(seen("hello")));
    bench.see(screen(State::Idle, "a person's own"));
    bench.send(3, "next");
    assert_eq!(bench.fault(3), Some(Fault::Refused));
}

/// A text that was typed and seen in the input box.
fn seen(text: &str) -> OwnText {
    let mut own = OwnText::pasted(text, None);
    own.is_seen();
    own
}

/// The program may have been stopped when the earlier daemon typed: a second paste would appear after the first.
#[test]
fn what_an_earlier_daemon_has_begun_to_type_is_not_typed_again() {
    for shown in ["", "hello"] {
        let mut bench = Bench::idle();
        bench.put(Input::WasTyped(OwnText::pasted("hello", None)));
        bench.see(screen(State::Idle, shown));
        bench.send(3, "hello");
        assert_eq!(bench.keys, [""; 0], "{shown}");
        bench.arrives("hello");
        assert_eq!(bench.keys, ["Enter"], "{shown}");
    }
    let mut bench = Bench::idle();
    bench.put(Input::WasTyped(OwnText::pasted("hello", None)));
    bench.send(3, "hello");
    bench.pass(PASTE_SHOWS);
    assert_eq!(bench.fault(3), Some(Fault::Failed));
    assert_eq!(bench.keys, [""; 0], "it was typed, and is never shown");
    // It was visible and is gone: somebody has cleared it.
    let mut bench = Bench::idle();
    bench.put(Input::WasTyped(seen("hello")));
    bench.send(3, "hello");
    assert_eq!(bench.keys, ["paste"]);
}

/// A program that was stopped shows both texts together, and both are missiond's own.
#[test]
fn what_an_earlier_daemon_has_typed_unseen_is_ours_before_another_message() {
    let mut bench = Bench::idle();
    bench.put(Input::WasTyped(OwnText::pasted("hello", None)));
    bench.send(3, "next");
    bench.pass(PASTE_SHOWS);
    bench.see(screen(State::Idle, "hellonext"));
    bench.send(4, "third");
    assert_eq!(bench.keys, ["paste", "Ctrl-C"]);
}

/// The program may not have read the Ctrl-C of the earlier daemon; a second one would end it.
#[test]
fn what_an_earlier_daemon_has_cleared_is_not_cleared_again() {
    let mut bench = Bench::idle();
    bench.put(Input::WasTyped(seen("hello")));
    bench.see(screen(State::Idle, "hello"));
    bench.send(3, "next");
    assert_eq!(bench.keys, ["Ctrl-C"]);
    let cleared = bench.machine.own_text().unwrap().clone();
    let mut bench = Bench::idle();
    bench.put(Input::WasTyped(cleared));
    bench.see(screen(State::Idle, "hello"));
    bench.send(3, "next");
    assert_eq!(bench.keys, [""; 0]);
    assert_eq!(bench.fault(3), Some(Fault::Refused));
}

/// A sender that gave up finds the result of the message by its id.
#[test]
fn a_message_that_was_typed_for_nobody_and_never_seen_is_dropped() {
    let mut bench = Bench::idle();
    bench.put(Input::Send(Message {
        token: Some(2),
        text: "hello".into(),
        slash: false,
        wait: true,
        task: None,
        id: Some("m1".into()),
        person: None,
    }));
    bench.put(Input::Withdraw(2));
    assert_eq!(bench.fault(2), Some(Fault::TimedOut));
    let told = format!("{:?}", bench.replies[&2]);
    assert!(told.contains("was typed"), "{told}");
    bench.pass(PASTE_SHOWS);
    let is_dropped = |effect: &Effect| matches!(effect, Effect::Drop { id, .. } if id == "m1");
    assert!(bench.others.iter().any(is_dropped));
}

/// The text appears just before the screen would be redrawn.
#[test]
fn a_text_that_is_seen_in_time_needs_no_repaint() {
    let mut bench = Bench::idle();
    bench.send(7, "go");
    bench.pass(PASTE_IS_HIDDEN - PASTE_SETTLES / 2);
    bench.see(screen(State::Idle, "go"));
    bench.pass(PASTE_SETTLES / 2);
    assert!(!bench.has(&Effect::Repaint));
    bench.pass(PASTE_SETTLES / 2);
    assert_eq!(bench.keys, ["paste", "Enter"]);
}

/// A time in the past would be due again at once, and the slot would get no other input.
#[test]
fn an_enter_on_a_screen_that_does_not_tell_is_looked_at_later() {
    let mut bench = Bench::idle();
    bench.send(7, "go");
    bench.see(screen(State::Idle, "go"));
    bench.pass(PASTE_SETTLES);
    assert_eq!(bench.keys.last().map(String::as_str), Some("Enter"));
    let uncertain = Observation {
        certain: false,
        composer: None,
        ..screen(State::Idle, "")
    };
    bench.see(uncertain);
    bench.pass(ENTER_IS_LOST);
    let due = bench.machine.poll_timeout().expect("it is waited for");
    assert!(due > bench.now, "due at once, again and again");
}

/// The text on the screen at the end of the turn.
fn on_screen(text: &str) -> Input {
    Input::Found(Answer {
        text: Some(text.into()),
        source: "screen",
        failure: None,
    })
}

fn from_transcript(text: &str) -> Input {
    Input::Found(Answer {
        text: Some(text.into()),
        source: "transcript",
        failure: None,
    })
}

/// A message was accepted while the program draws nothing yet: the screen is that of the turn before.
fn taken_and_idle(bench: &mut Bench) {
    bench.hear(8, HookWhat::SessionStart);
    bench.send(2, "hello");
    bench.arrives("hello");
    bench.hear(9, HookWhat::PromptTaken);
    bench.see(screen(State::Idle, ""));
    bench.pass(IDLE_IS_OVER);
    assert!(bench.has(&Effect::FindAnswer));
}

#[test]
fn the_answer_of_the_turn_before_is_not_the_answer_of_this_one() {
    let mut bench = Bench::idle();
    taken_and_idle(&mut bench);
    bench.put(on_screen("of the turn before"));
    assert!(!bench.replies.contains_key(&2), "nothing is known yet");
    bench.others.clear();
    bench.pass(IDLE_IS_OVER);
    assert!(bench.has(&Effect::FindAnswer), "looked for again");
    bench.put(from_transcript("of this turn"));
    let Some(Ok(Reply::Answered { text, .. })) = bench.replies.get(&2) else {
        panic!("{:?}", bench.replies);
    };
    assert_eq!(text.as_deref(), Some("of this turn"));
}

#[test]
fn a_turn_of_which_nothing_is_ever_seen_fails_and_has_no_answer() {
    let mut bench = Bench::idle();
    taken_and_idle(&mut bench);
    bench.put(on_screen("of the turn before"));
    bench.pass(TURN_SHOWS);
    bench.put(on_screen("of the turn before"));
    let error = bench.replies[&2].as_ref().unwrap_err();
    assert!(error.message.contains("nothing was seen"), "{error:?}");
}

/// If hooks work, an idle screen in the middle of a turn is a pause, until other evidence says that the turn is over.
#[test]
fn a_pause_in_a_turn_is_not_its_end_where_hooks_tell_of_it() {
    let mut bench = Bench::idle();
    bench.hear(8, HookWhat::SessionStart);
    bench.send(2, "hello");
    bench.arrives("hello");
    bench.see(screen(State::Thinking, ""));
    bench.see(screen(State::Idle, ""));
    bench.pass(IDLE_IS_OVER);
    bench.put(on_screen("I shall call a tool."));
    assert!(!bench.replies.contains_key(&2));
    bench.see(screen(State::ToolRunning, ""));
    bench.see(screen(State::Idle, ""));
    let (text, failure) = (Some("done".into()), None);
    bench.hear(10, HookWhat::TurnOver { text, failure });
    bench.put(on_screen("I shall call a tool."));
    let Some(Ok(Reply::Answered { text, .. })) = bench.replies.get(&2) else {
        panic!("{:?}", bench.replies);
    };
    assert_eq!(text.as_deref(), Some("done"));
}

#[test]
fn by_the_screen_alone_a_turn_that_was_seen_is_over_when_the_screen_is_idle() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.arrives("hello");
    bench.see(screen(State::Thinking, ""));
    bench.see(screen(State::Idle, ""));
    bench.pass(IDLE_IS_OVER);
    bench.put(on_screen("an answer"));
    assert!(matches!(
        bench.replies.get(&2),
        Some(Ok(Reply::Answered { .. }))
    ));
}

/// A message of an earlier daemon, with the id `m1`.
fn entered(bench: &Bench, is_told: bool) -> Input {
    let message = Message {
        token: None,
        text: "hello".into(),
        slash: false,
        wait: true,
        task: None,
        id: Some("m1".into()),
        person: None,
    };
    let began = bench.now - Duration::from_secs(60);
    Input::WasEntered(Box::new(Entered {
        message,
        began,
        is_told,
    }))
}

/// A program that an earlier daemon has left with this message, before its screen is known.
fn adopted(is_told: bool) -> Bench {
    let mut bench = Bench::with(config());
    let was_entered = entered(&bench, is_told);
    bench.put(was_entered);
    let continues = true;
    bench.put(Input::Started { pid: 7, continues });
    assert!(!bench.machine.has_no_turn());
    bench
}

fn told_of(bench: &Bench) -> Vec<&'static str> {
    let kinds = bench.told.iter().filter_map(|what| match what {
        EventKind::Message { .. } => Some("message"),
        EventKind::Answer { .. } => Some("answer"),
        EventKind::Failed { .. } => Some("failed"),
        _ => None,
    });
    kinds.collect()
}

/// A turn that began under an earlier daemon ends like any other: its answer is reported once, with its duration, and new
/// messages wait for it.
#[test]
fn the_answer_to_a_message_of_an_earlier_daemon_is_told() {
    let mut bench = adopted(true);
    bench.see(screen(State::Idle, ""));
    bench.send(2, "next");
    assert!(bench.keys.is_empty(), "{:?}", bench.keys);
    bench.pass(IDLE_IS_OVER);
    assert!(bench.has(&Effect::FindAnswer));
    bench.find("It is done.");
    let answers: Vec<&EventKind> = bench
        .told
        .iter()
        .filter(|what| matches!(what, EventKind::Answer { .. }))
        .collect();
    let [EventKind::Answer { text, duration_ms }] = answers.as_slice() else {
        panic!("{answers:?}");
    };
    assert_eq!(text, "It is done.");
    assert!(*duration_ms >= 60_000, "{duration_ms}");
    bench.pass(PASTE_SETTLES);
    assert_eq!(bench.keys, ["paste"]);
    assert!(!told_of(&bench).contains(&"message"), "it was told before");
}

/// No daemon has seen whether the program took the message: the screen tells, and the message is told with its answer.
#[test]
fn a_message_that_an_earlier_daemon_has_entered_is_told_with_its_answer() {
    for state in [State::Idle, State::Thinking] {
        let mut bench = adopted(false);
        bench.put(Input::Rejoin {
            token: 5,
            id: "m1".into(),
        });
        assert!(told_of(&bench).is_empty(), "the screen is not known");
        bench.see(screen(state, ""));
        bench.see(screen(State::Idle, ""));
        bench.pass(IDLE_IS_OVER);
        bench.find("It is done.");
        assert_eq!(told_of(&bench), ["message", "answer"]);
        assert!(matches!(
            bench.replies.get(&5),
            Some(Ok(Reply::Answered { .. }))
        ));
        assert!(bench.keys.is_empty(), "{:?}", bench.keys);
        assert!(bench.machine.has_no_turn());
    }
}

/// The Enter was written and had no effect: it is pressed once more, as by the daemon that pressed it first.
#[test]
fn a_text_that_stayed_in_the_input_box_gets_its_enter() {
    let mut bench = adopted(false);
    bench.see(screen(State::Idle, "hello"));
    assert!(told_of(&bench).is_empty());
    bench.pass(ENTER_IS_LOST);
    assert_eq!(bench.keys, ["Enter"]);
    bench.see(screen(State::Thinking, ""));
    assert_eq!(told_of(&bench), ["message"]);
}

/// Whoever waits for it hears its end, and whoever asks for another message hears that it is not known.
#[test]
fn a_sender_of_an_earlier_daemon_waits_again_and_may_leave() {
    let rejoin = |token, id: &str| Input::Rejoin {
        token,
        id: id.to_owned(),
    };
    for is_seen in [false, true] {
        let mut bench = adopted(true);
        if is_seen {
            bench.see(screen(State::Thinking, ""));
        }
        bench.put(rejoin(5, "m2"));
        assert!(matches!(bench.replies.get(&5), Some(Ok(Reply::Unknown))));
        bench.put(rejoin(6, "m1"));
        assert!(!bench.replies.contains_key(&6));
        bench.put(Input::Withdraw(6));
        let left = bench.replies.get(&6);
        assert!(matches!(left, Some(Err(error)) if error.fault == Fault::TimedOut));
        bench.put(rejoin(7, "m1"));
        bench.put(Input::Ended(ProgramEnd {
            report: ExitReport {
                code: Some(1),
                signal: None,
            },
            said: None,
            limit_reset: None,
        }));
        let cut_off = bench.replies.get(&7);
        assert!(matches!(cut_off, Some(Err(error)) if error.trace == Some(Trace::CutOff)));
        assert!(bench.machine.has_no_turn());
    }
}
