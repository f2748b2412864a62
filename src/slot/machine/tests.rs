//! The machine, driven by hand: inputs in, effects out, and a clock that only moves when it is told to.

use super::*;
use crate::config::{Care, Gate, Kind, Restart};
use crate::control::protocol::Fault;
use crate::hook::HookWhat;
use crate::policy::RuleRef;
use crate::reading::Choice;
use serde_json::json;
use std::collections::BTreeMap;

/// Allows `ls`, denies `rm`, is silent on the rest.
#[derive(Debug)]
pub(super) struct Rules;

impl Judge for Rules {
    fn decide(&self, ask: &Ask) -> Verdict {
        let command = ask.input["command"].as_str().unwrap_or_default();
        let rule = |text: &str| {
            Some(RuleRef {
                text: text.into(),
                file: "p.toml".into(),
                line: 1,
            })
        };
        let (decision, rule) = match command.split(' ').next() {
            Some("ls") => (Decision::Allow, rule("Bash(ls *)")),
            Some("rm") => (Decision::Deny, rule("Bash(rm *)")),
            Some("git") => (Decision::Ask, rule("Bash(git *)")),
            _ => (Decision::Ask, None),
        };
        Verdict {
            decision,
            rule,
            why: "as the test says".into(),
        }
    }

    fn dialog(&self, kind: DialogKind) -> Decision {
        if kind == DialogKind::ApiKey {
            Decision::Allow
        } else {
            Decision::Ask
        }
    }

    fn deny_reason(&self) -> Option<String> {
        Some("Ask a person.".into())
    }

    fn deny_rules(&self) -> Vec<String> {
        vec!["Bash(rm *)".into()]
    }
}

pub(super) fn config() -> SlotConfig {
    SlotConfig {
        name: "a".into(),
        role: "r".into(),
        kind: Kind::Claude,
        cwd: "/w".into(),
        command: vec!["claude".into()],
        args: Vec::new(),
        env: BTreeMap::new(),
        env_clear: false,
        env_pass: Vec::new(),
        cols: 120,
        rows: 40,
        mode: "manual".into(),
        gate: Gate::Hook,
        project_settings: false,
        autostart: true,
        restart: Restart::OnFailure,
        resume: true,
        prompt: None,
        session: None,
        care: Care::default(),
        worktree_of: None,
    }
}

struct Bench {
    machine: Machine,
    now: Instant,
    keys: Vec<String>,
    replies: BTreeMap<Token, Result<Reply, RpcError>>,
    told: Vec<What>,
    others: Vec<Effect>,
}

impl Bench {
    fn with(config: SlotConfig) -> Bench {
        let machine = Machine::new(Arc::new(config), Arc::new(Rules), 7);
        let (keys, replies, told) = (Vec::new(), BTreeMap::new(), Vec::new());
        Bench {
            machine,
            now: Instant::now(),
            keys,
            replies,
            told,
            others: Vec::new(),
        }
    }

    /// A slot that runs and is idle.
    fn idle() -> Bench {
        Bench::idle_with(config())
    }

    fn idle_with(config: SlotConfig) -> Bench {
        let mut bench = Bench::with(config);
        bench.put(Input::Start(1));
        bench.put(Input::Started {
            pid: 42,
            continues: false,
        });
        bench.see(screen(State::Idle, ""));
        bench.keys.clear();
        bench
    }

    fn put(&mut self, input: Input) {
        for effect in self.machine.handle(input, self.now) {
            match effect {
                Effect::Press { key, .. } => self.keys.push(key),
                Effect::Reply(token, reply) => {
                    let before = self.replies.insert(token, reply);
                    assert!(before.is_none(), "token {token} was answered twice");
                }
                Effect::Tell(what) => self.told.push(what),
                other => self.others.push(other),
            }
        }
    }

    fn see(&mut self, sight: Sight) {
        self.put(Input::Saw(sight));
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.put(Input::TimePassed);
    }

    fn send(&mut self, token: Token, text: &str) {
        let text = text.to_owned();
        self.put(Input::Send(Message {
            token: Some(token),
            text,
            slash: false,
            wait: true,
        }));
    }

    fn hear(&mut self, token: Token, what: HookWhat) {
        let event = HookEvent {
            session_id: None,
            transcript: None,
            mode: None,
            what,
        };
        self.put(Input::Heard(token, event));
    }

    fn fault(&self, token: Token) -> Option<Fault> {
        self.replies
            .get(&token)?
            .as_ref()
            .err()
            .map(|error| error.fault)
    }

    fn has(&self, effect: &Effect) -> bool {
        self.others.contains(effect)
    }
}

fn screen(state: State, draft: &str) -> Sight {
    let composer = Some(Composer {
        draft: draft.into(),
        menu: false,
    });
    Sight {
        state,
        certain: true,
        dialog: None,
        composer,
        mode: None,
        last_error: None,
        background: 0,
    }
}

pub(super) fn idle() -> Input {
    Input::Saw(screen(State::Idle, ""))
}

fn dialog(id: &str, command: &str) -> Dialog {
    let labels = [
        "Yes",
        "Yes, and don't ask again for that",
        "Yes, and switch to auto mode",
        "No",
    ];
    let options = labels.iter().enumerate().map(|(index, label)| Choice {
        label: (*label).into(),
        number: Some(index as u32 + 1),
        description: None,
        checked: None,
    });
    Dialog {
        id: id.into(),
        kind: DialogKind::Permission,
        tool: Some("Bash".into()),
        input: json!({"command": command}).as_object().cloned(),
        text: "Do you want to proceed?".into(),
        options: options.collect(),
        selected: Some(0),
        complete: true,
    }
}

fn trust(selected: usize) -> Dialog {
    let options = ["No, exit", "Yes, I trust this folder"]
        .iter()
        .map(|label| Choice {
            label: (*label).into(),
            number: None,
            description: None,
            checked: None,
        });
    Dialog {
        kind: DialogKind::Trust,
        tool: None,
        input: None,
        options: options.collect(),
        selected: Some(selected),
        ..dialog("t1", "")
    }
}

fn at(dialog: Dialog) -> Sight {
    Sight {
        dialog: Some(dialog),
        composer: None,
        ..screen(State::Confirming, "")
    }
}

impl Bench {
    /// A dialog that has stood long enough to press keys on.
    fn settled(&mut self, dialog: Dialog) {
        self.see(at(dialog));
        self.pass(SETTLED);
        self.keys.clear();
    }
}

fn confirm(token: Token, answer: &str, dialog: Option<&str>) -> Input {
    let dialog = dialog.map(str::to_owned);
    Input::Confirm(Confirmation {
        token,
        answer: answer.into(),
        dialog,
        reason: None,
        uid: 1000,
    })
}

#[test]
fn enter_follows_only_when_the_text_stands_in_the_input_box() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    assert_eq!(bench.keys, ["paste"]);
    bench.see(screen(State::Idle, "hel"));
    assert_eq!(bench.keys, ["paste"]);
    bench.see(screen(State::Idle, "hello"));
    assert_eq!(bench.keys, ["paste", "Enter"]);
    bench.see(screen(State::Thinking, ""));
    assert!(bench.told.contains(&What::Message {
        text: "hello".into()
    }));
    assert!(!bench.replies.contains_key(&2));
}

#[test]
fn enter_is_withheld_when_a_dialog_comes_in_between() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.see(at(dialog("d1", "make")));
    assert_eq!(bench.keys, ["paste"]);
    assert_eq!(bench.fault(2), Some(Fault::Refused));
}

#[test]
fn enter_is_withheld_when_the_text_never_shows() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.pass(PASTE_SHOWS);
    assert_eq!(bench.keys, ["paste"]);
    assert_eq!(bench.fault(2), Some(Fault::Failed));
}

#[test]
fn a_long_message_is_proven_by_its_placeholder_or_its_end() {
    let lines = vec!["line"; 50].join("\n");
    let long = "word ".repeat(300);
    for (text, shown) in [
        (&lines, "[Pasted text #1 +49 lines]"),
        (&long, "[Pasted text #3]"),
    ] {
        let mut bench = Bench::idle();
        bench.send(2, text);
        bench.see(screen(State::Idle, shown));
        assert_eq!(bench.keys, ["paste", "Enter"], "{shown}");
    }
    let mut bench = Bench::idle();
    bench.send(2, &lines);
    bench.see(screen(State::Idle, "[Pasted text #1 +7 lines]"));
    assert_eq!(bench.keys, ["paste"]);
}

#[test]
fn a_turn_ends_with_the_stop_hook_and_the_idle_screen() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.see(screen(State::Idle, "hello"));
    bench.see(screen(State::Thinking, ""));
    bench.hear(
        3,
        HookWhat::TurnOver {
            text: Some("from the hook".into()),
            failure: None,
        },
    );
    assert!(!bench.has(&Effect::FindAnswer));
    bench.see(screen(State::Idle, ""));
    assert!(bench.has(&Effect::FindAnswer));
    bench.put(Input::Found(Answer {
        text: Some("hi".into()),
        source: "transcript",
        failure: None,
    }));
    let wanted = Reply::Answered {
        text: Some("hi".into()),
        source: "transcript",
    };
    assert_eq!(bench.replies.get(&2), Some(&Ok(wanted)));
}

#[test]
fn without_a_stop_hook_a_turn_ends_after_a_while_of_idle() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.see(screen(State::Idle, "hello"));
    bench.see(screen(State::Idle, ""));
    assert!(!bench.has(&Effect::FindAnswer));
    assert_eq!(bench.machine.poll_timeout(), Some(bench.now + IDLE_IS_OVER));
    bench.pass(IDLE_IS_OVER);
    assert!(bench.has(&Effect::FindAnswer));
}

#[test]
fn messages_go_one_after_another_in_order() {
    let mut bench = Bench::idle();
    bench.send(2, "one");
    bench.send(3, "two");
    assert_eq!(bench.machine.queued(), 1);
    for (token, text) in [(2, "one"), (3, "two")] {
        bench.see(screen(State::Idle, text));
        bench.see(screen(State::Thinking, ""));
        bench.hear(
            token + 100,
            HookWhat::TurnOver {
                text: None,
                failure: None,
            },
        );
        bench.see(screen(State::Idle, ""));
        bench.put(Input::Found(Answer {
            text: Some(text.into()),
            source: "transcript",
            failure: None,
        }));
        assert!(matches!(
            bench.replies.get(&token),
            Some(Ok(Reply::Answered { .. }))
        ));
    }
    assert_eq!(bench.keys, ["paste", "Enter", "paste", "Enter"]);
}

#[test]
fn a_withdrawn_message_is_not_typed() {
    let mut bench = Bench::idle();
    bench.see(screen(State::Thinking, ""));
    bench.send(2, "late");
    bench.put(Input::Withdraw(2));
    bench.see(screen(State::Idle, ""));
    assert!(bench.keys.is_empty());
    assert!(
        bench.replies[&2]
            .as_ref()
            .unwrap_err()
            .message
            .contains("not sent")
    );
}

#[test]
fn a_turn_that_nobody_waits_for_goes_on() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.see(screen(State::Idle, "hello"));
    bench.see(screen(State::Thinking, ""));
    bench.put(Input::Withdraw(2));
    assert!(
        bench.replies[&2]
            .as_ref()
            .unwrap_err()
            .message
            .contains("goes on")
    );
    bench.see(screen(State::Idle, ""));
    bench.pass(IDLE_IS_OVER);
    bench.put(Input::Found(Answer {
        text: Some("hi".into()),
        source: "transcript",
        failure: None,
    }));
    assert!(
        bench
            .told
            .iter()
            .any(|what| matches!(what, What::Answer { .. }))
    );
}

#[test]
fn a_draft_that_is_not_ours_is_left_alone() {
    let mut bench = Bench::idle();
    bench.see(screen(State::Idle, "somebody types"));
    bench.send(2, "hello");
    assert!(bench.keys.is_empty());
    assert_eq!(bench.fault(2), Some(Fault::Refused));
}

#[test]
fn send_is_refused_at_a_dialog_and_when_the_slot_is_down() {
    let mut bench = Bench::idle();
    bench.see(at(dialog("d1", "make")));
    bench.send(2, "hello");
    assert_eq!(bench.fault(2), Some(Fault::Refused));
    let mut down = Bench::with(config());
    down.send(3, "hello");
    assert_eq!(down.fault(3), Some(Fault::Refused));
}

#[test]
fn confirm_presses_the_digit_of_the_label_and_waits_until_the_dialog_is_gone() {
    for (answer, key, label) in [("yes", "1", "Yes"), ("no", "4", "No")] {
        let mut bench = Bench::idle();
        bench.settled(dialog("d1", "make"));
        bench.put(confirm(2, answer, Some("d1")));
        assert_eq!(bench.keys, [key]);
        assert!(!bench.replies.contains_key(&2));
        bench.see(screen(State::ToolRunning, ""));
        let wanted = Reply::Confirmed {
            dialog: "d1".into(),
            chosen: label.into(),
        };
        assert_eq!(bench.replies.get(&2), Some(&Ok(wanted)));
    }
}

#[test]
fn confirm_is_refused_for_another_dialog_and_for_none() {
    let mut bench = Bench::idle();
    bench.put(confirm(2, "yes", None));
    bench.see(at(dialog("d2", "make")));
    bench.put(confirm(3, "yes", Some("d1")));
    assert_eq!(
        (bench.fault(2), bench.fault(3)),
        (Some(Fault::Refused), Some(Fault::Refused))
    );
    assert!(bench.keys.is_empty());
}

#[test]
fn no_second_key_is_pressed_on_a_dialog_that_stays() {
    let mut bench = Bench::idle();
    bench.settled(dialog("d1", "make"));
    bench.put(confirm(2, "yes", None));
    bench.see(at(dialog("d1", "make")));
    bench.pass(KEY_WORKS);
    assert_eq!(bench.keys, ["1"]);
    assert_eq!(bench.fault(2), Some(Fault::Failed));
    bench.pass(Duration::from_secs(60));
    assert_eq!(bench.keys, ["1"]);
}

#[test]
fn an_unnumbered_menu_is_walked_and_its_row_checked_before_enter() {
    let mut bench = Bench::idle();
    bench.settled(trust(0));
    bench.put(confirm(2, "yes", None));
    assert_eq!(bench.keys, ["Down"]);
    bench.see(at(trust(0)));
    assert_eq!(bench.keys, ["Down"], "the row has not moved yet");
    bench.see(at(trust(1)));
    assert_eq!(bench.keys, ["Down", "Enter"]);
}

#[test]
fn a_key_waits_until_the_dialog_has_stood_long_enough_to_take_it() {
    let mut bench = Bench::idle();
    bench.see(at(dialog("d1", "make")));
    bench.put(confirm(2, "yes", Some("d1")));
    assert!(bench.keys.is_empty());
    assert_eq!(bench.machine.poll_timeout(), Some(bench.now + SETTLED));
    bench.pass(SETTLED);
    assert_eq!(bench.keys, ["1"]);
}

#[test]
fn a_lost_arrow_is_pressed_again_and_enter_never_is() {
    let mut bench = Bench::idle();
    bench.settled(trust(0));
    bench.put(confirm(2, "yes", None));
    bench.pass(ARROW_IS_LOST);
    assert_eq!(bench.keys, ["Down", "Down"]);
    bench.see(at(trust(1)));
    bench.pass(ARROW_IS_LOST);
    bench.pass(KEY_WORKS);
    assert_eq!(bench.keys, ["Down", "Down", "Enter"]);
    assert_eq!(bench.fault(2), Some(Fault::Failed));
}

#[test]
fn a_dialog_that_changes_under_the_walk_gets_no_enter() {
    let mut bench = Bench::idle();
    bench.settled(trust(0));
    bench.put(confirm(2, "yes", None));
    bench.see(at(dialog("d9", "rm -rf /")));
    assert_eq!(bench.keys, ["Down"]);
    assert_eq!(bench.fault(2), Some(Fault::Refused));
}

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
    assert_eq!(bench.keys, ["4"]);
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
    assert_eq!(bench.keys, ["4"]);
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
    bench.see(at(Dialog {
        kind: DialogKind::ApiKey,
        ..dialog("k1", "")
    }));
    bench.pass(SETTLED);
    assert_eq!(bench.keys, ["1"]);
}

#[test]
fn an_incomplete_dialog_is_left_to_a_person() {
    let mut bench = Bench::idle();
    let cut = Dialog {
        complete: false,
        kind: DialogKind::ApiKey,
        ..dialog("k1", "")
    };
    bench.see(at(cut));
    bench.pass(SETTLED);
    assert!(bench.keys.is_empty());
}

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
fn a_turn_that_needs_a_person_says_so_and_goes_on() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.see(screen(State::Idle, "hello"));
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
    bench.put(Input::Found(Answer {
        text: Some("done".into()),
        source: "transcript",
        failure: None,
    }));
    assert!(
        bench
            .told
            .iter()
            .any(|what| matches!(what, What::Answer { text, .. } if text == "done"))
    );
}

#[test]
fn interrupt_presses_one_esc_when_busy_and_none_when_idle() {
    let mut bench = Bench::idle();
    bench.put(Input::Interrupt(2));
    assert!(bench.keys.is_empty());
    assert_eq!(
        bench.replies.get(&2),
        Some(&Ok(Reply::Interrupted("nothing")))
    );
    bench.see(screen(State::Thinking, ""));
    bench.put(Input::Interrupt(3));
    bench.put(Input::Interrupt(4));
    assert_eq!(bench.keys, ["Esc"]);
    bench.see(screen(State::Idle, ""));
    for token in [3, 4] {
        assert_eq!(
            bench.replies.get(&token),
            Some(&Ok(Reply::Interrupted("interrupted")))
        );
    }
}

#[test]
fn interrupt_declines_a_dialog_and_never_approves_it() {
    let mut bench = Bench::idle();
    bench.settled(dialog("d1", "make"));
    bench.put(Input::Interrupt(2));
    assert_eq!(bench.keys, ["4"]);
    assert_eq!(
        bench.replies.get(&2),
        Some(&Ok(Reply::Interrupted("declined")))
    );
}

#[test]
fn a_slot_that_dies_is_started_again_each_time() {
    let mut bench = Bench::idle();
    for restart in 1..=3 {
        let report = ExitReport {
            code: None,
            signal: Some(9),
        };
        bench.put(Input::Ended { report, said: None });
        assert_eq!(bench.machine.state(), State::Exited);
        let due = bench.machine.poll_timeout().unwrap();
        bench.others.clear();
        bench.pass(due - bench.now);
        assert!(bench.has(&Effect::Spawn));
        bench.put(Input::Started {
            pid: 42,
            continues: true,
        });
        assert_eq!(bench.machine.restarts(), restart);
    }
}

#[test]
fn a_clean_exit_is_final_unless_always_is_set() {
    let clean = || Input::Ended {
        report: ExitReport {
            code: Some(0),
            signal: None,
        },
        said: None,
    };
    let mut bench = Bench::idle();
    bench.put(clean());
    assert_eq!(
        (bench.machine.state(), bench.machine.poll_timeout()),
        (State::Exited, None)
    );
    let mut always = Bench::idle_with(SlotConfig {
        restart: Restart::Always,
        ..config()
    });
    always.put(clean());
    assert!(always.machine.poll_timeout().is_some());
}

#[test]
fn a_persons_stop_wins_over_a_restart_that_is_under_way() {
    let mut bench = Bench::idle();
    bench.put(Input::Ended {
        report: ExitReport {
            code: Some(1),
            signal: None,
        },
        said: None,
    });
    bench.put(Input::Stop(2));
    bench.others.clear();
    bench.pass(Duration::from_secs(3600));
    assert!(!bench.has(&Effect::Spawn));
    assert_eq!(bench.machine.state(), State::Exited);
}

#[test]
fn after_six_deaths_in_a_row_it_gives_up_and_says_why() {
    let mut bench = Bench::idle();
    for _ in 0..6 {
        bench.put(Input::Ended {
            report: ExitReport {
                code: Some(3),
                signal: None,
            },
            said: Some("no key".into()),
        });
        if let Some(due) = bench.machine.poll_timeout() {
            bench.pass(due - bench.now);
            bench.put(Input::Started {
                pid: 42,
                continues: true,
            });
        }
    }
    assert_eq!(bench.machine.state(), State::Error);
    assert!(
        bench
            .machine
            .last_error()
            .unwrap()
            .contains("exit 3: no key")
    );
    bench.put(Input::Start(7));
    assert!(bench.has(&Effect::Spawn));
}

#[test]
fn a_refused_folder_is_not_tried_again() {
    let mut bench = Bench::with(config());
    bench.put(Input::Start(1));
    bench.put(Input::Started {
        pid: 42,
        continues: false,
    });
    bench.settled(trust(0));
    bench.put(confirm(2, "no", None));
    assert_eq!(bench.keys, ["Enter"]);
    bench.see(Sight {
        composer: None,
        ..screen(State::Exited, "")
    });
    bench.put(Input::Ended {
        report: ExitReport {
            code: Some(1),
            signal: None,
        },
        said: None,
    });
    assert!(matches!(
        bench.replies.get(&2),
        Some(Ok(Reply::Confirmed { .. }))
    ));
    assert_eq!(bench.machine.state(), State::Error);
    assert_eq!(bench.machine.poll_timeout(), None);
}

#[test]
fn whoever_waits_is_told_when_the_program_dies() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.see(screen(State::Idle, "hello"));
    bench.see(screen(State::Thinking, ""));
    bench.send(3, "next");
    bench.put(Input::Ended {
        report: ExitReport {
            code: None,
            signal: Some(9),
        },
        said: None,
    });
    assert_eq!(bench.fault(2), Some(Fault::Failed));
    assert_eq!(bench.fault(3), Some(Fault::Failed), "nothing is replayed");
    bench.send(4, "after it");
    assert!(!bench.replies.contains_key(&4), "it waits for the restart");
    bench.put(Input::Stop(5));
    assert_eq!(bench.fault(4), Some(Fault::Failed));
}

#[test]
fn the_first_prompt_is_sent_once_in_a_new_conversation() {
    let with_prompt = || SlotConfig {
        prompt: Some("Read TODO.md.".into()),
        ..config()
    };
    let mut bench = Bench::with(with_prompt());
    bench.put(Input::Start(1));
    bench.put(Input::Started {
        pid: 42,
        continues: false,
    });
    bench.see(screen(State::Idle, ""));
    assert_eq!(bench.keys, ["paste"]);
    let mut resumed = Bench::with(with_prompt());
    resumed.put(Input::Start(1));
    resumed.put(Input::Started {
        pid: 42,
        continues: true,
    });
    resumed.see(screen(State::Idle, ""));
    assert!(resumed.keys.is_empty());
}

#[test]
fn on_a_screen_that_nobody_knows_no_key_is_pressed() {
    let mut bench = Bench::idle();
    let unknown = Sight {
        certain: false,
        ..at(Dialog {
            kind: DialogKind::Other,
            ..dialog("o1", "")
        })
    };
    bench.see(unknown);
    bench.put(confirm(2, "yes", None));
    bench.put(Input::Interrupt(3));
    bench.pass(Duration::from_secs(60));
    assert!(bench.keys.is_empty());
    assert_eq!(
        (bench.fault(2), bench.fault(3)),
        (Some(Fault::Refused), Some(Fault::Refused))
    );
}

#[test]
fn a_withheld_enter_is_pressed_again_when_the_text_still_stands() {
    let mut bench = Bench::idle();
    bench.send(5, "hello");
    bench.see(screen(State::Idle, "hello"));
    assert_eq!(bench.keys, ["paste", "Enter"]);
    bench.put(Input::Withheld(screen(State::Idle, "hello")));
    assert_eq!(bench.keys, ["paste", "Enter", "Enter"]);

    bench.put(Input::Withheld(at(dialog("d", "make"))));
    assert_eq!(bench.keys.len(), 3);
    assert_eq!(bench.fault(5), Some(Fault::Refused));
}

#[test]
fn a_withheld_paste_waits_for_the_input_box() {
    let mut bench = Bench::idle();
    bench.send(5, "hello");
    bench.put(Input::Withheld(at(dialog("d", "make"))));
    assert_eq!(bench.keys, ["paste"]);
    bench.see(screen(State::Idle, ""));
    assert_eq!(bench.keys, ["paste", "paste"]);
}

#[test]
fn a_dialog_that_changed_before_the_key_gets_none() {
    let mut bench = Bench::idle();
    bench.see(at(dialog("d", "make")));
    bench.pass(SETTLED);
    bench.put(confirm(5, "yes", Some("d")));
    assert_eq!(bench.keys, ["1"]);
    bench.put(Input::Withheld(at(dialog("e", "make install"))));
    assert_eq!(bench.keys, ["1"], "no second key");
    assert_eq!(bench.fault(5), Some(Fault::Refused));

    // Another look at the same dialog, such as a row that was marked meanwhile, is no reason to give up.
    bench.pass(SETTLED);
    bench.put(confirm(6, "yes", Some("e")));
    bench.put(Input::Withheld(at(dialog("e", "make install"))));
    assert_eq!(bench.keys, ["1", "1", "1"]);
}

#[test]
fn a_withheld_esc_is_decided_on_anew() {
    let mut bench = Bench::idle();
    bench.see(screen(State::Thinking, ""));
    bench.put(Input::Interrupt(5));
    bench.put(Input::Withheld(screen(State::Thinking, "a draft")));
    assert_eq!(bench.keys, ["Esc", "Esc"]);
    bench.put(Input::Withheld(screen(State::Idle, "")));
    assert_eq!(bench.keys, ["Esc", "Esc"]);
    assert_eq!(bench.replies[&5], Ok(Reply::Interrupted("nothing")));
}

fn disputed(bench: &mut Bench) {
    let why = "the record says otherwise".to_owned();
    bench.put(Input::Witnessed(Some(why)));
}

#[test]
fn a_dialog_that_is_disputed_is_not_answered_by_rule() {
    let mut bench = Bench::idle();
    bench.see(at(dialog("d1", "rm x")));
    disputed(&mut bench);
    bench.pass(SETTLED);
    assert!(bench.keys.is_empty());
    assert_eq!(
        bench.machine.doubt(),
        None,
        "it may be a moment's difference"
    );
    bench.pass(Duration::from_secs(3));
    assert!(bench.keys.is_empty());
    let why = "the record says otherwise".to_owned();
    assert!(bench.told.contains(&What::Doubtful { why: why.clone() }));
    assert_eq!(bench.machine.doubt(), Some(why.as_str()));
    let reason = bench.machine.why_a_person();
    assert_eq!(reason, Some(format!("doubtful: {why}")));
    assert_eq!(
        bench.machine.poll_timeout(),
        None,
        "nothing is due any more"
    );

    bench.put(Input::Witnessed(None));
    assert!(bench.told.contains(&What::DoubtGone));
    assert_eq!(bench.machine.doubt(), None);
    bench.pass(SETTLED);
    assert!(bench.keys.is_empty(), "the person was told of this one");
}

#[test]
fn a_difference_that_passes_only_delays_the_answer() {
    let mut bench = Bench::idle();
    bench.see(at(dialog("d1", "rm x")));
    disputed(&mut bench);
    bench.pass(SETTLED);
    bench.put(Input::Witnessed(None));
    assert_eq!(bench.keys, ["4"]);
    let doubtful = |what: &What| matches!(what, What::Doubtful { .. } | What::DoubtGone);
    assert!(!bench.told.iter().any(doubtful));
}

fn question(id: &str, labels: &[&str], ticks: &[bool]) -> Dialog {
    let mut number = 0;
    let option = |(index, label): (usize, &&str)| {
        let numbered = *label != "Submit";
        number += u32::from(numbered);
        Choice {
            label: (*label).into(),
            number: numbered.then_some(number),
            description: None,
            checked: ticks.get(index).copied(),
        }
    };
    Dialog {
        kind: DialogKind::Question,
        tool: Some("AskUserQuestion".into()),
        input: None,
        options: labels.iter().enumerate().map(option).collect(),
        ..dialog(id, "")
    }
}

#[test]
fn several_answers_are_ticked_one_by_one_and_submitted() {
    let labels = ["Cheese", "Ham", "Type something", "Submit"];
    let asked = |ticks: [bool; 3], selected: usize| {
        let selected = Some(selected);
        at(Dialog {
            selected,
            ..question("q1", &labels, &ticks)
        })
    };
    let mut bench = Bench::idle();
    bench.see(asked([false; 3], 0));
    bench.pass(SETTLED);
    bench.put(confirm(2, "Cheese, Ham", Some("q1")));
    assert_eq!(bench.keys, ["1"]);
    bench.see(asked([true, false, false], 0));
    assert_eq!(bench.keys, ["1", "2"]);
    for selected in 0..4 {
        bench.see(asked([true, true, false], selected));
    }
    assert_eq!(bench.keys, ["1", "2", "Down", "Down", "Down", "Enter"]);
    bench.see(at(question("q2", &["Submit answers", "Cancel"], &[])));
    assert!(!bench.replies.contains_key(&2));
    assert_eq!(bench.keys.len(), 6, "keys that come too early are lost");
    bench.pass(SETTLED);
    assert_eq!(bench.keys.last().map(String::as_str), Some("1"));
    bench.see(screen(State::Thinking, ""));
    let Some(Ok(Reply::Confirmed { chosen, .. })) = bench.replies.get(&2) else {
        panic!("{:?}", bench.replies);
    };
    assert_eq!(chosen, "Cheese, Ham");
}

#[test]
fn one_tick_leaves_the_question_up() {
    let mut bench = Bench::idle();
    let asked = |tick| {
        at(question(
            "q1",
            &["Cheese", "Type something", "Submit"],
            &[tick, false],
        ))
    };
    bench.see(asked(false));
    bench.pass(SETTLED);
    bench.put(confirm(2, "Cheese", None));
    assert_eq!(bench.keys, ["1"]);
    assert!(!bench.replies.contains_key(&2));
    bench.see(asked(true));
    assert!(matches!(
        bench.replies.get(&2),
        Some(Ok(Reply::Confirmed { .. }))
    ));
    assert_eq!(bench.keys, ["1"]);
}

#[test]
fn a_text_is_written_once_and_entered_when_it_is_seen() {
    let mut bench = Bench::idle();
    let asked = |written: &str, selected: usize| {
        let selected = Some(selected);
        at(Dialog {
            selected,
            ..question("q1", &["Small", written], &[])
        })
    };
    bench.see(asked("Type something.", 0));
    bench.pass(SETTLED);
    bench.put(confirm(2, "a medium one", None));
    bench.see(asked("Type something.", 1));
    assert_eq!(bench.keys, ["2", "paste"]);
    bench.see(asked("a med", 1));
    assert_eq!(bench.keys, ["2", "paste"], "half of it is there");
    bench.see(asked("a medium one", 1));
    assert_eq!(bench.keys, ["2", "paste", "Enter"]);
    bench.see(screen(State::Thinking, ""));
    assert!(matches!(
        bench.replies.get(&2),
        Some(Ok(Reply::Confirmed { .. }))
    ));
}
