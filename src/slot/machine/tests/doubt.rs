//! Screens that another witness contradicts.

use super::*;

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
    assert!(bench.told.contains(&What::Doubtful { why: why.clone() }));
    assert!(bench.has(&Effect::Repaint));
    assert_eq!(bench.machine.distrust().as_ref(), Some(&why));
    let reason = bench.machine.why_a_person();
    assert_eq!(reason, Some(format!("doubtful: {why}")));
    assert_eq!(
        bench.machine.poll_timeout(),
        None,
        "nothing is due any more"
    );

    bench.put(Input::Witnessed(None));
    assert!(bench.told.contains(&What::DoubtGone));
    assert_eq!(bench.machine.distrust(), None);
    bench.pass(SETTLED);
    assert!(bench.keys.is_empty(), "the person was told of this one");
}

#[test]
fn a_difference_that_passes_only_delays_the_answer() {
    let mut bench = Bench::idle();
    bench.see(at(dialog("d1", "rm x")));
    disputed(&mut bench);
    bench.pass(SETTLED);
    bench.put(Input::Witnessed(None));
    assert_eq!(bench.keys, ["4"]);
    let doubtful = |what: &What| matches!(what, What::Doubtful { .. } | What::DoubtGone);
    assert!(!bench.told.iter().any(doubtful));
}

/// A gated slot in which the gate was asked about `make`.
fn asked_about_make() -> Bench {
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

/// A no allows nothing, so no doubt stands against it; and Esc says it whatever stands where.
#[test]
fn a_no_is_always_possible() {
    for answer in ["no", "No", "esc"] {
        let mut bench = asked_about_make();
        bench.settled(dialog("d1", "git status"));
        assert_eq!(bench.machine.gate_knows_dialog(), Some(Known::Not));
        bench.pass(REDRAWN);
        bench.put(confirm(21, answer, Some("d1")));
        assert_eq!(bench.keys, ["Esc"], "{answer}");
        let verdicts = bench.told.iter().filter_map(|told| match told {
            What::Verdict { verdict, by, .. } if by == "person" => Some(*verdict),
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
    bench.put(Input::Interrupt(30));
    assert_eq!(bench.keys, ["Esc"]);
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
