use super::*;

mod answers;

fn said(dialog: &Dialog, answer: &str) -> Result<Vec<Pick>, NoPick> {
    picks(dialog, &Answer::Choice(answer.to_owned()))
}

fn written(dialog: &Dialog, words: &str) -> Result<Vec<Pick>, NoPick> {
    picks(dialog, &Answer::Words(words.to_owned()))
}

fn dialog(kind: DialogKind, labels: &[&str], numbered: bool) -> Dialog {
    let options = labels.iter().enumerate().map(|(index, label)| Choice {
        label: (*label).to_owned(),
        number: numbered.then_some(index as u32 + 1),
        description: None,
        checked: None,
    });
    Dialog {
        options: options.collect(),
        selected: Some(0),
        ..Dialog::new("d1", kind)
    }
}

const BASH: [&str; 4] = [
    "Yes",
    "Yes, and don't ask again for rm commands in /p",
    "Yes, and switch to auto mode · auto mode handles these prompts for you",
    "No",
];

#[test]
fn yes_is_the_plain_yes_and_no_is_esc() {
    let bash = dialog(DialogKind::Permission, &BASH, true);
    assert_eq!(pick(&bash, "yes"), Ok(Pick::Option(0)));
    assert_eq!(pick(&bash, "no"), Ok(Pick::Esc));
    assert_eq!(pick(&bash, "always"), Ok(Pick::Option(0)));
}

#[test]
fn the_order_of_the_options_of_a_question_does_not_matter() {
    let turned: Vec<&str> = BASH.iter().rev().copied().collect();
    let bash = dialog(DialogKind::Question, &turned, true);
    assert_eq!(pick(&bash, "yes"), Ok(Pick::Option(3)));
    assert_eq!(pick(&bash, "no"), Ok(Pick::Option(0)));
}

/// Any order of any labels of a permission dialog, with any numbers: a no is never a number, and a yes is never a number other
/// than the one of the yes in every version.
#[test]
fn whatever_is_painted_no_is_esc_and_yes_is_the_first_number() {
    let labels = [BASH[0], BASH[1], BASH[2], BASH[3], "No, and tell Claude"];
    let orders = (0..5_usize.pow(4)).map(|n| [n % 5, n / 5 % 5, n / 25 % 5, n / 125]);
    for (order, complete) in orders.flat_map(|order| [(order, true), (order, false)]) {
        let shown = order.map(|index| labels[index]);
        for turned in [false, true] {
            let mut painted = dialog(DialogKind::Permission, &shown, true);
            painted.complete = complete;
            if turned {
                let last = painted.options.len() as u32 + 1;
                let options = painted.options.iter_mut().zip(1..);
                options.for_each(|(choice, number)| choice.number = Some(last - number));
            }
            assert_eq!(pick(&painted, "no"), Ok(Pick::Esc), "{shown:?}");
            for answer in ["yes", "always", "no, and", "No, and tell Claude"] {
                let Ok(pick) = pick(&painted, answer) else {
                    continue;
                };
                let says_no = answer.to_lowercase().starts_with("no");
                let key = step_towards(&painted, &pick).expect("a key").name;
                assert_eq!(key, if says_no { "Esc" } else { "1" }, "{shown:?}");
            }
            let in_order = [[0, 1, 2, 3], [0, 2, 1, 3], [0, 1, 1, 3], [0, 2, 2, 3]];
            let ends_in_no = |order: [usize; 4]| [order[0], order[1], order[2], order[3].min(3)];
            let known = in_order.contains(&ends_in_no(order)) && !turned;
            if complete {
                assert_eq!(in_known_order(&painted), known, "{shown:?}");
            }
        }
    }
}

/// The options of plans in all recorded versions.
const PLANS: [&[&str]; 6] = [
    &["Yes", "No"],
    &[
        "Yes, and switch to default (ask each time) for this session",
        "No",
    ],
    &[
        "Yes, and use auto mode",
        "Yes, manually approve edits",
        "Tell Claude what to change",
    ],
    &[
        "Yes, auto-accept edits",
        "Yes, manually approve edits",
        "Tell Claude what to change",
    ],
    &[
        "Yes, and auto-accept edits",
        "Yes, and manually approve edits",
        "No, keep planning",
    ],
    &[
        "Yes, clear context and auto-accept edits (shift+tab)",
        "Yes, auto-accept edits",
        "Yes, manually approve edits",
        "Type here to tell Claude what to change",
    ],
];

/// A yes to a plan is the option that asks about each edit, and labels in any other order were painted.
#[test]
fn a_yes_to_a_plan_grants_no_more_than_to_be_asked() {
    for labels in PLANS {
        let plan = |labels: &[&str]| dialog(DialogKind::Plan, labels, true);
        assert!(in_known_order(&plan(labels)), "{labels:?}");
        let wanted = labels.len().saturating_sub(2);
        assert_eq!(
            pick(&plan(labels), "yes"),
            Ok(Pick::Option(wanted)),
            "{labels:?}"
        );
        assert_eq!(pick(&plan(labels), "no"), Ok(Pick::Esc), "{labels:?}");
        for (one, other) in [
            (wanted, labels.len() - 1),
            (0, labels.len() - 1),
            (0, wanted.max(1)),
        ] {
            let mut painted = labels.to_vec();
            painted.swap(one, other);
            assert!(!in_known_order(&plan(&painted)), "{painted:?}");
        }
        let painted: Vec<&str> = labels[wanted..].to_vec();
        if wanted == 0 {
            continue;
        }
        assert!(!in_known_order(&plan(&painted)), "{painted:?}");
    }
    let only_more = [
        "Yes, and switch to accept edits (shift+tab) for this session",
        "No",
    ];
    assert!(pick(&dialog(DialogKind::Plan, &only_more, true), "yes").is_err());
    let two = [PLANS[1][0], "Yes, and use auto mode", "No"];
    assert!(pick(&dialog(DialogKind::Plan, &two, true), "yes").is_err());
    let at_permission = dialog(DialogKind::Permission, PLANS[1], true);
    assert!(pick(&at_permission, "yes").is_err());
}

#[test]
fn a_permission_dialog_has_all_numbers_and_a_no_in_the_end() {
    let known = |labels: &[&str]| in_known_order(&dialog(DialogKind::Permission, labels, true));
    let mut gap = dialog(DialogKind::Permission, &["Yes", BASH[1], "No"], true);
    gap.options.remove(1);
    assert!(!in_known_order(&gap), "1 and 3");
    assert!(known(&["Yes", "No"]));
    assert!(known(&["Yes", BASH[1], "Type here to tell Claude"]));
    assert!(!known(&["Yes", "Yes, just this", "No"]), "nothing more");
    assert!(!known(&["Yes", BASH[1]]), "no end");
    assert!(!known(&["Yes", "No", "Yes"]));
    assert!(!known(&["Yes"]));
    let mut low = dialog(DialogKind::Permission, &["Yes", BASH[1]], true);
    low.complete = false;
    assert!(in_known_order(&low), "the screen ends before the no");
}

#[test]
fn a_no_that_opens_a_text_field_is_left_for_esc() {
    let labels = [
        "Yes",
        "Yes, and don't ask again for h",
        "No, and tell Claude what to do differently (esc)",
    ];
    assert_eq!(
        pick(&dialog(DialogKind::Permission, &labels, true), "no"),
        Ok(Pick::Esc)
    );
    let older = [
        "Yes",
        "Yes, allow all edits during this session",
        "Type here to tell Claude what to do differently",
    ];
    assert_eq!(
        pick(&dialog(DialogKind::Permission, &older, true), "no"),
        Ok(Pick::Esc)
    );
}

/// A command that reads a file in another directory, as 2.1.325 asks about it.
#[test]
fn an_option_that_allows_a_directory_says_more_than_yes() {
    let labels = [
        "Yes",
        "Yes, allow reading from /tmp/elsewhere from this project",
        "No",
    ];
    let asked = dialog(DialogKind::Permission, &labels, true);
    assert!(in_known_order(&asked));
    assert_eq!(pick(&asked, "yes"), Ok(Pick::Option(0)));
    let painted = [labels[1], labels[0], labels[2]];
    assert!(!in_known_order(&dialog(
        DialogKind::Permission,
        &painted,
        true
    )));
}

#[test]
fn trust_is_given_by_label_whatever_the_default_is_and_refused_by_esc() {
    let new = dialog(
        DialogKind::Trust,
        &["No, exit", "Yes, I trust this folder"],
        false,
    );
    assert_eq!(pick(&new, "yes"), Ok(Pick::Option(1)));
    for no in ["no", "No, exit"] {
        assert_eq!(pick(&new, no), Ok(Pick::Esc), "{no}");
    }
    assert!(declines(&new, &Pick::Option(0)), "pressed by hand");
    assert_eq!(
        step_towards(&new, &Pick::Option(1)).map(|s| (s.name, s.decides)),
        Some(("Down".into(), false))
    );
    let mut moved = new.clone();
    moved.selected = Some(1);
    assert_eq!(
        step_towards(&moved, &Pick::Option(1)).map(|s| (s.name, s.decides)),
        Some(("Enter".into(), true))
    );
}

#[test]
fn yes_is_refused_where_every_yes_says_more() {
    let labels = [
        "Yes, and auto-accept edits",
        "Yes, and bypass permissions",
        "No",
    ];
    let plan = dialog(DialogKind::Plan, &labels, true);
    assert_eq!(pick(&plan, "yes"), Err(NoPick::None("yes".into())));
    assert_eq!(
        pick(&plan, "Yes, and auto-accept edits"),
        Ok(Pick::Option(0))
    );
}

/// Its labels may be painted: a digit would reach another option.
#[test]
fn no_to_a_permission_dialog_or_a_plan_is_esc() {
    let labels = ["No", "Yes, and manually approve edits", "Yes"];
    for kind in [DialogKind::Permission, DialogKind::Plan] {
        let painted = dialog(kind, &labels, true);
        assert_eq!(pick(&painted, "no"), Ok(Pick::Esc), "{kind:?}");
    }
    let question = dialog(DialogKind::Question, &["No", "Yes"], true);
    assert_eq!(pick(&question, "no"), Ok(Pick::Option(0)));
}

#[test]
fn yes_to_a_plan_is_the_one_that_keeps_asking() {
    let labels = [
        "Yes, and auto-accept edits",
        "Yes, and manually approve edits",
        "Type here to tell Claude what to change",
    ];
    assert_eq!(
        pick(&dialog(DialogKind::Plan, &labels, true), "yes"),
        Ok(Pick::Option(1))
    );
}

#[test]
fn a_label_may_be_shortened_to_whole_words_while_it_is_clear() {
    let labels = ["Red", "Blue", "Red wine", "Blue sky", "Red wall"];
    let ask = dialog(DialogKind::Question, &labels, true);
    assert_eq!(pick(&ask, "blue"), Ok(Pick::Option(1)));
    assert_eq!(pick(&ask, "red"), Ok(Pick::Option(0)));
    assert_eq!(pick(&ask, "red wine"), Ok(Pick::Option(2)));
    let none = |word: &str| Err(NoPick::None(word.to_owned()));
    assert_eq!(pick(&ask, "red w"), none("red w"));
    let menu = dialog(DialogKind::Question, &["Red wine", "Red wall"], true);
    assert_eq!(pick(&menu, "red"), Err(NoPick::Ambiguous("red".into())));
    assert_eq!(pick(&menu, "re"), none("re"));
    assert_eq!(pick(&ask, "green"), Err(NoPick::None("green".into())));
}

#[test]
fn nothing_in_a_message_acts_as_a_key() {
    let hostile = "a\x1b[201~\r!touch x\r\x03\x04\u{9b}\0";
    let text = message(hostile, KeyMeaning::default()).unwrap();
    assert_eq!(
        text,
        "a\u{241b}[201~\n!touch x\n\u{2403}\u{2404}\u{fffd}\u{2400}"
    );
    let bytes = paste(&text);
    assert_eq!(bytes.iter().filter(|b| **b == 0x1b).count(), 2);
}

#[test]
fn a_text_is_as_claude_code_would_make_it() {
    let text = message(
        "e\u{301} a\u{200b}b\u{202e}c 👩\u{200d}🚀 \\\n\n",
        KeyMeaning::default(),
    )
    .unwrap();
    assert_eq!(text, "\u{e9} abc 👩\u{200d}🚀 \\ ");
}

#[test]
fn a_beginning_that_acts_is_made_text_or_refused() {
    assert_eq!(message("!ls", KeyMeaning::default()).unwrap(), " !ls");
    for completed in ["look at @src", "use /mod", "well :smi"] {
        let sent = message(completed, KeyMeaning::default()).unwrap();
        assert_eq!(sent, format!("{completed} "));
    }
    assert_eq!(
        message(
            "!ls",
            KeyMeaning {
                shell: true,
                slash: false
            }
        )
        .unwrap(),
        "!ls"
    );
    assert_eq!(
        message("/exit now", KeyMeaning::default()),
        Err(NotSendable::Slash("/exit".into()))
    );
    assert_eq!(
        message(
            "/clear",
            KeyMeaning {
                shell: false,
                slash: true
            }
        )
        .unwrap(),
        "/clear"
    );
    assert_eq!(
        message(" \n\t", KeyMeaning::default()),
        Err(NotSendable::Empty)
    );
}

fn toppings() -> Dialog {
    let labels = [
        "Cheese",
        "Ham",
        "Type something",
        "Submit",
        "Chat about this",
    ];
    let mut dialog = dialog(DialogKind::Question, &labels, true);
    for (index, checked) in [false, true, false].into_iter().enumerate() {
        dialog.options[index].checked = Some(checked);
    }
    dialog.options[3].number = None;
    dialog.options[4].number = Some(4);
    dialog
}

#[test]
fn a_label_ticks_and_several_are_submitted() {
    let dialog = toppings();
    assert_eq!(said(&dialog, "cheese"), Ok(vec![Pick::Tick(0, true)]));
    assert_eq!(said(&dialog, "Ham"), Ok(vec![Pick::Tick(1, false)]));
    assert_eq!(said(&dialog, "Submit"), Ok(vec![Pick::Option(3)]));
    let both = [Pick::Tick(0, true), Pick::Tick(1, true), Pick::Option(3)];
    assert_eq!(said(&dialog, "Cheese, Ham"), Ok(both.to_vec()));
    let none = Err(NoPick::None("Olives".into()));
    assert_eq!(said(&dialog, "Cheese,Olives"), none);
    let digit = step_towards(&dialog, &Pick::Tick(1, false)).unwrap();
    assert_eq!((digit.name.as_str(), digit.decides), ("2", true));
}

/// Enter is pressed only when the text is visible, so a character that is never drawn would prevent it.
#[test]
fn what_is_never_drawn_is_left_out_before_anything_is_looked_at() {
    let sent = |text: &str| message(text, KeyMeaning::default());
    assert_eq!(sent("co\u{ad}op"), Ok("coop".to_owned()));
    assert_eq!(sent("\u{ad}!touch x"), Ok(" !touch x".to_owned()));
    assert_eq!(
        sent("\u{61c}/exit"),
        Err(NotSendable::Slash("/exit".into()))
    );
    assert_eq!(sent("\u{ad}\u{3164}"), Err(NotSendable::Empty));
}

#[test]
fn own_words_are_written_and_seen_before_enter() {
    let labels = ["Small", "Large", "Type something.", "Chat about this"];
    let mut dialog = dialog(DialogKind::Question, &labels, true);
    let pick = Pick::Text(2, "a medium one".into());
    assert_eq!(written(&dialog, "a medium\none "), Ok(vec![pick.clone()]));
    let step = |dialog: &Dialog| {
        let step = step_towards(dialog, &pick).unwrap();
        (step.name, step.decides)
    };
    assert_eq!(step(&dialog), ("3".into(), false));
    dialog.selected = Some(2);
    assert_eq!(step(&dialog), ("paste".into(), false));
    dialog.options[2].label = "a medium one".into();
    assert_eq!(step(&dialog), ("Enter".into(), true));
    dialog.kind = DialogKind::Permission;
    assert_eq!(written(&dialog, "text"), Err(NoPick::NoFreeLine));
}

fn colours(selected: usize, own: &str, ticked: bool) -> Dialog {
    let mut question = dialog(
        DialogKind::Question,
        &["Red", "Blue", own, "Submit", "Chat about this"],
        true,
    );
    for choice in &mut question.options[..3] {
        choice.checked = Some(false);
    }
    question.options[2].checked = Some(ticked);
    question.options[3].number = None;
    question.options[4].number = Some(4);
    question.selected = Some(selected);
    question
}

#[test]
fn own_words_in_a_question_with_ticks_are_written_and_submitted() {
    let empty = colours(0, "Type something", false);
    let own = Pick::Text(2, "green, and gold".into());
    let expected = Ok(vec![own.clone(), Pick::Option(3)]);
    assert_eq!(written(&empty, "green, and gold"), expected);
    let key = |dialog: &Dialog| step_towards(dialog, &own).map(|step| (step.name, step.decides));
    let named = |name: &str| Some((name.to_owned(), false));
    assert_eq!(key(&empty), named("Down"), "its digit would tick it");
    assert_eq!(key(&colours(2, "Type something", false)), named(PASTE));
    assert_eq!(key(&colours(2, "green, and gold", false)), named("Enter"));
    assert!(!own.is_done(&colours(2, "green, and gold", false)));
    assert!(own.is_done(&colours(2, "green, and gold", true)));
    assert!(!own.is_done(&colours(2, "red, and gold", true)));
    let darker = Pick::Text(2, "Red, but darker".into());
    assert_eq!(
        written(&empty, "Red, but darker"),
        Ok(vec![darker, Pick::Option(3)])
    );
    assert_eq!(
        written(&colours(0, "mine", true), "green"),
        Err(NoPick::NoFreeLine),
        "somebody has written there"
    );
}

#[test]
fn no_digit_is_pressed_into_a_text_field() {
    let writing = |kind, selected| Dialog {
        digits: Digits::Write,
        selected: Some(selected),
        ..dialog(kind, &["Red", "Blue", "Type something."], true)
    };
    let question = writing(DialogKind::Question, 2);
    assert_eq!(pick(&question, "red"), Ok(Pick::Option(0)));
    let step = step_towards(&question, &Pick::Option(0)).expect("a step");
    assert_eq!((step.name.as_str(), step.decides), ("Up", false));
    assert_eq!(step_towards(&question, &Pick::Option(2)), None);
    assert_eq!(
        pick(&question, "type something."),
        Err(NoPick::Field("Type something.".into()))
    );
    let permission = writing(DialogKind::Permission, 0);
    assert_eq!(pick(&permission, "blue"), Err(NoPick::Field("Red".into())));
    assert_eq!(pick(&permission, "no"), Ok(Pick::Esc));
}

#[test]
fn where_a_digit_only_moves_the_row_is_walked_to_and_entered() {
    let previews = |selected| Dialog {
        digits: Digits::Move,
        selected: Some(selected),
        ..dialog(DialogKind::Question, &["A", "B", "C"], true)
    };
    let keys = |selected| step_towards(&previews(selected), &Pick::Option(1)).map(|step| step.name);
    assert_eq!(keys(0).as_deref(), Some("Down"));
    assert_eq!(keys(1).as_deref(), Some("Enter"));
    assert_eq!(keys(2).as_deref(), Some("Up"));
}
