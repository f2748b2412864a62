//! Screens that another witness contradicts.

use super::*;
use crate::core::machine::doubt::LINGERS;

fn disputed(bench: &mut Bench) {
    let why = "the record says otherwise".to_owned();
    bench.put(Input::Witnessed(Some(why)));
}

#[test]
fn a_dialog_that_is_disputed_is_not_answered_by_rule() {
    let mut bench = Bench::idle();
    bench.see(at(dialog("d1", "rm x")));
    disputed(&mut bench);
    bench.pass(SETTLED);
    assert!(bench.keys.is_empty());
    let doubt = bench.machine.distrust();
    assert_eq!(doubt, None, "it may be a moment's difference");
    bench.pass(Duration::from_secs(3));
    assert!(bench.keys.is_empty());
    let why = "the record says otherwise".to_owned();
    assert!(
        bench
            .told
            .contains(&EventKind::Doubtful { why: why.clone() })
    );
    assert!(bench.has(&Effect::Repaint));
    assert_eq!(bench.machine.distrust().as_ref(), Some(&why));
    let reason = bench.machine.why_a_person();
    assert_eq!(reason, Some(format!("doubtful: {why}")));
    assert!(bench.keys.is_empty());

    bench.put(Input::Witnessed(None));
    bench.pass(LINGERS);
    assert_eq!(bench.machine.poll_timeout(), None, "nothing is due");
    assert!(bench.told.contains(&EventKind::DoubtGone));
    assert_eq!(bench.machine.distrust(), None);
    bench.pass(SETTLED);
    assert!(bench.keys.is_empty(), "the person was told of this one");
}

/// Painted text stays until the program redraws, and the painting may stop at any time.
#[test]
fn a_doubtful_dialog_is_drawn_again_and_again_but_ever_more_rarely() {
    let drawn = |bench: &Bench| {
        let all = bench.others.iter();
        all.filter(|effect| **effect == Effect::Repaint).count()
    };
    let mut bench = Bench::idle();
    bench.see(at(dialog("d1", "rm x")));
    disputed(&mut bench);
    for (seconds, times) in [(3, 1), (2, 1), (1, 2), (6, 3), (12, 4), (24, 5), (48, 6)] {
        bench.pass(Duration::from_secs(seconds));
        assert_eq!(drawn(&bench), times, "after {seconds} s more");
    }
    bench.pass(Duration::from_secs(59));
    assert_eq!(drawn(&bench), 6);
    bench.pass(Duration::from_secs(1));
    assert_eq!(drawn(&bench), 7);
    let told = |what: &&EventKind| matches!(what, EventKind::Doubtful { .. });
    assert_eq!(bench.told.iter().filter(told).count(), 1);
    // An idle screen may be painted over the dialog.
    bench.see(screen(State::Idle, ""));
    bench.pass(Duration::from_secs(60));
    assert_eq!(drawn(&bench), 8);
    bench.pass(Duration::from_secs(60));
    assert_eq!(drawn(&bench), 9);
}

/// The program may draw over the painting for a moment, in which a yes is accepted.
#[test]
fn a_yes_between_two_paintings_is_taken_back_and_the_message_says_so() {
    let mut bench = asked_about_make();
    bench.settled(dialog("d1", "make"));
    for (token, painted, says) in [
        (20, dialog("d1", "make"), "doubtful now: the options"),
        (21, dialog("d2", "git status"), "the key was withheld"),
    ] {
        bench.see(at(swapped(dialog("d1", "make"))));
        bench.see(at(dialog("d1", "make")));
        bench.put(confirm(token, "yes", Some("d1")));
        assert!(bench.keys.is_empty(), "it has to settle again");
        let painted = match painted.id.as_str() {
            "d1" => swapped(painted),
            _ => painted,
        };
        bench.see(at(painted));
        bench.pass(SETTLED);
        assert_eq!(bench.fault(token), Some(Fault::Refused), "{says}");
        let error = bench.replies[&token].as_ref().expect_err("a refusal");
        assert!(error.message.contains(says), "{}", error.message);
        assert!(error.message.contains("withheld"), "{}", error.message);
        let last = bench.told.iter().rev().find_map(|told| match told {
            EventKind::Verdict { verdict, .. } => Some(*verdict),
            _ => None,
        });
        assert_eq!(last, Some(Decision::Ask), "taken back");
    }
    assert!(bench.keys.is_empty(), "{:?}", bench.keys);
}

/// The doubt's own redraw shows the true screen for a moment, until it is painted again.
#[test]
fn an_answer_is_refused_until_a_doubt_has_been_gone_for_a_while() {
    let mut bench = asked_about_make();
    bench.settled(dialog("d1", "make"));
    disputed(&mut bench);
    bench.pass(Duration::from_secs(3));
    bench.put(Input::Witnessed(None));
    bench.pass(LINGERS - Duration::from_millis(1));
    bench.put(confirm(20, "yes", Some("d1")));
    assert_eq!(bench.fault(20), Some(Fault::Refused));
    let error = bench.replies[&20].as_ref().expect_err("a refusal");
    let why = "until a moment ago: the record says otherwise";
    assert!(error.message.contains(why), "{}", error.message);
    assert!(!bench.told.contains(&EventKind::DoubtGone));

    let due = bench.now + Duration::from_millis(1);
    assert_eq!(bench.machine.poll_timeout(), Some(due));
    bench.pass(Duration::from_millis(1));
    assert!(bench.told.contains(&EventKind::DoubtGone));
    assert_eq!(bench.machine.distrust(), None);
    assert_eq!(bench.machine.poll_timeout(), None);
    bench.put(confirm(21, "yes", Some("d1")));
    assert_eq!(bench.keys, ["1"]);
}

/// While a slow program has not redrawn, there is nothing to contradict.
#[test]
fn a_doubt_stays_while_the_screen_is_drawn_again() {
    let mut bench = Bench::idle();
    bench.settled(dialog("d1", "make"));
    disputed(&mut bench);
    bench.pass(Duration::from_secs(3));
    bench.put(Input::Witnessed(None));
    bench.see(Observation {
        certain: false,
        ..at(dialog("d1", "make"))
    });
    for _ in 0..3 {
        bench.pass(LINGERS);
        assert!(bench.machine.distrust().is_some());
        assert_eq!(bench.machine.poll_timeout(), Some(bench.now + LINGERS));
    }
    let mut view = dialog("d2", "");
    view.kind = DialogKind::Other;
    bench.see(Observation {
        certain: false,
        ..at(view)
    });
    bench.pass(LINGERS);
    assert_eq!(bench.machine.distrust(), None, "a view may stay");
}

/// The machine sees a frame before the witnesses are read.
#[test]
fn a_doubt_does_not_end_on_the_frame_that_shows_the_painting_again() {
    for painted in [swapped(dialog("d2", "make")), dialog("d2", "git status")] {
        let mut bench = asked_about_make();
        bench.settled(dialog("d1", "make"));
        disputed(&mut bench);
        bench.pass(Duration::from_secs(3));
        bench.put(Input::Witnessed(None));
        bench.now += LINGERS;
        bench.see(at(painted));
        disputed(&mut bench);
        let doubts = bench.told.iter().filter(is_of_doubt);
        assert_eq!(doubts.count(), 1, "{:?}", bench.told);
    }
}

#[test]
fn a_doubt_that_comes_back_while_it_lingers_is_the_same_one() {
    let mut bench = Bench::idle();
    bench.settled(dialog("d1", "make"));
    disputed(&mut bench);
    bench.pass(Duration::from_secs(3));
    for _ in 0..5 {
        bench.put(Input::Witnessed(None));
        bench.pass(LINGERS - Duration::from_millis(1));
        disputed(&mut bench);
        bench.pass(Duration::from_millis(1));
        assert!(bench.machine.distrust().is_some());
    }
    let doubts = bench.told.iter().filter(is_of_doubt);
    let why = "the record says otherwise".to_owned();
    assert_eq!(doubts.collect::<Vec<_>>(), [&EventKind::Doubtful { why }]);
}

/// A very short painting is not reported, but a person who answers then may have read it.
#[test]
fn a_painting_that_was_drawn_over_at_once_is_doubted_for_a_while() {
    let mut bench = asked_about_make();
    bench.see(at(dialog("d1", "make")));
    for (token, painted) in [
        (20, swapped(dialog("d2", "make"))),
        (21, dialog("d2", "git status")),
    ] {
        bench.settled(painted);
        disputed(&mut bench);
        bench.settled(dialog("d1", "make"));
        bench.put(Input::Witnessed(None));
        bench.put(confirm(token, "yes", Some("d1")));
        assert_eq!(bench.fault(token), Some(Fault::Refused));
        bench.pass(LINGERS);
        assert_eq!(bench.machine.distrust(), None);
    }
    assert!(!bench.told.iter().any(|what| is_of_doubt(&what)));
    bench.put(confirm(22, "yes", Some("d1")));
    assert_eq!(bench.keys, ["1"]);
}

/// The witnesses agree on it: no person is alerted, but no key is pressed before the doubt has ended.
#[test]
fn rules_wait_for_the_end_of_a_doubt_that_lingers() {
    let mut bench = Bench::idle();
    disputed(&mut bench);
    bench.pass(Duration::from_secs(3));
    bench.put(Input::Witnessed(None));
    bench.see(at(dialog("d1", "rm x")));
    bench.pass(SETTLED);
    assert!(bench.keys.is_empty());
    let due = bench.now + LINGERS - SETTLED;
    assert_eq!(bench.machine.poll_timeout(), Some(due));
    bench.pass(LINGERS - SETTLED);
    assert_eq!(bench.keys, ["Esc"]);
}

fn is_of_doubt(what: &&EventKind) -> bool {
    matches!(what, EventKind::Doubtful { .. } | EventKind::DoubtGone)
}

pub(super) fn swapped(dialog: Dialog) -> Dialog {
    let mut painted = dialog;
    painted.options[0].label = "No".into();
    painted.options[3].label = "Yes".into();
    painted
}

#[test]
fn a_difference_that_passes_only_delays_the_answer() {
    let mut bench = Bench::idle();
    bench.see(at(dialog("d1", "rm x")));
    disputed(&mut bench);
    bench.pass(SETTLED);
    bench.put(Input::Witnessed(None));
    assert_eq!(bench.keys, ["Esc"]);
    assert!(!bench.told.iter().any(|what| is_of_doubt(&what)));
}

/// A gated slot in which the gate was asked about `make`.
pub(super) fn asked_about_make() -> Bench {
    let mut bench = Bench::idle();
    bench.hear(8, HookWhat::SessionStart);
    bench.send(7, "go");
    bench.arrives("go");
    bench.see(screen(State::Thinking, ""));
    bench.keys.clear();
    bench.hear(
        9,
        HookWhat::BeforeTool {
            tool: "Bash".into(),
            input: json!({"command": "make"}),
            id: Some("t1".into()),
        },
    );
    bench
}

#[test]
fn a_person_is_refused_where_the_gate_knows_another_call() {
    let mut bench = asked_about_make();
    bench.settled(dialog("d1", "git status"));
    assert!(bench.has(&Effect::Repaint), "at once");
    assert_eq!(bench.machine.gate_knows_dialog(), Some(Known::Not));
    for (token, answer) in [(20, "yes"), (21, "Yes"), (22, "always")] {
        bench.put(confirm(token, answer, Some("d1")));
        assert_eq!(bench.fault(token), Some(Fault::Refused), "{answer}");
    }
    assert!(bench.keys.is_empty(), "{:?}", bench.keys);
    let waiting = bench.machine.waiting_calls();
    assert_eq!(waiting[0].input, json!({"command": "make"}));
}

/// A no allows nothing, so a doubt does not prevent it; and Esc declines whatever the options are.
#[test]
fn a_no_is_always_possible() {
    for answer in ["no", "No", " no "] {
        let mut bench = asked_about_make();
        bench.settled(dialog("d1", "git status"));
        assert_eq!(bench.machine.gate_knows_dialog(), Some(Known::Not));
        bench.pass(REDRAWN);
        bench.put(confirm(21, answer, Some("d1")));
        assert_eq!(bench.keys, ["Esc"], "{answer}");
        let verdicts = bench.told.iter().filter_map(|told| match told {
            EventKind::Verdict { verdict, by, .. } if by == "person" => Some(*verdict),
            _ => None,
        });
        assert_eq!(verdicts.collect::<Vec<_>>(), [Decision::Deny], "{answer}");
        bench.see(screen(State::Idle, ""));
        assert!(bench.replies[&21].is_ok(), "{answer}");
    }
}

#[test]
fn one_who_insists_is_obeyed_but_adds_no_rule() {
    let insisting = |token: Token, answer: &str| match confirm(token, answer, Some("d1")) {
        Input::Confirm(confirmation) => Input::Confirm(Confirmation {
            anyway: true,
            ..confirmation
        }),
        other => other,
    };
    let mut bench = asked_about_make();
    bench.settled(dialog("d1", "git status"));
    bench.pass(REDRAWN);
    bench.put(insisting(20, "always"));
    assert_eq!(bench.fault(20), Some(Fault::Refused));
    bench.put(insisting(21, "yes"));
    assert_eq!(bench.keys, ["1"]);
}

#[test]
fn an_interrupt_trusts_no_number_of_a_doubtful_dialog() {
    let mut bench = asked_about_make();
    bench.settled(dialog("d1", "git status"));
    bench.pass(REDRAWN);
    bench.put(interrupt(30));
    assert_eq!(bench.keys, ["Esc"]);
}

/// The gate knows the call, but not the labels: a process that writes to the terminal may swap them.
#[test]
fn options_in_another_order_are_doubtful_even_for_one_who_insists() {
    let swapped = || swapped(dialog("d1", "make"));
    for (anyway, answer) in [(false, "yes"), (false, "Yes, and switch"), (true, "yes")] {
        let mut bench = asked_about_make();
        bench.settled(swapped());
        assert!(bench.has(&Effect::Repaint), "at once");
        assert_eq!(bench.machine.gate_knows_dialog(), Some(Known::Waits));
        assert!(bench.machine.distrust().is_some());
        bench.pass(REDRAWN);
        bench.put(match confirm(20, answer, Some("d1")) {
            Input::Confirm(confirmation) => Input::Confirm(Confirmation {
                anyway,
                ..confirmation
            }),
            other => other,
        });
        assert_eq!(bench.fault(20), Some(Fault::Refused), "{answer}");
        assert!(bench.keys.is_empty(), "{:?}", bench.keys);
        bench.put(confirm(21, "no", Some("d1")));
        assert_eq!(bench.keys, ["Esc"]);
    }
    let mut bench = asked_about_make();
    bench.settled(swapped());
    bench.put(Input::Witnessed(bench.machine.strange_options()));
    bench.pass(Duration::from_secs(3));
    let told = |what: &EventKind| matches!(what, EventKind::Doubtful { .. });
    assert!(bench.told.iter().any(told), "{:?}", bench.told);
    bench.settled(dialog("d2", "make"));
    bench.put(Input::Witnessed(None));
    bench.pass(LINGERS);
    assert_eq!(bench.machine.distrust(), None);
}

#[test]
fn the_dialog_of_the_call_that_waits_is_answered_as_ever() {
    let mut bench = asked_about_make();
    bench.settled(dialog("d1", "make"));
    assert_eq!(bench.machine.gate_knows_dialog(), Some(Known::Waits));
    assert!(!bench.has(&Effect::Repaint));
    bench.put(confirm(20, "yes", Some("d1")));
    assert_eq!(bench.keys, ["1"]);
}

#[test]
fn a_call_that_was_declined_waits_no_more_once_the_slot_is_idle() {
    let mut bench = asked_about_make();
    bench.settled(dialog("d1", "make"));
    bench.put(confirm(20, "no", Some("d1")));
    bench.put(idle());
    bench.pass(IDLE_IS_OVER);
    bench.settled(dialog("d2", "make"));
    assert_eq!(bench.machine.gate_knows_dialog(), Some(Known::Not));
}

#[test]
fn a_dialog_that_changes_while_it_asks_about_the_same_call_is_drawn_again() {
    let mut bench = asked_about_make();
    bench.settled(dialog("d1", "make"));
    let mut painted = dialog("d2", "make");
    painted.options.swap(0, 3);
    bench.see(at(painted));
    assert!(bench.has(&Effect::Repaint));
    bench.put(confirm(20, "no", None));
    bench.pass(SETTLED);
    assert!(bench.keys.is_empty(), "not before it is drawn");
}

/// A painted input box must not end the turn whose dialog it hides, nor the gate's knowledge of its call.
#[test]
fn a_screen_at_rest_that_is_disputed_ends_no_turn() {
    for disputes in [false, true] {
        let mut bench = Bench::idle();
        bench.send(2, "hello");
        bench.arrives("hello");
        bench.see(screen(State::Thinking, ""));
        bench.see(screen(State::Idle, ""));
        if disputes {
            disputed(&mut bench);
        }
        bench.pass(TURN_SHOWS);
        let looks = bench.has(&Effect::FindAnswer);
        assert_eq!(looks, !disputes, "disputed: {disputes}");
    }
}

/// An idle screen is painted over the dialog of a waiting call.
#[test]
fn a_call_that_the_screen_hides_is_known_and_gets_no_key() {
    let mut bench = Bench::idle();
    bench.hear(8, HookWhat::SessionStart);
    bench.send(7, "go");
    bench.arrives("go");
    bench.see(screen(State::Thinking, ""));
    let input = json!({"command": "git push"});
    bench.hear(
        9,
        HookWhat::BeforeTool {
            tool: "Bash".into(),
            input: input.clone(),
            id: Some("t1".into()),
        },
    );
    bench.settled(dialog("d1", "git push"));
    assert!(bench.machine.calls_not_shown().is_empty());
    bench.keys.clear();
    bench.see(screen(State::Idle, ""));
    let hidden = bench.machine.calls_not_shown();
    assert_eq!(hidden.len(), 1);
    assert_eq!(
        (hidden[0].tool.as_str(), &hidden[0].input),
        ("Bash", &input)
    );
    bench.others.clear();
    for (token, answer) in [(20, "no"), (21, "yes")] {
        bench.put(confirm(token, answer, None));
        let refused = bench.replies[&token].as_ref().expect_err("no dialog is up");
        assert!(refused.message.contains("git push"), "{refused:?}");
        assert_eq!(refused.refusal, Some("hidden_dialog"));
    }
    bench.put(interrupt(22));
    assert_eq!(bench.fault(22), Some(Fault::Refused));
    assert!(bench.has(&Effect::Repaint), "the dialog is drawn again");
    assert!(bench.keys.is_empty(), "{:?}", bench.keys);
    bench.see(at(dialog("d2", "git push")));
    assert!(bench.machine.calls_not_shown().is_empty());
}
