//! Answers to dialogs by rules.

use super::*;

#[test]
fn a_rule_answers_a_settled_dialog_once_where_the_screen_may_decide() {
    let mut bench = Bench::idle_with(SlotConfig {
        gate: Gate::Screen,
        ..config()
    });
    bench.see(at(dialog("d1", "ls -la")));
    assert!(bench.keys.is_empty(), "not yet settled");
    bench.pass(SETTLED);
    assert_eq!(bench.keys, ["1"]);
    bench.pass(SETTLED);
    assert_eq!(bench.keys, ["1"]);
}

/// `ls # rm -rf x`, or a comment and a second line.
#[test]
fn the_screen_allows_no_command_of_several_rows() {
    let mut bench = Bench::idle_with(SlotConfig {
        gate: Gate::Screen,
        ..config()
    });
    bench.see(at(Dialog {
        several_rows: true,
        ..dialog("d1", "ls -la")
    }));
    bench.pass(SETTLED);
    assert!(bench.keys.is_empty());
    let why = bench.machine.why_a_person().unwrap();
    assert!(why.contains("several rows"), "{why}");
}

#[test]
fn a_screen_that_was_never_rehearsed_allows_nothing_but_denies() {
    let mut bench = Bench::idle_with(SlotConfig {
        gate: Gate::Screen,
        ..config()
    });
    bench.put(Input::Unrehearsed);
    bench.see(at(dialog("d1", "ls -la")));
    bench.pass(SETTLED);
    assert!(bench.keys.is_empty());
    assert!(bench.machine.why_a_person().unwrap().contains("rehearsed"));
    bench.see(screen(State::Idle, ""));
    bench.see(at(dialog("d2", "rm -rf x")));
    bench.pass(SETTLED);
    assert_eq!(bench.keys, ["Esc"]);
}

#[test]
fn the_screen_alone_allows_nothing_by_default_but_denies() {
    let mut bench = Bench::idle();
    bench.see(at(dialog("d1", "ls -la")));
    bench.pass(SETTLED);
    assert!(bench.keys.is_empty());
    assert!(bench.machine.why_a_person().unwrap().contains("ungated"));
    bench.see(screen(State::Idle, ""));
    bench.see(at(dialog("d2", "rm -rf x")));
    bench.pass(SETTLED);
    assert_eq!(bench.keys, ["Esc"]);
}

#[test]
fn questions_of_another_kind_follow_their_own_rules() {
    let mut bench = Bench::idle();
    bench.see(at(Dialog {
        kind: DialogKind::Question,
        ..dialog("q1", "ls")
    }));
    bench.pass(SETTLED);
    assert!(bench.keys.is_empty());
    bench.see(at(Dialog {
        kind: DialogKind::Other,
        ..dialog("o1", "rm")
    }));
    bench.pass(SETTLED);
    assert!(bench.keys.is_empty());
    bench.see(at(of_kind(DialogKind::Plan)));
    bench.pass(SETTLED);
    assert_eq!(bench.keys, ["1"]);
}

fn of_kind(kind: DialogKind) -> Dialog {
    Dialog {
        kind,
        ..dialog("k1", "")
    }
}

#[test]
fn the_first_dialogs_are_answered_by_rule_only_before_the_first_input_box() {
    for (mut bench, keys) in [(Bench::starting(), &["1"][..]), (Bench::idle(), &[])] {
        bench.see(at(of_kind(DialogKind::ApiKey)));
        bench.pass(SETTLED);
        assert_eq!(bench.keys, keys);
    }
}

/// A process that can write to the terminal paints a dialog that a rule allows over one that nobody has allowed.
#[test]
fn no_rule_answers_a_dialog_that_the_gate_does_not_know_or_that_may_hide_another() {
    let plan = || HookWhat::BeforeTool {
        tool: "ExitPlanMode".into(),
        input: json!({"plan": "1. Look"}),
        id: Some("toolu_1".into()),
    };
    let push = || HookWhat::BeforeTool {
        tool: "Bash".into(),
        input: json!({"command": "git push"}),
        id: Some("toolu_2".into()),
    };
    let shows = |plan: &str| Dialog {
        text: format!("Ready to code?\nHere is Claude's plan:\n{plan}\nWould you like to proceed?"),
        ..of_kind(DialogKind::Plan)
    };
    for (calls, shown, keys) in [
        (vec![plan()], "1. Look", &["1"][..]),
        (vec![plan()], "1. Look away", &[]),
        (vec![], "1. Look", &[]),
        (vec![push()], "1. Look", &[]),
        (vec![plan(), push()], "1. Look", &[]),
    ] {
        let mut bench = Bench::idle();
        bench.hear(8, HookWhat::SessionStart);
        for (token, call) in (10..).zip(calls) {
            bench.hear(token, call);
        }
        bench.see(at(shows(shown)));
        bench.pass(Duration::from_secs(5));
        assert_eq!(bench.keys, keys, "{shown}");
        let why = bench.machine.distrust().unwrap_or_default();
        assert!(
            shown != "1. Look away" || why.contains("another plan"),
            "{why}"
        );
    }
}

/// A rule that asks about the plan is told as the reason, and not that the dialog came at a wrong time.
#[test]
fn a_plan_that_a_rule_asks_about_is_left_to_a_person_with_that_reason() {
    let mut bench = Bench::idle();
    bench.hear(8, HookWhat::SessionStart);
    let plan = HookWhat::BeforeTool {
        tool: "ExitPlanMode".into(),
        input: json!({"plan": "2. Ask"}),
        id: Some("toolu_1".into()),
    };
    bench.hear(10, plan);
    let Some(Ok(Reply::Hook(Some(answer)))) = bench.replies.get(&10) else {
        panic!("{:?}", bench.replies);
    };
    let said = answer["hookSpecificOutput"]["permissionDecisionReason"].clone();
    let text = "Hook PreToolUse:ExitPlanMode requires confirmation for this tool:\n SAID\n\
        Ready to code?\nHere is Claude's plan:\n2. Ask\nWould you like to proceed?";
    let shown = Dialog {
        text: text.replace("SAID", said.as_str().expect("a reason")),
        ..of_kind(DialogKind::Plan)
    };
    bench.see(at(shown));
    bench.pass(Duration::from_secs(5));
    assert!(bench.keys.is_empty(), "{:?}", bench.keys);
    let why = bench.machine.why_a_person().unwrap_or_default();
    assert_eq!(why, "as the test says");
}

#[test]
fn an_incomplete_dialog_is_left_to_a_person() {
    let mut bench = Bench::idle();
    let cut = Dialog {
        complete: false,
        kind: DialogKind::Plan,
        ..dialog("k1", "")
    };
    bench.see(at(cut));
    bench.pass(SETTLED);
    assert!(bench.keys.is_empty());
}

#[test]
fn a_turn_that_needs_a_person_says_so_and_goes_on() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.arrives("hello");
    bench.see(screen(State::Thinking, ""));
    bench.see(at(dialog("d1", "make")));
    bench.pass(SETTLED);
    assert!(matches!(
        bench.replies.get(&2),
        Some(Ok(Reply::NeedsPerson(_)))
    ));
    bench.put(confirm(3, "yes", None));
    bench.see(screen(State::Idle, ""));
    bench.pass(IDLE_IS_OVER);
    bench.find("done");
    assert!(
        bench
            .told
            .iter()
            .any(|what| matches!(what, EventKind::Answer { text, .. } if text == "done"))
    );
}

#[test]
fn a_view_that_nobody_opened_is_drawn_again_before_a_person_is_called() {
    let view = |id: &str| Dialog {
        kind: DialogKind::Other,
        tool: None,
        ..dialog(id, "make")
    };
    let repaints = |bench: &Bench| {
        let all = bench.others.iter();
        all.filter(|effect| **effect == Effect::Repaint).count()
    };
    let mut bench = Bench::idle();
    bench.settled(view("v1"));
    assert_eq!((repaints(&bench), bench.machine.why_a_person()), (1, None));
    // It is one: it comes again, in another size.
    bench.settled(view("v2"));
    assert_eq!(repaints(&bench), 1);
    assert!(bench.machine.why_a_person().is_some());
    assert!(bench.keys.is_empty());

    let mut bench = Bench::idle();
    bench.settled(view("v1"));
    bench.pass(REDRAWN + SETTLED);
    assert_eq!(repaints(&bench), 1);
    assert!(
        bench.machine.why_a_person().is_some(),
        "nothing has changed"
    );
}
