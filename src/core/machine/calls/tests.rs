use super::*;
use crate::core::claude::reading::DialogKind;
use serde_json::json;

fn ask(id: &str, tool: &str, input: Value, mark: Option<&str>) -> OpenAsk {
    OpenAsk {
        answered: false,
        now: None,
        id: Some(id.into()),
        tool: tool.into(),
        input,
        at: None,
        why: "because".into(),
        allowed: false,
        mark: mark.map(str::to_owned),
        by_agent: false,
    }
}

fn dialog(tool: &str, input: Value, text: &str) -> Dialog {
    Dialog {
        tool: Some(tool.into()),
        input: input.as_object().cloned(),
        text: text.into(),
        ..Dialog::new("d", DialogKind::Permission)
    }
}

fn tied(calls: &Calls, dialog: &Dialog) -> Option<String> {
    calls
        .asked_by(dialog, Path::new("/w"))
        .and_then(|open| open.id.clone())
}

#[test]
fn marks_differ_and_can_be_read() {
    let mut marks = Marks::new(7);
    let given: std::collections::HashSet<String> = (0..1000).map(|_| marks.next()).collect();
    assert_eq!(given.len(), 1000);
    assert!(given.iter().all(|mark| mark.len() == MARK_LENGTH));
    assert_ne!(Marks::new(7).next(), Marks::new(8).next());
}

#[test]
fn a_mark_ties_whatever_else_the_screen_says() {
    let mut calls = Calls::default();
    calls.open(ask("a", "Bash", json!({"command": "make"}), Some("mark4a")));
    calls.open(ask("b", "Bash", json!({"command": "make"}), Some("mark4b")));
    let shown = |text: &str| dialog("Bash", json!({"command": "make"}), text);
    assert_eq!(
        tied(&calls, &shown("missiond [mark4b]: why")).as_deref(),
        Some("b")
    );
    // A narrow screen wraps, and may draw a bar beside it.
    assert_eq!(
        tied(&calls, &shown("missiond [mar\n  │ k4a]: why")).as_deref(),
        Some("a")
    );
    // Two calls fit, and nothing tells which one is asked about.
    assert_eq!(tied(&calls, &shown("Do you want to proceed?")), None);
}

#[test]
fn without_a_mark_tool_and_target_must_agree() {
    let mut calls = Calls::default();
    calls.open(ask(
        "w",
        "Write",
        json!({"file_path": "/w/src/a.rs", "content": "x"}),
        None,
    ));
    calls.open(ask(
        "b",
        "Bash",
        json!({"command": "make all\n  -j2"}),
        None,
    ));
    for path in [
        "src/a.rs",
        "/w/src/a.rs",
        "./src/a.rs",
        "../w/src/a.rs",
        "…/src/a.rs",
    ] {
        let shown = dialog("Write", json!({ "file_path": path }), "");
        assert_eq!(tied(&calls, &shown).as_deref(), Some("w"), "{path}");
    }
    for path in ["a.rs", "src/b.rs", "/src/a.rs"] {
        let shown = dialog("Write", json!({ "file_path": path }), "");
        assert_eq!(tied(&calls, &shown), None, "{path}");
    }
    let command = |text: &str, complete: bool| Dialog {
        complete,
        ..dialog("Bash", json!({ "command": text }), "")
    };
    assert_eq!(
        tied(&calls, &command("make all -j2", true)).as_deref(),
        Some("b")
    );
    assert_eq!(tied(&calls, &command("make all", true)), None);
    assert_eq!(
        tied(&calls, &command("make all…", false)).as_deref(),
        Some("b")
    );
    assert_eq!(tied(&calls, &command("rm -rf x", false)), None);
}

#[test]
fn a_change_by_sed_is_shown_as_an_edit() {
    let mut calls = Calls::default();
    let command = |text: &str| json!({ "command": text });
    calls.open(ask("s", "Bash", command("sed -i 's/a/b/' docs/*.md"), None));
    calls.open(ask("n", "Bash", command("sed -n 1p docs/x.md"), None));
    let shown = |text: &str| dialog("Edit", Value::Null, text);
    let edit = shown(" Edit file\n docs/*.md\nDo you want to make this edit to *.md?");
    assert_eq!(tied(&calls, &edit).as_deref(), Some("s"));
    assert_eq!(tied(&calls, &shown(" Edit file\n docs/x.md")), None);
}

#[test]
fn what_ran_must_be_what_was_judged() {
    let mut calls = Calls::default();
    let input = json!({"command": "ls"});
    assert_eq!(calls.judged(Some("1"), "Bash", &input), Ok(()));
    assert_eq!(
        calls.judged(Some("1"), "Bash", &input),
        Ok(()),
        "asked again"
    );
    assert_eq!(calls.ran(Some("1"), "Bash", &input), Ok(()));
    calls.judged(Some("2"), "Bash", &input).unwrap();
    assert!(
        calls
            .judged(Some("2"), "Bash", &json!({"command": "id"}))
            .is_err()
    );
    assert!(
        calls
            .ran(Some("2"), "Bash", &json!({"command": "id"}))
            .is_err()
    );
    assert!(
        calls.ran(Some("3"), "Bash", &input).is_err(),
        "never judged"
    );
    calls.judged(Some("5"), "Bash", &input).unwrap();
    calls.denied(Some("5"));
    assert!(
        calls.ran(Some("5"), "Bash", &input).is_err(),
        "denied, but Claude Code has not heard it"
    );
    calls.take_up(None);
    assert_eq!(
        calls.ran(Some("4"), "Bash", &input),
        Ok(()),
        "judged before this daemon"
    );
}

#[test]
fn a_persons_answers_are_no_other_input() {
    let mut calls = Calls::default();
    let asked = json!({"questions": ["which?"]});
    calls.judged(Some("1"), "AskUserQuestion", &asked).unwrap();
    let answered = json!({"questions": ["which?"], "answers": {"which?": "this"}});
    assert_eq!(calls.ran(Some("1"), "AskUserQuestion", &answered), Ok(()));
}

#[test]
fn a_plan_that_was_taken_has_lost_its_plan_and_nothing_else_may() {
    let mut calls = Calls::default();
    let plan = json!({"plan": "# Do it", "planFilePath": "/h/plans/a.md"});
    calls.judged(Some("1"), "ExitPlanMode", &plan).unwrap();
    assert_eq!(calls.ran(Some("1"), "ExitPlanMode", &json!({})), Ok(()));
    calls.judged(Some("2"), "ExitPlanMode", &plan).unwrap();
    let other = json!({"plan": "# Do more", "planFilePath": "/h/plans/a.md"});
    assert!(calls.ran(Some("2"), "ExitPlanMode", &other).is_err());
    calls.judged(Some("3"), "ExitPlanMode", &plan).unwrap();
    assert_eq!(calls.ran(Some("3"), "ExitPlanMode", &plan), Ok(()));
    let command = json!({"command": "ls"});
    calls.judged(Some("4"), "Bash", &command).unwrap();
    assert!(calls.ran(Some("4"), "Bash", &json!({})).is_err());
}

#[test]
fn a_declined_call_of_an_agent_waits_no_longer() {
    let mut calls = Calls::default();
    for (id, command) in [("one", "ls"), ("two", "pwd")] {
        let of_agent = ask(id, "Bash", json!({ "command": command }), None);
        calls.open(OpenAsk {
            by_agent: true,
            ..of_agent
        });
    }
    let mut shown = dialog("Bash", json!({"command": "ls"}), "");
    calls.declined(&shown);
    assert_eq!(calls.waiting().len(), 2, "nobody knows which it was");
    shown.request = Some("one".to_owned());
    calls.declined(&shown);
    let left: Vec<_> = calls.waiting().iter().map(|open| open.id.clone()).collect();
    assert_eq!(left, [Some("two".to_owned())]);
}

#[test]
fn the_end_of_a_turn_closes_its_calls_and_not_those_of_agents() {
    let mut calls = Calls::default();
    calls.open(ask("own", "Bash", json!({"command": "make"}), None));
    let of_agent = ask("agent's", "Bash", json!({"command": "ls"}), None);
    calls.open(OpenAsk {
        by_agent: true,
        ..of_agent
    });
    calls.close_turn();
    let shown = |command: &str| dialog("Bash", json!({ "command": command }), "");
    assert_eq!(tied(&calls, &shown("make")), None);
    assert_eq!(tied(&calls, &shown("ls")).as_deref(), Some("agent's"));
    assert!(calls.agents_ask());
    let ran = calls.ran(Some("agent's"), "Bash", &json!({"command": "ls"}));
    assert!(ran.is_err(), "it was never judged here");
    assert!(!calls.agents_ask());
}

fn known(calls: &Calls, dialog: &Dialog) -> Option<Known> {
    calls.knows(dialog, Path::new("/w"))
}

#[test]
fn a_dialog_about_no_call_that_has_come_is_not_known() {
    let mut calls = Calls::default();
    let shown = |command: &str| dialog("Bash", json!({ "command": command }), "");
    assert_eq!(
        known(&calls, &shown("make")),
        Some(Known::Not),
        "nothing waits"
    );
    calls.open(ask("a", "Bash", json!({"command": "make\n  all"}), None));
    assert_eq!(known(&calls, &shown("make all")), Some(Known::Waits));
    assert_eq!(known(&calls, &shown("make clean")), Some(Known::Not));
    let write = dialog("Write", json!({"file_path": "a"}), "");
    assert_eq!(known(&calls, &write), Some(Known::Not));
    let unnamed = Dialog {
        tool: None,
        input: None,
        ..shown("")
    };
    assert_eq!(
        known(&calls, &unnamed),
        Some(Known::Waits),
        "nothing speaks against it"
    );
    let trust = Dialog {
        kind: DialogKind::Trust,
        ..shown("make clean")
    };
    assert_eq!(
        known(&calls, &trust),
        Some(Known::Not),
        "the session goes on"
    );
    let plan = Dialog {
        kind: DialogKind::Plan,
        ..shown("")
    };
    assert_eq!(known(&calls, &plan), Some(Known::Not), "no plan has come");
    calls.open(ask("p", "ExitPlanMode", json!({"plan": "x"}), None));
    assert_eq!(known(&calls, &plan), Some(Known::Waits));
}

#[test]
fn a_row_painted_over_a_marked_dialog_is_not_known() {
    let mut calls = Calls::default();
    calls.open(ask(
        "a",
        "Bash",
        json!({"command": "touch p"}),
        Some("mark4a"),
    ));
    calls.open(ask("b", "Bash", json!({"command": "rm p"}), Some("mark4b")));
    let shown = |command: &str| dialog("Bash", json!({ "command": command }), "[mark4a]");
    assert_eq!(known(&calls, &shown("touch p")), Some(Known::Waits));
    assert_eq!(
        known(&calls, &shown("rm p")),
        Some(Known::Not),
        "the other's command"
    );
    let cut = Dialog {
        complete: false,
        ..shown("tou… +7 lines")
    };
    assert_eq!(known(&calls, &cut), Some(Known::Waits));
}

#[test]
fn of_a_cut_command_every_part_must_be_in_it() {
    let mut calls = Calls::default();
    let command = "make one\nmake two\nmake three";
    calls.open(ask("a", "Bash", json!({ "command": command }), None));
    let cut = |text: &str| Dialog {
        complete: false,
        ..dialog("Bash", json!({ "command": text }), "")
    };
    for text in ["make one\n… +2 lines", "two\nmake three", "make on…"] {
        assert_eq!(known(&calls, &cut(text)), Some(Known::Waits), "{text}");
    }
    assert_eq!(known(&calls, &cut("make one\nrm x\n…")), Some(Known::Not));
}

#[test]
fn a_dialog_whose_head_is_off_the_screen_is_of_the_only_call_that_waits() {
    let mut calls = Calls::default();
    let path = json!({"file_path": "/w/sub/new.rs"});
    calls.open(ask("a", "Write", path, None));
    let cut = |tool: Option<&str>, input: Value| Dialog {
        complete: false,
        tool: tool.map(str::to_owned),
        ..dialog("", input, "")
    };
    let named = cut(Some("Write"), json!({"file_path": "new.rs"}));
    assert_eq!(tied(&calls, &named).as_deref(), Some("a"));
    assert_eq!(tied(&calls, &cut(None, Value::Null)).as_deref(), Some("a"));
    let other = cut(Some("Write"), json!({"file_path": "old.rs"}));
    assert_eq!(known(&calls, &other), Some(Known::Not));
    calls.open(ask("b", "Bash", json!({"command": "make"}), None));
    assert_eq!(tied(&calls, &cut(None, Value::Null)), None);
}

#[test]
fn what_the_gate_allowed_may_still_be_asked_about() {
    let mut calls = Calls::default();
    let allowed = ask("a", "Write", json!({"file_path": "/w/.git/x"}), None);
    calls.open(OpenAsk {
        allowed: true,
        at: Some("/w/sub".into()),
        ..allowed
    });
    for path in [".git/x", "../.git/x"] {
        let shown = dialog("Edit", json!({ "file_path": path }), "");
        assert_eq!(known(&calls, &shown), Some(Known::Allowed), "{path}");
    }
    assert_eq!(calls.count_open(), 0);
    calls.close_turn();
    let shown = dialog("Write", json!({"file_path": ".git/x"}), "");
    assert_eq!(known(&calls, &shown), Some(Known::Not));
}

#[test]
fn calls_that_came_before_this_daemon_may_wait_until_the_turn_ends() {
    let mut calls = Calls::default();
    calls.take_up(None);
    let shown = dialog("Bash", json!({"command": "make"}), "");
    assert_eq!(known(&calls, &shown), None);
    calls.close_turn();
    assert_eq!(known(&calls, &shown), Some(Known::Not));
}

#[test]
fn a_value_of_which_the_screen_shows_the_first_row_fits() {
    let mut calls = Calls::default();
    let input = json!({"what": "the sky\nand more", "n": 3, "list": ["a"]});
    calls.open(ask("a", "mcp__demo__lookUp", input, None));
    let shown = |input: Value| dialog("mcp__demo__look_up", input, "");
    let fits = shown(json!({"what": "the sky", "n": 3, "list": "[ \"a\" ]"}));
    assert_eq!(known(&calls, &fits), Some(Known::Waits));
    assert_eq!(known(&calls, &shown(json!({"n": 4}))), Some(Known::Not));
}

#[test]
fn the_next_daemon_knows_the_open_calls() {
    let mut calls = Calls::default();
    let input = json!({"command": "make all"});
    calls.judged(Some("a"), "Bash", &input).unwrap();
    calls.open(ask("a", "Bash", input.clone(), Some("mark4a")));
    let before = calls.changes();
    let mut next = Calls::default();
    next.take_up(Some(&calls.note(1000)));
    assert_eq!(next.open, calls.open);
    let shown = dialog("Bash", json!({"command": "make"}), "missiond [mark4a]");
    assert_eq!(tied(&next, &shown).as_deref(), Some("a"));
    let painted = dialog("Bash", json!({"command": "ls"}), "");
    assert_eq!(
        known(&next, &painted),
        Some(Known::Not),
        "nothing is missing"
    );
    // What runs in its place is still an alarm, and one that nobody here has judged is none.
    let other = json!({"command": "make clean"});
    assert!(next.ran(Some("a"), "Bash", &other).is_err());
    assert_eq!(next.ran(Some("b"), "Bash", &other), Ok(()));
    assert_eq!(next.open, []);
    // The note is told anew whenever it is another.
    assert_eq!(calls.changes(), before);
    calls.ran(Some("b"), "Bash", &input).unwrap_err();
    assert_eq!(calls.changes(), before, "no open call");
    let shown = dialog("Bash", input.clone(), "[mark4a]");
    calls.set_answered(&shown, Path::new("/w"), false, true);
    assert!(calls.changes() > before);
    let mut next = Calls::default();
    next.take_up(Some(&calls.note(1000)));
    assert!(next.unanswered().is_none(), "nor is it asked again");
    calls.ran(Some("a"), "Bash", &input).unwrap();
}

#[test]
fn a_call_waits_until_somebody_has_answered_it() {
    let input = json!({"command": "make"});
    let mut calls = Calls::default();
    for (id, mark) in [("a", "mark4a"), ("b", "mark4b")] {
        calls.judged(Some(id), "Bash", &input).unwrap();
        calls.open(ask(id, "Bash", input.clone(), Some(mark)));
    }
    let of_a = dialog("Bash", input.clone(), "[mark4a]");
    let mut answered = |is_no: bool, answered: bool| {
        calls.set_answered(&of_a, Path::new("/w"), is_no, answered);
        calls
            .unanswered()
            .map(|open| open.id.clone().unwrap_or_default())
    };
    assert_eq!(answered(false, true).as_deref(), Some("b"));
    assert_eq!(
        answered(false, false).as_deref(),
        Some("a"),
        "the key was withheld"
    );
    assert_eq!(answered(true, true), None, "a no ends the turn");
    assert_eq!(answered(true, false).as_deref(), Some("a"));
    assert!(
        calls.ran(Some("b"), "Bash", &input).is_err(),
        "nobody said yes"
    );
    calls.all_answered();
    assert_eq!(calls.ran(Some("a"), "Bash", &input), Ok(()));
}

#[test]
fn a_note_is_bounded_and_says_if_something_is_missing() {
    let mut calls = Calls::default();
    for n in 0..MAX_OPEN {
        let input = json!({"command": format!("echo {n} {}", "x".repeat(1000))});
        let allowed = n % 2 == 0;
        calls.open(OpenAsk {
            allowed,
            ..ask(&n.to_string(), "Bash", input, None)
        });
    }
    let recalled = |most: usize| {
        let note = calls.note(most);
        assert!(note.len() <= most + 100, "{} of {most}", note.len());
        let mut next = Calls::default();
        next.take_up(Some(&note));
        next
    };
    let waits = |calls: &Calls| calls.open.iter().filter(|open| !open.allowed).count();
    let all = recalled(1 << 20);
    assert_eq!((all.open.len(), waits(&all)), (64, 32));
    assert!(!all.missed_may_wait);
    let some = recalled(20_000);
    assert!(waits(&some) < 32 && some.missed_may_wait);
    assert_eq!(waits(&some), some.open.len(), "no other call before those");
    let newest = some.open.last().expect("a call");
    assert_eq!(newest.id.as_deref(), Some("63"));
    assert!(newest.input.is_object());
    assert!(some.open[0].input.is_null(), "kept without its input");
    let none = recalled(10);
    assert!(none.open.is_empty() && none.missed_may_wait);
    for broken in ["", "{", "[]", r#"{"calls":[{}],"whole":true}"#] {
        let mut next = Calls::default();
        next.take_up(Some(broken));
        assert!(next.open.is_empty() && next.missed_may_wait, "{broken}");
    }
}

/// What a person reads about a call that waits, by what the gate told Claude Code and what the rules say by now.
#[test]
fn a_person_reads_the_verdict_in_force_and_what_it_means_for_the_dialog() {
    use Decision::{Allow, Ask, Deny, Silent};
    let by_itself = "Claude Code asks by itself, though the rule says so";
    let plain = "the rule says so";
    let older = |answer: &str| {
        format!(
            "the rule says so since the rules have changed, but this dialog is older and waits for you: the rules would \
             say {answer}"
        )
    };
    let cases = [
        (true, None, by_itself.to_owned()),
        (true, Some(Allow), by_itself.to_owned()),
        (true, Some(Ask), plain.to_owned()),
        (true, Some(Silent), plain.to_owned()),
        (true, Some(Deny), older("no")),
        (false, None, plain.to_owned()),
        (false, Some(Ask), plain.to_owned()),
        (false, Some(Silent), plain.to_owned()),
        (false, Some(Allow), older("yes")),
        (false, Some(Deny), older("no")),
    ];
    for (allowed, now, expected) in cases {
        let mut calls = Calls::default();
        let before = match now {
            Some(_) => "another rule said so",
            None => plain,
        };
        calls.open(OpenAsk {
            allowed,
            why: before.to_owned(),
            ..ask("t1", "Bash", json!({"command": "make"}), None)
        });
        let call = crate::core::policy::Ask::bash("make", "/work");
        if let Some(decision) = now {
            calls.judged_again(&call, &Verdict::without_rule(decision, plain));
        }
        let shown = calls.waiting()[0].why_asked();
        assert_eq!(shown, expected, "{allowed} {now:?}");
    }
}
