use super::*;
use crate::reading::DialogKind;
use serde_json::json;

fn ask(id: &str, tool: &str, input: Value, mark: Option<&str>) -> OpenAsk {
    OpenAsk {
        id: Some(id.into()),
        tool: tool.into(),
        input,
        why: "because".into(),
        mark: mark.map(str::to_owned),
        by_agent: false,
    }
}

fn dialog(tool: &str, input: Value, text: &str) -> Dialog {
    Dialog {
        id: "d".into(),
        kind: DialogKind::Permission,
        tool: Some(tool.into()),
        input: input.as_object().cloned(),
        text: text.into(),
        options: Vec::new(),
        selected: None,
        complete: true,
        several_rows: false,
        request: None,
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
    calls.took_up();
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
