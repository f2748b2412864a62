//! The machine, driven by hand: inputs in, effects out, and a clock that only moves when it is told to.

mod answering;
mod by_rule;
mod doubt;
mod dying;
mod gate;
mod held;
mod interrupting;
mod keyboard;
mod limits;
mod modes;
mod sending;
mod several;
mod tasks;
mod withheld;

use super::*;
use crate::config::{Care, Gate, Restart};
use crate::control::protocol::Fault;
use crate::hook::HookWhat;
use crate::policy::RuleRef;
use crate::reading::{Choice, Digits};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Allows `ls`, denies `rm`, is silent on the rest.
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

impl Judge for Rules {
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

    fn only_reads_the_project(&self, ask: &Ask) -> bool {
        ask.tool == "Read"
    }

    fn deny_rules(&self) -> Vec<String> {
        vec!["Bash(rm *)".into()]
    }
}

pub(super) fn config() -> SlotConfig {
    SlotConfig::sample("a", "/w")
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
    pub(super) fn with(config: SlotConfig) -> Bench {
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
    pub(super) fn idle() -> Bench {
        Bench::idle_with(config())
    }

    pub(super) fn idle_with(config: SlotConfig) -> Bench {
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

    pub(super) fn put(&mut self, input: Input) {
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

    pub(super) fn see(&mut self, sight: Sight) {
        self.put(Input::Saw(sight));
    }

    /// The pasted text stands in the input box, and has done so for a moment.
    pub(super) fn arrives(&mut self, text: &str) {
        self.see(screen(State::Idle, text));
        self.pass(PASTE_SETTLES);
    }

    /// The answer of the turn is there.
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

pub(super) fn screen(state: State, draft: &str) -> Sight {
    let composer = Some(Composer {
        draft: draft.into(),
        menu: false,
    });
    Sight {
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
        id: id.into(),
        kind: DialogKind::Permission,
        tool: Some("Bash".into()),
        input: json!({"command": command}).as_object().cloned(),
        text: "Do you want to proceed?".into(),
        options: options.collect(),
        selected: Some(0),
        complete: true,
        several_rows: false,
        digits: Default::default(),
        request: None,
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

pub(super) fn at(dialog: Dialog) -> Sight {
    Sight {
        dialog: Some(dialog),
        composer: None,
        ..screen(State::Confirming, "")
    }
}

impl Bench {
    /// A dialog that has stood long enough to press keys on.
    pub(super) fn settled(&mut self, dialog: Dialog) {
        self.see(at(dialog));
        self.pass(SETTLED);
        self.keys.clear();
    }
}

pub(super) fn confirm(token: Token, answer: &str, dialog: Option<&str>) -> Input {
    let dialog = dialog.map(str::to_owned);
    Input::Confirm(Confirmation {
        token,
        answer: crate::keys::Answer::Choice(answer.into()),
        dialog,
        reason: None,
        uid: 1000,
        anyway: false,
    })
}
