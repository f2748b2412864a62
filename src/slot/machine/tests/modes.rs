//! A permission mode that nobody configured.

use super::*;

fn reports(bench: &Bench) -> Vec<String> {
    let text = |what: &What| match what {
        What::Trouble { cause, text } if cause == "mode" => Some(text.clone()),
        What::Mode { mode } => Some(format!("{mode} again")),
        _ => None,
    };
    bench.told.iter().filter_map(text).collect()
}

fn footer(bench: &mut Bench, mode: &str) {
    bench.see(Sight {
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
