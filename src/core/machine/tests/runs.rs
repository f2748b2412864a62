//! A program is judged by the settings of its start, not by the current ones of its slot.

use super::*;

fn elsewhere() -> SlotConfig {
    SlotConfig {
        cwd: "/elsewhere".into(),
        mode: "bypassPermissions".into(),
        gate: Gate::Screen,
        project_settings: true,
        ..config()
    }
}

/// The hook's answer to a command; `None` is silence.
fn answer(bench: &mut Bench, command: &str) -> Option<String> {
    let what = HookWhat::BeforeTool {
        tool: "Bash".into(),
        input: json!({ "command": command }),
        id: None,
    };
    bench.hear(9, what);
    let Some(Ok(Reply::Hook(output))) = bench.replies.remove(&9) else {
        panic!("no answer");
    };
    let decision = output?["hookSpecificOutput"]["permissionDecision"].take();
    Some(decision.as_str().expect("a word").to_owned())
}

fn judged_in(bench: &Bench) -> Vec<PathBuf> {
    let place = |effect: &Effect| match effect {
        Effect::Audit(_, ask, _) => Some(ask.cwd.clone()),
        _ => None,
    };
    bench.others.iter().filter_map(place).collect()
}

#[test]
fn a_call_is_judged_by_what_the_program_was_started_with() {
    let mut reloaded = Bench::idle();
    reloaded.put(Input::Settings(Arc::new(elsewhere())));
    let mut taken_up = Bench::idle_with(elsewhere());
    taken_up.put(Input::RunsWith(Runs::with(Arc::new(config()))));
    for mut bench in [reloaded, taken_up] {
        // It would be denied in bypassPermissions, and asked about with the project's settings.
        assert_eq!(answer(&mut bench, "make"), None);
        assert_eq!(judged_in(&bench), [PathBuf::from("/w")]);
        let circumstances = bench.machine.circumstances();
        assert_eq!(circumstances, Circumstances::configured("manual", false));
        assert_eq!(bench.machine.config().cwd, Path::new("/elsewhere"));
        // The next program has the new settings.
        bench.put(Input::Ended(ProgramEnd {
            report: ExitReport::UNKNOWN,
            said: None,
            limit_reset: None,
        }));
        bench.put(Input::Start(2));
        bench.put(Input::Started {
            pid: 43,
            continues: false,
        });
        assert_eq!(answer(&mut bench, "make"), Some("deny".into()));
        assert_eq!(judged_in(&bench)[1..], [PathBuf::from("/elsewhere")]);
    }
}

#[test]
fn of_a_program_that_nobody_knows_nothing_is_allowed_without_a_person() {
    let mut bench = Bench::idle();
    let settings = Arc::new(config());
    bench.put(Input::RunsWith(Runs::unknown(settings.clone())));
    for (command, expected) in [("ls", "ask"), ("make", "ask"), ("rm x", "deny")] {
        assert_eq!(answer(&mut bench, command).as_deref(), Some(expected));
    }
    bench.put(Input::RunsWith(Runs::with(settings)));
    assert_eq!(answer(&mut bench, "ls"), Some("allow".into()));
    assert_eq!(answer(&mut bench, "make"), None);
}

#[test]
fn a_call_of_a_program_that_does_not_run_is_not_allowed() {
    let mut bench = Bench::with(config());
    assert_eq!(answer(&mut bench, "ls"), Some("ask".into()));
}

#[test]
fn a_dialog_of_a_program_that_nobody_knows_is_left_to_a_person() {
    let mut plan = Dialog {
        kind: DialogKind::Plan,
        ..dialog("k1", "")
    };
    plan.options.drain(1..3);
    plan.options[1].number = Some(2);
    let screen_decides = SlotConfig {
        gate: Gate::Screen,
        ..config()
    };
    for asked in [plan, dialog("d1", "ls -la")] {
        for (runs, is_pressed) in [(Runs::unknown as fn(_) -> _, false), (Runs::with, true)] {
            let mut bench = Bench::idle();
            bench.put(Input::RunsWith(runs(Arc::new(screen_decides.clone()))));
            bench.see(at(asked.clone()));
            bench.pass(SETTLED);
            assert_eq!(!bench.keys.is_empty(), is_pressed);
        }
    }
}
