//! A permission mode that is not configured.

use super::*;

fn reports(bench: &Bench) -> Vec<String> {
    let text = |what: &EventKind| match what {
        EventKind::Trouble { cause, text } if cause == "mode" => Some(text.clone()),
        EventKind::Mode { mode } => Some(format!("{mode} again")),
        _ => None,
    };
    bench.told.iter().filter_map(text).collect()
}

fn footer(bench: &mut Bench, mode: &str) {
    bench.see(Observation {
        mode: Some(mode.into()),
        ..screen(State::Idle, "")
    });
}

#[test]
fn another_mode_in_the_footer_is_reported_once_and_so_is_its_end() {
    let mut bench = Bench::idle();
    footer(&mut bench, "manual");
    footer(&mut bench, "acceptEdits");
    bench.see(screen(State::Thinking, ""));
    footer(&mut bench, "acceptEdits");
    assert_eq!(bench.machine.mode(), Some("acceptEdits"));
    footer(&mut bench, "manual");
    assert_eq!(bench.machine.mode(), Some("manual"));
    let expected = ["permission mode is acceptEdits, not manual", "manual again"];
    assert_eq!(reports(&bench), expected);
}

#[test]
fn another_mode_in_a_hook_is_reported_though_the_footer_says_nothing() {
    let mut bench = Bench::idle();
    footer(&mut bench, "manual");
    bench.hear_in(9, HookWhat::PromptTaken, Some("default"));
    assert_eq!(reports(&bench), Vec::<String>::new(), "its older name");
    bench.hear_in(10, HookWhat::PromptTaken, Some("bypassPermissions"));
    assert_eq!(bench.machine.mode(), Some("bypassPermissions"));
    assert_eq!(
        reports(&bench),
        ["permission mode is bypassPermissions, not manual"]
    );
    bench.hear_in(11, HookWhat::PromptTaken, Some("default"));
    assert_eq!(bench.machine.mode(), Some("manual"));
}

#[test]
fn in_another_mode_silence_means_ask() {
    let call = || HookWhat::BeforeTool {
        tool: "Bash".into(),
        input: json!({"command": "make"}),
        id: None,
    };
    for (mode, asks) in [("default", false), ("acceptEdits", true), ("auto", true)] {
        let mut bench = Bench::idle();
        bench.hear_in(9, call(), Some(mode));
        let answered = matches!(bench.replies.get(&9), Some(Ok(Reply::Hook(Some(_)))));
        assert_eq!(answered, asks, "{mode}");
    }
}

const BYPASS: &str = "bypassPermissions";

fn call(command: &str) -> HookWhat {
    HookWhat::BeforeTool {
        tool: "Bash".into(),
        input: json!({ "command": command }),
        id: None,
    }
}

/// The gate's answer to Claude Code, and the reason.
fn told(reply: &Result<Reply, RpcError>) -> (String, String) {
    let Ok(Reply::Hook(Some(output))) = reply else {
        panic!("{reply:?}");
    };
    let output = &output["hookSpecificOutput"];
    let text = |key: &str| output[key].as_str().unwrap_or_default().to_owned();
    (text("permissionDecision"), text("permissionDecisionReason"))
}

/// A slot in bypassPermissions, by each source that shows it.
fn bypassing() -> [(&'static str, Bench); 3] {
    let configured = Bench::idle_with(SlotConfig {
        mode: BYPASS.into(),
        ..config()
    });
    let mut on_screen = Bench::idle();
    footer(&mut on_screen, BYPASS);
    let mut by_hook = Bench::idle();
    by_hook.hear_in(7, HookWhat::PromptTaken, Some(BYPASS));
    [
        ("configured", configured),
        ("on the screen", on_screen),
        ("by a hook", by_hook),
    ]
}

#[test]
fn in_bypass_permissions_what_needs_a_person_is_denied() {
    let cases = [
        ("git push", "deny"),
        ("make", "deny"),
        ("rm x", "deny"),
        ("ls", "allow"),
    ];
    for (by, mut bench) in bypassing() {
        for (token, (command, expected)) in (10..).zip(cases) {
            bench.hear(token, call(command));
            let (decision, why) = told(&bench.replies[&token]);
            assert_eq!(decision, expected, "{command}, {by}");
            let needs_person = ["git push", "make"].contains(&command);
            assert_eq!(why.contains(BYPASS), needs_person, "{command}, {by}: {why}");
            let Some(EventKind::Verdict { answer, .. }) = bench.told.last() else {
                panic!("{:?}", bench.told);
            };
            assert_eq!(answer.as_deref(), Some(expected), "{command}, {by}");
        }
    }
}

/// Rules that hang, a full list of questions and an unwritable audit lead to *ask* by themselves.
#[test]
fn in_bypass_permissions_what_no_rule_answers_is_denied_too() {
    for (by, mut bench) in bypassing() {
        bench.rules_hang = true;
        for token in 100..170 {
            bench.hear(token, call("ls"));
        }
        let is_denied = |bench: &Bench, token| told(&bench.replies[&token]).0 == "deny";
        assert!(is_denied(&bench, 169), "too many at once, {by}");
        assert!(!bench.replies.contains_key(&100), "{by}");
        bench.pass(JUDGING_TAKES);
        assert!(is_denied(&bench, 100), "too late, {by}");
        let allowed = Reply::Hook(Some(json!({})));
        let (decision, _) = told(&Ok(bench.machine.unallowed(allowed)));
        assert_eq!(decision, "deny", "no audit, {by}");
    }
    let bench = Bench::idle();
    let allowed = Reply::Hook(Some(json!({})));
    assert_eq!(told(&Ok(bench.machine.unallowed(allowed))).0, "ask");
}

/// An agent of Claude Code may have its own mode, while the conversation calls tools.
#[test]
fn a_call_is_answered_in_the_mode_that_it_was_made_in() {
    let mut bench = Bench::idle();
    bench.rules_hang = true;
    bench.hear_in(9, call("git push"), Some(BYPASS));
    bench.hear_in(10, call("git push"), Some("acceptEdits"));
    bench.answer_questions();
    assert_eq!(told(&bench.replies[&9]).0, "deny");
    assert_eq!(told(&bench.replies[&10]).0, "ask");
}
