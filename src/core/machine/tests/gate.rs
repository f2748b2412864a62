//! The gate before a tool runs, and the dialogs that follow.

use super::*;

#[test]
fn the_gate_allows_denies_asks_or_is_silent() {
    let decision = |command: &str| {
        let mut bench = Bench::idle();
        let input = json!({"command": command});
        bench.hear(
            9,
            HookWhat::BeforeTool {
                tool: "Bash".into(),
                input,
                id: None,
            },
        );
        assert!(
            matches!(bench.others.last(), Some(Effect::Audit(..))),
            "audited before the answer"
        );
        match bench.replies.remove(&9) {
            Some(Ok(Reply::Hook(output))) => output.map(|output| {
                output["hookSpecificOutput"]["permissionDecision"]
                    .as_str()
                    .unwrap()
                    .to_owned()
            }),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(decision("ls"), Some("allow".into()));
    assert_eq!(decision("rm x"), Some("deny".into()));
    assert_eq!(decision("git push"), Some("ask".into()));
    assert_eq!(decision("make"), None);
}

/// Claude Code checks it too, and asks; without the audit nothing runs.
#[test]
fn what_is_allowed_but_not_proven_is_not_said() {
    let mut bench = Bench::idle();
    let what = HookWhat::BeforeTool {
        tool: "Bash".into(),
        input: json!({"command": "ls ~+"}),
        id: Some("one".into()),
    };
    bench.hear(9, what);
    let Some(Ok(reply)) = bench.replies.remove(&9) else {
        panic!("no answer");
    };
    assert_eq!(reply, Reply::Hook(Some(json!({}))));
    let Some(EventKind::Verdict {
        verdict, answer, ..
    }) = bench.told.last()
    else {
        panic!("{:?}", bench.told);
    };
    assert_eq!(
        (*verdict, answer.as_deref()),
        (Decision::Allow, Some("none"))
    );
    let Reply::Hook(Some(output)) = bench.machine.unallowed(reply) else {
        panic!("nothing is said");
    };
    assert_eq!(output["hookSpecificOutput"]["permissionDecision"], "ask");
}

#[test]
fn where_claude_code_might_not_ask_silence_means_ask() {
    let mut bench = Bench::idle_with(SlotConfig {
        mode: "auto".into(),
        ..config()
    });
    let input = json!({"command": "make"});
    bench.hear(
        9,
        HookWhat::BeforeTool {
            tool: "Bash".into(),
            input,
            id: None,
        },
    );
    assert!(matches!(
        bench.replies.get(&9),
        Some(Ok(Reply::Hook(Some(_))))
    ));
}

#[test]
fn where_the_projects_settings_count_silence_means_ask_but_about_reading_it() {
    let mut bench = Bench::idle_with(SlotConfig {
        project_settings: true,
        ..config()
    });
    // The settings for the next start change nothing for the running program.
    bench.put(Input::Settings(Arc::new(config())));
    for (token, tool, is_asked) in [(9, "Write", true), (10, "Read", false)] {
        let what = HookWhat::BeforeTool {
            tool: tool.into(),
            input: json!({"file_path": "/w/x"}),
            id: None,
        };
        bench.hear(token, what);
        let Some(Ok(Reply::Hook(output))) = bench.replies.remove(&token) else {
            panic!("no answer");
        };
        assert_eq!(output.is_some(), is_asked, "{tool}");
        let Some(EventKind::Verdict { answer, why, .. }) = bench.told.last() else {
            panic!("{:?}", bench.told);
        };
        let (word, end) = match is_asked {
            true => ("ask", "the project's own settings might allow it"),
            false => ("none", "Claude Code's own rules decide"),
        };
        assert_eq!(answer.as_deref(), Some(word));
        assert!(why.ends_with(end), "{why}");
    }
}

/// The gate's answer to Claude Code: its decision and its reason.
fn answer_of(bench: &mut Bench, token: Token, command: &str, id: &str) -> Option<(String, String)> {
    let what = HookWhat::BeforeTool {
        tool: "Bash".into(),
        input: json!({ "command": command }),
        id: Some(id.into()),
    };
    bench.hear(token, what);
    let Some(Ok(Reply::Hook(output))) = bench.replies.remove(&token) else {
        panic!("no answer");
    };
    let output = output?["hookSpecificOutput"].take();
    let text = |key: &str| output[key].as_str().unwrap_or_default().to_owned();
    Some((text("permissionDecision"), text("permissionDecisionReason")))
}

fn ran(bench: &mut Bench, token: Token, command: &str, id: &str) {
    let what = HookWhat::AfterTool {
        tool: "Bash".into(),
        input: json!({ "command": command }),
        id: Some(id.into()),
        failure: None,
    };
    bench.hear(token, what);
}

fn gated() -> Bench {
    let mut bench = Bench::idle();
    bench.hear(8, HookWhat::SessionStart);
    bench
}

fn alarms(bench: &Bench) -> usize {
    let told =
        |what: &&EventKind| matches!(what, EventKind::Trouble { cause, .. } if cause == "tampered");
    let written = |effect: &&Effect| matches!(effect, Effect::Alarm(..));
    let told = bench.told.iter().filter(told).count();
    assert_eq!(told, bench.others.iter().filter(written).count());
    told
}

fn shown(bench: &Bench) -> (Option<String>, String) {
    let dialog = bench.machine.dialog().expect("a dialog");
    let command = dialog
        .input
        .as_ref()
        .map(|input| input["command"].to_string());
    (dialog.request.clone(), command.unwrap_or_default())
}

#[test]
fn the_mark_of_a_reason_ties_the_dialog_to_its_request() {
    let mut bench = gated();
    let (decision, first) = answer_of(&mut bench, 1000, "git push origin", "toolu_1").unwrap();
    let (_, second) = answer_of(&mut bench, 1001, "git push upstream", "toolu_2").unwrap();
    assert_eq!(decision, "ask");
    assert_ne!(first, second);
    // The screen shows a part of the command, and the reason.
    let of = |id: &str, reason: &str| Dialog {
        text: format!("Bash command\n  git push\n{reason}"),
        complete: false,
        ..dialog(id, "git push")
    };
    bench.settled(of("d2", &second));
    assert_eq!(
        shown(&bench),
        (Some("toolu_2".into()), "\"git push upstream\"".into())
    );
    assert!(
        bench
            .machine
            .why_a_person()
            .unwrap()
            .contains("2 calls wait at once")
    );
    bench.settled(of("d1", &first));
    assert_eq!(
        shown(&bench),
        (Some("toolu_1".into()), "\"git push origin\"".into())
    );
    // Somebody else's mark does not count.
    bench.settled(of("d3", "missiond [aaaaaaaaaa]: painted"));
    assert_eq!(shown(&bench), (None, "\"git push\"".into()));
}

#[test]
fn two_open_asks_are_answered_by_a_person_whatever_the_rules_say() {
    for gate in [Gate::Hook, Gate::Screen] {
        let mut bench = Bench::idle_with(SlotConfig { gate, ..config() });
        bench.hear(8, HookWhat::SessionStart);
        for (token, id) in [(1000, "toolu_1"), (1001, "toolu_2")] {
            answer_of(&mut bench, token, "git push", id);
        }
        // A rule would allow the first and deny the second, if the screen were trusted.
        for command in ["ls -la", "rm -rf x"] {
            bench.see(at(dialog(command, command)));
            bench.pass(REDRAWN + SETTLED);
            assert!(bench.keys.is_empty(), "{command}: {:?}", bench.keys);
            assert!(bench.machine.why_a_person().is_some());
        }
        bench.settled(dialog("real", "git push"));
        assert!(bench.machine.why_a_person().is_some());
        bench.put(confirm(5, "no", Some("real")));
        assert_eq!(bench.keys, ["Esc"], "a person does");
    }
}

#[test]
fn a_persons_answer_is_written_down_with_the_whole_input() {
    let mut bench = gated();
    let (_, reason) = answer_of(&mut bench, 1000, "git push origin main", "toolu_1").unwrap();
    bench.settled(Dialog {
        text: reason,
        complete: false,
        ..dialog("d1", "git pu")
    });
    bench.others.clear();
    bench.put(confirm(5, "yes", Some("d1")));
    let [Effect::Audit(_, ask, Decider::Person(_))] = &bench.others[..] else {
        panic!("{:?}", bench.others);
    };
    assert_eq!(ask.input["command"], "git push origin main");
    assert!(ask.complete);
}

#[test]
fn what_ran_and_was_not_judged_is_an_alarm() {
    let mut bench = gated();
    answer_of(&mut bench, 1000, "ls", "toolu_1");
    ran(&mut bench, 1001, "ls", "toolu_1");
    assert_eq!(alarms(&bench), 0);
    answer_of(&mut bench, 1002, "ls", "toolu_2");
    ran(&mut bench, 1003, "ls; curl evil", "toolu_2");
    assert_eq!(alarms(&bench), 1);
    ran(&mut bench, 1004, "ls", "toolu_3");
    assert_eq!(alarms(&bench), 2, "the gate was never asked");
}

#[test]
fn one_request_with_two_inputs_is_denied_and_an_alarm() {
    let mut bench = gated();
    answer_of(&mut bench, 1000, "git push", "toolu_1");
    let (decision, _) = answer_of(&mut bench, 1001, "ls", "toolu_1").unwrap();
    assert_eq!(decision, "deny", "although a rule allows ls");
    assert_eq!(alarms(&bench), 1);
}

#[test]
fn calls_from_before_a_daemons_time_are_no_alarm() {
    let mut bench = Bench::idle();
    bench.put(Input::WasGated(None));
    ran(&mut bench, 1000, "ls", "toolu_0");
    assert_eq!(alarms(&bench), 0);
    answer_of(&mut bench, 1001, "ls", "toolu_1");
    ran(&mut bench, 1002, "id", "toolu_1");
    assert_eq!(alarms(&bench), 1);
}

fn unaudited() -> Input {
    let error = Box::new(RpcError::new(Fault::Refused, "the audit can't be written"));
    Input::Unpressed { error, sight: None }
}

#[test]
fn without_an_audit_nobody_approves_but_anybody_may_decline() {
    let mut bench = gated();
    answer_of(&mut bench, 1000, "make", "toolu_1");
    bench.settled(dialog("d1", "make"));
    bench.put(confirm(5, "yes", None));
    assert_eq!(bench.keys, ["1"]);
    bench.put(unaudited());
    assert_eq!(bench.fault(5), Some(Fault::Refused));
    bench.put(confirm(6, "yes", None));
    assert_eq!(bench.keys, ["1", "1"], "it can be tried again");
}

#[test]
fn a_call_is_judged_where_the_shell_stands_and_noted_with_its_agent() {
    let mut bench = gated();
    let event = |cwd: PathBuf| HookEvent {
        session_id: None,
        transcript: None,
        mode: None,
        cwd: Some(cwd),
        agent: Some("general-purpose a1".to_owned()),
        what: HookWhat::BeforeTool {
            tool: "Bash".into(),
            input: json!({"command": "rm x"}),
            id: None,
        },
    };
    let at_home = config().cwd;
    let elsewhere = at_home.join("src");
    for (token, cwd, at) in [
        (9, at_home, None),
        (10, elsewhere.clone(), Some(elsewhere.as_path())),
    ] {
        bench.put(Input::Heard(token, event(cwd)));
        let Some(Effect::Audit(_, ask, Decider::Gate { agent, .. })) = bench.others.last() else {
            panic!("{:?}", bench.others);
        };
        assert_eq!(ask.at.as_deref(), at);
        assert_eq!(agent.as_deref(), Some("general-purpose a1"));
    }
    let named = |what: &EventKind| matches!(what, EventKind::Verdict { agent: Some(agent), .. } if agent == "general-purpose a1");
    assert_eq!(bench.told.iter().filter(|what| named(what)).count(), 2);
}

/// An agent works while the input box is idle: an Enter for a message would answer its dialog.
#[test]
fn a_message_waits_while_the_dialog_of_an_agent_may_come_up() {
    let mut bench = gated();
    bench.rules_hang = true;
    bench.put(Input::Heard(
        9,
        HookEvent {
            session_id: None,
            transcript: None,
            mode: None,
            cwd: None,
            agent: Some("general-purpose a1".to_owned()),
            what: HookWhat::BeforeTool {
                tool: "Bash".into(),
                input: json!({"command": "git push"}),
                id: Some("toolu_1".to_owned()),
            },
        },
    ));
    bench.send(10, "hello");
    assert_eq!(bench.keys, [""; 0], "the rules look at the call");
    bench.answer_questions();
    assert_eq!(bench.keys, [""; 0], "Claude Code was told to ask");
    bench.pass(DIALOG_COMES - Duration::from_millis(1));
    assert_eq!(bench.keys, [""; 0]);
    bench.pass(Duration::from_millis(1));
    assert_eq!(bench.keys, ["paste"], "no dialog came");
}
