//! Questions with several answers, and answers as free text.

use super::*;

fn question(id: &str, labels: &[&str], ticks: &[bool]) -> Dialog {
    let mut number = 0;
    let option = |(index, label): (usize, &&str)| {
        let numbered = *label != "Submit";
        number += u32::from(numbered);
        Choice {
            label: (*label).into(),
            number: numbered.then_some(number),
            description: None,
            checked: ticks.get(index).copied(),
        }
    };
    Dialog {
        kind: DialogKind::Question,
        tool: Some("AskUserQuestion".into()),
        input: None,
        options: labels.iter().enumerate().map(option).collect(),
        ..dialog(id, "")
    }
}

fn in_own_words(token: Token, words: &str) -> Input {
    match confirm(token, "", None) {
        Input::Confirm(confirmation) => Input::Confirm(Confirmation {
            answer: crate::core::claude::keys::Answer::Words(words.into()),
            ..confirmation
        }),
        other => other,
    }
}

#[test]
fn several_answers_are_ticked_one_by_one_and_submitted() {
    let labels = ["Cheese", "Ham", "Type something", "Submit"];
    let asked = |ticks: [bool; 3], selected: usize| {
        let selected = Some(selected);
        at(Dialog {
            selected,
            ..question("q1", &labels, &ticks)
        })
    };
    let mut bench = Bench::idle();
    bench.see(asked([false; 3], 0));
    bench.pass(SETTLED);
    bench.put(confirm(2, "Cheese, Ham", Some("q1")));
    assert_eq!(bench.keys, ["1"]);
    bench.see(asked([true, false, false], 0));
    assert_eq!(bench.keys, ["1", "2"]);
    for selected in 0..4 {
        bench.see(asked([true, true, false], selected));
    }
    assert_eq!(bench.keys, ["1", "2", "Down", "Down", "Down", "Enter"]);
    bench.see(at(question("q2", &["Submit answers", "Cancel"], &[])));
    assert!(!bench.replies.contains_key(&2));
    assert_eq!(bench.keys.len(), 6, "keys that come too early are lost");
    bench.pass(SETTLED);
    assert_eq!(bench.keys.last().map(String::as_str), Some("1"));
    bench.see(screen(State::Thinking, ""));
    let Some(Ok(Reply::Confirmed { chosen, .. })) = bench.replies.get(&2) else {
        panic!("{:?}", bench.replies);
    };
    assert_eq!(chosen, "Cheese, Ham");
}

#[test]
fn one_tick_leaves_the_question_up() {
    let mut bench = Bench::idle();
    let asked = |tick| {
        at(question(
            "q1",
            &["Cheese", "Type something", "Submit"],
            &[tick, false],
        ))
    };
    bench.see(asked(false));
    bench.pass(SETTLED);
    bench.put(confirm(2, "Cheese", None));
    assert_eq!(bench.keys, ["1"]);
    assert!(!bench.replies.contains_key(&2));
    bench.see(asked(true));
    assert!(matches!(
        bench.replies.get(&2),
        Some(Ok(Reply::Confirmed { .. }))
    ));
    assert_eq!(bench.keys, ["1"]);
}

#[test]
fn a_text_is_written_once_and_entered_when_it_is_seen() {
    let mut bench = Bench::idle();
    let asked = |written: &str, selected: usize| {
        let selected = Some(selected);
        at(Dialog {
            selected,
            ..question("q1", &["Small", written], &[])
        })
    };
    bench.see(asked("Type something.", 0));
    bench.pass(SETTLED);
    bench.put(confirm(3, "a medium one", None));
    assert_eq!(bench.fault(3), Some(Fault::Refused), "no option says so");
    assert!(bench.keys.is_empty(), "{:?}", bench.keys);
    bench.put(in_own_words(2, "a medium one"));
    bench.see(asked("Type something.", 1));
    assert_eq!(bench.keys, ["2", "paste"]);
    bench.see(asked("a med", 1));
    assert_eq!(bench.keys, ["2", "paste"], "half of it is there");
    bench.see(asked("a medium one", 1));
    assert_eq!(bench.keys, ["2", "paste", "Enter"]);
    bench.see(screen(State::Thinking, ""));
    assert!(matches!(
        bench.replies.get(&2),
        Some(Ok(Reply::Confirmed { .. }))
    ));
}
