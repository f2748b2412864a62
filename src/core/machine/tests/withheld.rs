//! Keys that were not pressed because the screen had changed.

use super::*;

#[test]
fn on_a_screen_that_nobody_knows_no_key_is_pressed() {
    let mut bench = Bench::idle();
    let unknown = Observation {
        certain: false,
        ..at(Dialog {
            kind: DialogKind::Other,
            ..dialog("o1", "")
        })
    };
    bench.see(unknown);
    bench.put(confirm(2, "yes", None));
    bench.put(interrupt(3));
    bench.pass(Duration::from_secs(60));
    assert!(bench.keys.is_empty());
    assert_eq!(
        (bench.fault(2), bench.fault(3)),
        (Some(Fault::Refused), Some(Fault::Refused))
    );
}

#[test]
fn a_withheld_enter_is_pressed_again_when_the_text_still_stands() {
    let mut bench = Bench::idle();
    bench.send(5, "hello");
    bench.arrives("hello");
    assert_eq!(bench.keys, ["paste", "Enter"]);
    bench.put(Input::Withheld(screen(State::Idle, "hello")));
    bench.pass(PASTE_SETTLES);
    assert_eq!(bench.keys, ["paste", "Enter", "Enter"]);

    bench.put(Input::Withheld(at(dialog("d", "make"))));
    assert_eq!(bench.keys.len(), 3);
    assert_eq!(bench.fault(5), Some(Fault::Refused));
}

#[test]
fn a_withheld_paste_waits_for_the_input_box() {
    let mut bench = Bench::idle();
    bench.send(5, "hello");
    bench.put(Input::Withheld(at(dialog("d", "make"))));
    assert_eq!(bench.keys, ["paste"]);
    bench.see(screen(State::Idle, ""));
    assert_eq!(bench.keys, ["paste", "paste"]);
}

#[test]
fn a_dialog_that_changed_before_the_key_gets_none() {
    let mut bench = Bench::idle();
    bench.see(at(dialog("d", "make")));
    bench.pass(SETTLED);
    bench.put(confirm(5, "yes", Some("d")));
    assert_eq!(bench.keys, ["1"]);
    bench.put(Input::Withheld(at(dialog("e", "make install"))));
    assert_eq!(bench.keys, ["1"], "no second key");
    assert_eq!(bench.fault(5), Some(Fault::Refused));

    // A small change of the same dialog, such as another marked row, is no reason to give up.
    bench.pass(SETTLED);
    bench.put(confirm(6, "yes", Some("e")));
    bench.put(Input::Withheld(at(dialog("e", "make install"))));
    assert_eq!(bench.keys, ["1", "1", "1"]);
}

/// A screen that changes all the time gets no key that approves, and no client learns of a key that was not pressed.
#[test]
fn a_key_that_a_moving_screen_did_not_get_was_not_pressed() {
    for seen in [dialog("d", "make"), dialog("e", "make install")] {
        let mut bench = Bench::idle();
        bench.settled(dialog("d", "make"));
        bench.put(confirm(5, "yes", Some("d")));
        let why = "the key was withheld: it moves";
        let sight = Some(at(seen));
        let error = Box::new(RpcError::new(Fault::Refused, why));
        bench.put(Input::Unpressed { error, sight });
        let error = bench.replies[&5].as_ref().expect_err("a refusal");
        assert_eq!(error.message, why);
        bench.pass(Duration::from_secs(60));
        assert_eq!(bench.keys, ["1"], "it is not tried again");
    }
}

#[test]
fn a_withheld_esc_is_decided_on_anew() {
    let mut bench = Bench::idle();
    bench.see(screen(State::Thinking, ""));
    bench.put(interrupt(5));
    bench.put(Input::Withheld(screen(State::Thinking, "a draft")));
    assert_eq!(bench.keys, ["Esc", "Esc"]);
    bench.put(Input::Withheld(screen(State::Idle, "")));
    assert_eq!(bench.keys, ["Esc", "Esc"]);
    assert_eq!(bench.replies[&5], Ok(Reply::Interrupted("nothing")));
}
