//! Questions to the rules that get their answer late, never, or after something else has changed.

use super::*;

fn hanging(config: SlotConfig) -> Bench {
    let mut bench = Bench::idle_with(config);
    bench.rules_hang = true;
    bench
}

fn call(command: &str, id: &str) -> HookWhat {
    HookWhat::BeforeTool {
        tool: "Bash".into(),
        input: json!({ "command": command }),
        id: Some(id.into()),
    }
}

/// The answer to the hook that waits under this token, if there is one.
fn told(bench: &mut Bench, token: Token) -> Option<(String, String)> {
    let Ok(Reply::Hook(output)) = bench.replies.remove(&token)? else {
        panic!("no answer to a hook");
    };
    let mut output = output?["hookSpecificOutput"].take();
    let mut text = |key: &str| output[key].take().as_str().unwrap_or_default().to_owned();
    Some((text("permissionDecision"), text("permissionDecisionReason")))
}

fn verdicts(bench: &Bench) -> Vec<Decision> {
    let audited = |effect: &Effect| match effect {
        Effect::Audit(verdict, ..) => Some(verdict.decision),
        _ => None,
    };
    bench.others.iter().filter_map(audited).collect()
}

#[test]
fn a_hook_whose_rules_hang_is_told_to_ask_and_a_late_answer_counts_no_more() {
    let mut bench = hanging(config());
    bench.hear(9, call("ls", "t1"));
    bench.pass(JUDGING_TAKES - Duration::from_millis(1));
    assert_eq!(told(&mut bench, 9), None);
    assert!(verdicts(&bench).is_empty());
    bench.pass(Duration::from_millis(1));
    let (decision, why) = told(&mut bench, 9).expect("it is late");
    assert_eq!(decision, "ask");
    assert!(why.contains("no verdict within 5 s"), "{why}");
    bench.answer_questions();
    assert_eq!(verdicts(&bench), [Decision::Ask]);
}

#[test]
fn an_interrupt_and_a_message_do_not_wait_for_rules_that_hang() {
    let mut bench = hanging(config());
    bench.see(screen(State::Thinking, ""));
    bench.hear(9, call("ls", "t1"));
    bench.put(interrupt(10));
    assert_eq!(bench.keys, ["Esc"]);
}

#[test]
fn each_of_several_calls_gets_its_own_answer_in_any_order() {
    let mut bench = hanging(config());
    bench.hear(9, call("ls", "t1"));
    bench.hear(10, call("rm x", "t2"));
    bench.unanswered.reverse();
    bench.answer_questions();
    assert_eq!(told(&mut bench, 9).unwrap().0, "allow");
    assert_eq!(told(&mut bench, 10).unwrap().0, "deny");
    assert_eq!(verdicts(&bench), [Decision::Deny, Decision::Allow]);
}

#[test]
fn new_rules_answer_what_the_old_ones_were_asked() {
    let mut bench = hanging(config());
    bench.hear(9, call("ls", "t1"));
    let old = std::mem::take(&mut bench.unanswered);
    bench.put(Input::Rules(Rules.known()));
    assert_eq!(bench.unanswered.len(), 1, "asked again");
    let opinion = opinion(&Rules, &old[0], &[]);
    let id = old[0].id;
    bench.put(Input::Judged { id, opinion });
    assert_eq!(told(&mut bench, 9), None, "the old rules count no more");
    bench.answer_questions();
    assert_eq!(told(&mut bench, 9).unwrap().0, "allow");
}

/// Silence in manual mode leaves a call to Claude Code, which asks; in another mode it might not ask.
#[test]
fn a_mode_that_changes_meanwhile_is_judged_anew() {
    let mut bench = hanging(config());
    bench.hear(9, call("make", "t1"));
    bench.see(Observation {
        mode: Some("acceptEdits".into()),
        ..screen(State::ToolRunning, "")
    });
    bench.answer_questions();
    let (decision, why) = told(&mut bench, 9).expect("not silence");
    assert_eq!(decision, "ask", "{why}");
}

#[test]
fn a_hook_of_a_program_that_has_ended_is_not_allowed_anything() {
    let mut bench = hanging(config());
    bench.hear(9, call("ls", "t1"));
    bench.put(tasks::dies());
    assert_eq!(told(&mut bench, 9).unwrap().0, "ask");
    bench.answer_questions();
    assert_eq!(verdicts(&bench), [Decision::Ask]);
}

#[test]
fn what_is_too_much_at_once_is_asked_about() {
    let mut bench = hanging(config());
    for n in 0..65 {
        bench.hear(100 + n, call("ls", &format!("t{n}")));
    }
    assert_eq!(bench.unanswered.len(), 64);
    let (decision, why) = told(&mut bench, 164).expect("at once");
    assert_eq!(decision, "ask");
    assert!(why.contains("64 calls wait"), "{why}");
}

fn by_screen() -> Bench {
    hanging(SlotConfig {
        gate: Gate::Screen,
        ..config()
    })
}

#[test]
fn a_verdict_counts_only_for_the_dialog_that_was_judged() {
    let mut bench = by_screen();
    bench.see(at(dialog("d1", "ls -la")));
    bench.pass(SETTLED);
    let asked = std::mem::take(&mut bench.unanswered);
    bench.see(at(dialog("d2", "ls /etc")));
    for question in asked {
        let opinion = opinion(&Rules, &question, &[]);
        let id = question.id;
        bench.put(Input::Judged { id, opinion });
    }
    assert!(bench.keys.is_empty());
    bench.pass(SETTLED);
    bench.answer_questions();
    assert_eq!(bench.keys, ["1"], "judged by itself");
}

#[test]
fn a_dialog_whose_rules_hang_waits_for_a_person() {
    let mut bench = by_screen();
    bench.see(at(dialog("d1", "ls -la")));
    bench.pass(SETTLED);
    bench.pass(JUDGING_TAKES);
    let why = bench.machine.why_a_person().expect("a person is asked");
    assert!(why.contains("no verdict within 5 s"), "{why}");
    bench.answer_questions();
    assert!(bench.keys.is_empty());
    let always = bench.machine.always().expect("known");
    assert_eq!(always.rule, None);
}

#[test]
fn no_rule_answers_while_a_person_types() {
    let mut bench = by_screen();
    bench.see(at(dialog("d1", "ls -la")));
    bench.pass(SETTLED);
    bench.put(Input::Typed {
        person: a_person(),
        strokes: strokes(b"\x1b[B"),
    });
    bench.keys.clear();
    bench.answer_questions();
    assert!(bench.keys.is_empty(), "{:?}", bench.keys);
}

/// A wake-up that is due again at once would keep a core busy for as long as the rules hang.
#[test]
fn while_the_rules_look_at_a_dialog_the_machine_is_not_woken_again_and_again() {
    let mut bench = hanging(config());
    bench.see(at(dialog("d1", "ls")));
    bench.pass(SETTLED);
    assert_eq!(
        bench.unanswered.len(),
        2,
        "the verdict, and what `always` would add"
    );
    let due = bench
        .machine
        .poll_timeout()
        .expect("the rules have a limit");
    assert!(due > bench.now, "{:?}", bench.now - due);
    // Another dialog is judged anyway, once it is stable.
    bench.see(at(dialog("d2", "rm x")));
    assert_eq!(bench.machine.poll_timeout(), Some(bench.now + SETTLED));
    bench.pass(SETTLED);
    assert_eq!(bench.unanswered.len(), 4);
}
