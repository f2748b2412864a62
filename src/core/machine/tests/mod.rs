//! The machine, driven by hand: inputs in, effects out, and a manual clock.

mod answering;
mod by_rule;
mod doubt;
mod drawings;
mod dying;
mod gate;
mod held;
mod identity;
mod interrupting;
mod judging;
mod keyboard;
mod limits;
mod modes;
mod runs;
mod sending;
mod several;
mod tasks;
mod withheld;

use super::*;
use crate::core::claude::HookWhat;
use crate::core::claude::reading::{Choice, Digits};
use crate::core::model::{ExitReport, Fault};
use crate::core::policy::{PermissionPolicy, Policy, RuleRef};
use crate::core::settings::{Gate, Restart, Supervision};
use crate::slot::{SlotRules, opinion};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Allows `ls`, denies `rm`, asks about `git` and a certain plan, is silent on the rest.
#[derive(Debug)]
pub(super) struct Rules;

impl PermissionPolicy for Rules {
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
            _ if ask.input["plan"] == "2. Ask" => (Decision::Ask, rule("ExitPlanMode")),
            Some("ls") => (Decision::Allow, rule("Bash(ls *)")),
            Some("rm") => (Decision::Deny, rule("Bash(rm *)")),
            Some("git") => (Decision::Ask, rule("Bash(git *)")),
            _ => (Decision::Silent, None),
        };
        Verdict {
            decision,
            rule,
            why: "as the test says".into(),
        }
    }
}

impl SlotRules for Rules {
    fn known(&self) -> KnownRules {
        let file =
            "deny_reason = \"Ask a person.\"\n[dialogs]\napi_key = \"allow\"\nplan = \"allow\"\n";
        let policy = Policy::parse(file, Path::new("p.toml"), Path::new("/w")).unwrap();
        KnownRules {
            dialogs: policy.dialogs,
            deny_reason: policy.deny_reason,
        }
    }

    fn only_reads_the_project(&self, ask: &Ask) -> bool {
        ask.tool == "Read"
    }

    fn is_said(&self, ask: &Ask, _: &[String]) -> bool {
        ask.input["command"] != "ls ~+"
    }
}

pub(super) fn config() -> SlotConfig {
    SlotConfig::usual("a", "/w")
}

struct Bench {
    machine: Machine,
    now: Instant,
    keys: Vec<String>,
    replies: BTreeMap<Token, Result<Reply, RpcError>>,
    told: Vec<EventKind>,
    others: Vec<Effect>,
    /// Questions to the rules get no answer, and are kept.
    rules_hang: bool,
    unanswered: Vec<RulesQuestion>,
}

impl Bench {
    pub(super) fn with(config: SlotConfig) -> Bench {
        let machine = Machine::new(Arc::new(config), Rules.known(), 7);
        let (keys, replies, told) = (Vec::new(), BTreeMap::new(), Vec::new());
        Bench {
            machine,
            now: Instant::now(),
            keys,
            replies,
            told,
            others: Vec::new(),
            rules_hang: false,
            unanswered: Vec::new(),
        }
    }

    /// A slot that runs and is idle.
    pub(super) fn idle() -> Bench {
        Bench::idle_with(config())
    }

    /// A slot whose program has just been started.
    pub(super) fn starting() -> Bench {
        Bench::starting_with(config())
    }

    fn starting_with(config: SlotConfig) -> Bench {
        let mut bench = Bench::with(config);
        bench.put(Input::Start(1));
        bench.put(Input::Started {
            pid: 42,
            continues: false,
        });
        bench
    }

    pub(super) fn idle_with(config: SlotConfig) -> Bench {
        let mut bench = Bench::starting_with(config);
        bench.see(screen(State::Idle, ""));
        bench.keys.clear();
        bench
    }

    /// Gives an input to the machine, and then the answers to its questions.
    pub(super) fn put(&mut self, input: Input) {
        self.put_alone(input);
        if !self.rules_hang {
            self.answer_questions();
        }
    }

    fn answer_questions(&mut self) {
        while !self.unanswered.is_empty() {
            let question = self.unanswered.remove(0);
            let opinion = opinion(&Rules, &question, &[]);
            let id = question.id;
            self.put_alone(Input::Judged { id, opinion });
        }
    }

    fn put_alone(&mut self, input: Input) {
        for effect in self.machine.handle(input, self.now) {
            match effect {
                Effect::Press { key, .. } => self.keys.push(key),
                Effect::Reply(token, reply) => {
                    let before = self.replies.insert(token, reply);
                    assert!(before.is_none(), "token {token} was answered twice");
                }
                Effect::Tell(what) => self.told.push(what),
                Effect::Judge(question) => self.unanswered.push(*question),
                other => self.others.push(other),
            }
        }
    }

    pub(super) fn see(&mut self, sight: Observation) {
        self.put(Input::Saw(sight));
    }

    /// The pasted text is in the input box, and has been for a moment.
    pub(super) fn arrives(&mut self, text: &str) {
        self.see(screen(State::Idle, text));
        self.pass(PASTE_SETTLES);
    }

    /// The answer of the turn is known.
    pub(super) fn find(&mut self, text: &str) {
        self.put(Input::Found(Answer {
            text: Some(text.into()),
            source: "transcript",
            failure: None,
        }));
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.put(Input::TimePassed);
    }

    pub(super) fn send(&mut self, token: Token, text: &str) {
        let text = text.to_owned();
        self.put(Input::Send(Message {
            token: Some(token),
            text,
            slash: false,
            wait: true,
            task: None,
            id: None,
            person: None,
        }));
    }

    pub(super) fn hear(&mut self, token: Token, what: HookWhat) {
        self.hear_in(token, what, None);
    }

    pub(super) fn hear_in(&mut self, token: Token, what: HookWhat, mode: Option<&str>) {
        let event = HookEvent {
            session_id: None,
            transcript: None,
            mode: mode.map(str::to_owned),
            cwd: None,
            agent: None,
            what,
        };
        self.put(Input::Heard(token, event));
    }

    /// Why it was refused.
    #[track_caller]
    pub(super) fn words(&self, token: Token) -> String {
        let reply = &self.replies[&token];
        reply.as_ref().expect_err("a refusal").message.clone()
    }

    pub(super) fn fault(&self, token: Token) -> Option<Fault> {
        self.replies
            .get(&token)?
            .as_ref()
            .err()
            .map(|error| error.fault)
    }

    pub(super) fn has(&self, effect: &Effect) -> bool {
        self.others.contains(effect)
    }
}

pub(super) fn screen(state: State, draft: &str) -> Observation {
    let composer = Some(Composer {
        draft: draft.into(),
        menu: false,
    });
    Observation {
        state,
        certain: true,
        redrawing: false,
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

pub(super) fn dialog(id: &str, command: &str) -> Dialog {
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
        tool: Some("Bash".into()),
        input: json!({"command": command}).as_object().cloned(),
        text: "Do you want to proceed?".into(),
        options: options.collect(),
        selected: Some(0),
        ..Dialog::new(id, DialogKind::Permission)
    }
}

/// The same dialog with a text in the field of its yes, which has the cursor.
pub(super) fn written(id: &str, command: &str, text: &str) -> Dialog {
    let mut dialog = dialog(id, command);
    dialog.options[0].label = format!("Yes, {text}");
    dialog.digits = Digits::Write;
    dialog
}

pub(super) fn trust(selected: usize) -> Dialog {
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

pub(super) fn at(dialog: Dialog) -> Observation {
    Observation {
        dialog: Some(dialog),
        composer: None,
        ..screen(State::Confirming, "")
    }
}

impl Bench {
    /// A dialog that is stable long enough to press keys on.
    pub(super) fn settled(&mut self, dialog: Dialog) {
        self.see(at(dialog));
        self.pass(SETTLED);
        self.keys.clear();
    }
}

/// A person interrupts.
pub(super) fn interrupt(token: Token) -> Input {
    let by = Interrupter::Person(a_person());
    Input::Interrupt(Interruption { token, by })
}

pub(super) fn a_person() -> Person {
    Person {
        uid: 1000,
        pid: Some(7),
        via: "cli confirm".to_owned(),
    }
}

pub(super) fn confirm(token: Token, answer: &str, dialog: Option<&str>) -> Input {
    let dialog = dialog.map(str::to_owned);
    Input::Confirm(Confirmation {
        id: None,
        token,
        answer: crate::core::claude::keys::Answer::Choice(answer.into()),
        dialog,
        reason: None,
        person: a_person(),
        anyway: false,
        against_rule: false,
    })
}
