use super::*;
use crate::core::claude::reading::DialogKind;
use serde_json::json;

fn colours() -> Value {
    let options = json!([
        {"label": "Red", "description": "warm"},
        {"label": "Blue, light", "description": "cold"}
    ]);
    json!({"questions": [
        {"question": "Which size?", "options": [{"label": "Small"}, {"label": "Large"}]},
        {"question": "Which colour?", "options": options}
    ]})
}

/// Each option with its number, 0 for none, and its description.
fn dialog(question: &str, options: &[(u32, &str, &str)]) -> Dialog {
    let choice = |(number, label, description): &(u32, &str, &str)| Choice {
        label: (*label).to_owned(),
        number: Some(*number).filter(|number| *number > 0),
        description: Some((*description).to_owned()).filter(|text| !text.is_empty()),
        checked: None,
    };
    Dialog {
        tool: Some(TOOL.to_owned()),
        input: json!({ "question": question }).as_object().cloned(),
        options: options.iter().map(choice).collect(),
        selected: Some(0),
        ..Dialog::new("d1", DialogKind::Question)
    }
}

const TYPE: (u32, &str, &str) = (3, "Type something.", "");
const CHAT: (u32, &str, &str) = (4, "Chat about this", "");

#[test]
fn a_question_is_known_however_it_is_set() {
    let red = (1, "Red", "warm");
    let known: [&[(u32, &str, &str)]; 6] = [
        &[red, (2, "Blue, light", "cold"), TYPE, CHAT],
        &[red, (2, "Blue, light", ""), (3, "my own words", "")],
        // The reader took the description as a part of the label, or the end of the label as a description.
        &[(1, "Red warm", ""), (2, "Blue,", "light cold"), TYPE],
        &[
            red,
            (2, "Blue, light", "co…"),
            TYPE,
            (0, "Submit", ""),
            CHAT,
        ],
        &[red, (2, "Blue, light", "cold"), (0, "Chat about this", "")],
        &[(1, "Submit answers", ""), (2, "Cancel", "")],
    ];
    for options in known {
        let dialog = dialog("Which colour?", options);
        assert!(shows_one(&colours(), &dialog), "{options:?}");
    }
    let size = dialog("Which\nsize?", &[(1, "Small", ""), (2, "Large", ""), TYPE]);
    assert!(shows_one(&colours(), &size));
}

#[test]
fn what_was_painted_over_a_question_is_not_known() {
    let (red, blue) = ((1, "Red", "warm"), (2, "Blue, light", "cold"));
    let painted: [&[(u32, &str, &str)]; 10] = [
        &[(1, "Blue, light", "cold"), (2, "Red", "warm"), TYPE, CHAT],
        &[(2, "Red", "warm"), (1, "Blue, light", "cold"), TYPE, CHAT],
        &[red, (2, "Green", "cold"), TYPE, CHAT],
        &[red, (2, "Blue", ""), TYPE, CHAT],
        &[(1, "Red", "cold"), blue, TYPE, CHAT],
        &[red, blue, TYPE, (4, "Red", "")],
        &[red, TYPE, CHAT],
        &[red, blue, TYPE, (0, "Red", "")],
        &[(1, "Cancel", ""), (2, "Submit answers", "")],
        &[(2, "Red", "warm"), (3, "Blue, light", "cold")],
    ];
    for options in painted {
        let dialog = dialog("Which colour?", options);
        assert!(!shows_one(&colours(), &dialog), "{options:?}");
    }
    let other = dialog("Which colour is worst?", &[red, blue, TYPE, CHAT]);
    assert!(!shows_one(&colours(), &other));
    let of_another = dialog("Which size?", &[red, blue, TYPE, CHAT]);
    assert!(!shows_one(&colours(), &of_another));
    assert!(!shows_one(&json!({"command": "ls"}), &other));
}

/// There are ticks if several answers can be chosen, and a review page if there is more than one answer.
#[test]
fn ticks_and_the_last_page_are_held_against_the_call() {
    let asks = |several: bool| {
        let options = json!([{"label": "Red"}, {"label": "Blue"}]);
        json!({"questions": [{"question": "Which?", "options": options, "multiSelect": several}]})
    };
    let shown = |ticks: bool| {
        let mut shown = dialog("Which?", &[(1, "Red", ""), (2, "Blue", ""), TYPE]);
        let options = shown.options.iter_mut();
        options.for_each(|choice| choice.checked = ticks.then_some(false));
        shown
    };
    let review = dialog("Review", &[(1, "Submit answers", ""), (2, "Cancel", "")]);
    for several in [false, true] {
        for ticks in [false, true] {
            let known = shows_one(&asks(several), &shown(ticks));
            assert_eq!(known, several == ticks, "{several} {ticks}");
        }
        assert_eq!(shows_one(&asks(several), &review), several);
    }
}

/// On a screen with too few rows the first rows are missing; the visible ones are compared with the call.
#[test]
fn a_part_of_a_question_is_known_by_its_numbers() {
    let part = |question: &str, options: &[(u32, &str, &str)]| Dialog {
        complete: false,
        ..dialog(question, options)
    };
    let blue = (2, "Blue, light", "cold");
    assert!(shows_one(&colours(), &part("", &[blue, TYPE])));
    assert!(shows_one(&colours(), &part("colour?", &[blue, TYPE])));
    assert!(!shows_one(
        &colours(),
        &part("", &[(2, "Red", "warm"), TYPE])
    ));
    assert!(!shows_one(&colours(), &part("day?", &[blue, TYPE])));
}

#[test]
fn labels_that_differ_in_signs_alone_are_compared_by_them() {
    let options = json!([{"label": "C"}, {"label": "C++"}, {"label": "C#"}]);
    let input = json!({"questions": [{"question": "Which one?", "options": options}]});
    let shown = |labels: [&str; 3]| {
        let options = [(1, labels[0], ""), (2, labels[1], ""), (3, labels[2], "")];
        shows_one(&input, &dialog("Which one?", &options))
    };
    assert!(shown(["C", "C++", "C#"]));
    assert!(!shown(["C", "C#", "C++"]));
    assert!(!shown(["C++", "C", "C#"]));
}
