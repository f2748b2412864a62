//! A person types at the slot's own terminal.

use super::*;

fn typed(bench: &mut Bench, bytes: &[u8]) {
    bench.put(Input::Typed {
        person: a_person(),
        strokes: strokes(bytes),
    });
}

fn verdicts(bench: &Bench) -> Vec<(Decision, String, Decider)> {
    let found = bench.others.iter().filter_map(|effect| match effect {
        Effect::Audit(verdict, _, decider) => {
            Some((verdict.decision, verdict.why.clone(), decider.clone()))
        }
        _ => None,
    });
    found.collect()
}

#[test]
fn strokes_are_told_from_reports() {
    use Stroke::*;
    assert_eq!(strokes(b"2"), [Digit(2)]);
    assert_eq!(strokes(b"\x1b[B\x1bOA\r"), [Move, Move, Enter]);
    assert_eq!(strokes(b"\x1b[Z\t"), [BackTab, Move]);
    assert_eq!(strokes(b"\x1b"), [Escape]);
    assert_eq!(strokes(b"\x1b\x1b[A"), [Escape, Move]);
    assert_eq!(strokes(b"\x03a"), [Escape, Other]);
    let nobody: [&[u8]; 5] = [
        b"\x1b[I",
        b"\x1b[O",
        b"\x1b[<35;1;2M",
        b"\x1b[<64;1;2M",
        b"\x1b[M#!!",
    ];
    for report in nobody {
        assert_eq!(strokes(report), [], "{report:?}");
    }
    assert_eq!(strokes(b"\x1b[<0;1;2M"), [Other]);
    assert_eq!(strokes(&[b'x'; 1000]), [Other]);
}

#[test]
fn a_dialog_is_not_answered_by_rule_while_somebody_types() {
    let mut bench = Bench::idle_with(SlotConfig {
        gate: Gate::Screen,
        ..config()
    });
    typed(&mut bench, b"x");
    bench.see(at(dialog("d1", "ls -l")));
    bench.pass(Duration::from_secs(5));
    assert!(bench.keys.is_empty(), "{:?}", bench.keys);
    let doing = bench.machine.doing(bench.now).unwrap_or_default();
    assert!(doing.contains("a person types"), "{doing}");
    bench.pass(HANDS_OFF);
    assert_eq!(bench.keys, ["1"]);
    let told = |what: &EventKind| bench.told.contains(what);
    assert!(told(&EventKind::Typing { uid: 1000 }) && told(&EventKind::TypingOver));
}

#[test]
fn a_message_waits_until_the_keyboard_is_free() {
    let mut bench = Bench::idle();
    typed(&mut bench, b"\x1b[A");
    bench.send(7, "hello");
    bench.pass(Duration::from_secs(1));
    assert!(bench.keys.is_empty(), "{:?}", bench.keys);
    assert!(!bench.replies.contains_key(&7));
    bench.put(Input::KeyboardFree);
    assert_eq!(bench.keys, ["paste"]);
}

#[test]
fn who_gives_up_waiting_is_told_that_somebody_typed() {
    let mut bench = Bench::idle();
    typed(&mut bench, b"x");
    bench.send(7, "hello");
    bench.put(Input::Withdraw(7));
    let error = bench.replies[&7].as_ref().unwrap_err();
    assert!(error.message.contains("a person"), "{error}");
}

#[test]
fn a_paste_under_way_gets_no_enter() {
    let mut bench = Bench::idle();
    bench.send(7, "hello");
    assert_eq!(bench.keys, ["paste"]);
    typed(&mut bench, b"x");
    let error = bench.replies[&7].as_ref().unwrap_err();
    assert_eq!(error.fault, Fault::Refused);
    bench.arrives("hello");
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.keys, ["paste"]);
}

#[test]
fn what_he_answers_is_his() {
    for (keys, decision, why) in [
        (
            &b"\r"[..],
            Decision::Allow,
            "a person at the keyboard chose Yes",
        ),
        (b"4", Decision::Deny, "a person at the keyboard chose No"),
        (
            b"\x1b",
            Decision::Deny,
            "a person at the keyboard chose Esc",
        ),
        // It is not known where the arrow led.
        (
            b"\x1b[B\r",
            Decision::Ask,
            "a person answered it at the keyboard",
        ),
    ] {
        let mut bench = Bench::idle();
        bench.see(at(dialog("d1", "make")));
        typed(&mut bench, keys);
        bench.see(screen(State::Thinking, ""));
        let person = Decider::Person(a_person());
        let expected = (decision, why.to_owned(), person);
        assert_eq!(verdicts(&bench), [expected], "{keys:?}");
    }
}

/// The key has reached another option than the one whose label is painted there.
#[test]
fn what_he_answers_to_painted_options_is_not_known() {
    for (keys, decision) in [
        (&b"1"[..], Decision::Ask),
        (b"4", Decision::Ask),
        (b"\x1b", Decision::Deny),
    ] {
        let mut bench = Bench::idle();
        bench.see(at(super::doubt::swapped(dialog("d1", "make"))));
        typed(&mut bench, keys);
        bench.see(screen(State::Thinking, ""));
        let decisions: Vec<Decision> = verdicts(&bench).iter().map(|found| found.0).collect();
        assert_eq!(decisions, [decision], "{keys:?}");
    }
}

#[test]
fn a_dialog_that_goes_by_itself_is_nobodys_answer() {
    let mut bench = Bench::idle();
    bench.see(at(dialog("d1", "make")));
    typed(&mut bench, b"\x1b[B");
    bench.see(screen(State::Idle, ""));
    assert_eq!(verdicts(&bench), []);
}
