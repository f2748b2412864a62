//! The lines that go in.

use super::bench::duration;
use missiond::core::claude::keys;
use missiond::core::claude::reading::{Choice, Composer, Dialog, DialogKind, State};
use missiond::core::claude::{HookEvent, HookWhat};
use missiond::core::machine::{
    Answer, Cause, Confirmation, Input, Interrupter, Interruption, Measure, Message, Observation,
    ProgramEnd, Stroke,
};
use missiond::core::model::{ExitReport, Fault, Person, RpcError};
use serde_json::json;
use std::time::Instant;

/// Whether somebody waits for a reply to it.
pub fn is_request(input: &Input) -> bool {
    matches!(
        input,
        Input::Start(_)
            | Input::Stop(_)
            | Input::Restart(_)
            | Input::Send(_)
            | Input::Confirm(_)
            | Input::Interrupt(_)
            | Input::Heard(..)
    )
}

pub fn read(words: &[&str], token: u64, now: Instant) -> Result<Input, String> {
    Ok(match *words {
        ["start"] => Input::Start(token),
        ["stop"] => Input::Stop(token),
        ["restart"] => Input::Restart(token),
        ["started"] => started(false),
        ["started", "with", "a", "conversation"] => started(true),
        ["not", "started", ref why @ ..] => not_started(why)?,
        ["ended", ref how @ ..] => ended(how)?,
        ["shim", "ends"] => Input::ShimEnds,
        ["shim", "is", "silent"] => Input::NotReached("its shim does not answer".to_owned()),
        ["shim", "is", "gone"] => Input::ShimGone,
        ["screen", state, ref rest @ ..] => Input::Saw(screen(state, rest)?),
        ["dialog", id, ref rest @ ..] => Input::Saw(dialog(id, rest)?),
        ["send", text] => send(token, text, true),
        ["send", text, "and", "go", "on"] => send(token, text, false),
        ["confirm", answer, ref rest @ ..] => confirm(token, answer, rest)?,
        ["interrupt"] => Input::Interrupt(Interruption {
            token,
            by: Interrupter::Person(person()),
        }),
        ["hook", ref rest @ ..] => Input::Heard(token, hook(rest)?),
        ["answer", text] => found(Some(text), None),
        ["answer", "failed", why] => found(None, Some(why)),
        ["person", "types", key] => typed(key),
        ["person", "leaves"] => Input::KeyboardFree,
        ["witnesses", "differ"] => Input::Witnessed(Some("the record says otherwise".to_owned())),
        ["witnesses", "agree"] => Input::Witnessed(None),
        ["audit", "can't", "be", "written"] => Input::Unpressed {
            error: Box::new(RpcError::new(Fault::Refused, "no room")),
            sight: None,
        },
        ["limit", "reached", "for", time] => Input::Limited {
            text: "limit reached".to_owned(),
            until: Some(now + duration(time)?),
        },
        ["quiet", "for", time] => Input::Measured(Measure {
            memory: None,
            quiet_for: duration(time)?,
        }),
        _ => return Err("no such line: see tests/machine/README.md".to_owned()),
    })
}

fn started(continues: bool) -> Input {
    Input::Started { pid: 42, continues }
}

fn not_started(why: &[&str]) -> Result<Input, String> {
    let cause = match why {
        ["missing", "program"] => Cause::MissingProgram,
        ["no", "connection"] => Cause::NoConnection,
        _ => return Err("`missing program` or `no connection`?".to_owned()),
    };
    let reason = "it could not be started".to_owned();
    Ok(Input::NotStarted { reason, cause })
}

fn ended(how: &[&str]) -> Result<Input, String> {
    let number = |text: &str| text.parse::<i32>().map_err(|_| format!("{text}?"));
    let (code, signal, said) = match *how {
        ["by", "signal", signal] => (None, Some(number(signal)?), None),
        [code, "saying", text] => (Some(number(code)?), None, Some(text.to_owned())),
        [code] => (Some(number(code)?), None, None),
        _ => return Err("`ended 1`, or `ended by signal 9`".to_owned()),
    };
    Ok(Input::Ended(ProgramEnd {
        report: ExitReport { code, signal },
        said,
        limit_reset: None,
    }))
}

fn screen(state: &str, rest: &[&str]) -> Result<Observation, String> {
    let state = State::ALL.into_iter().find(|known| known.name() == state);
    let state = state.ok_or("no such state")?;
    let mut sight = Observation {
        state,
        certain: true,
        redrawing: false,
        dialog: None,
        composer: Some(Composer {
            draft: String::new(),
            menu: false,
        }),
        mode: None,
        last_error: None,
        background: 0,
    };
    match *rest {
        [] => {}
        ["with", draft] => {
            sight.composer = Some(Composer {
                draft: draft.to_owned(),
                menu: false,
            });
        }
        ["unknown"] => sight.certain = false,
        ["error", text] => sight.last_error = Some(text.to_owned()),
        _ => return Err("`with \"text\"`, `unknown` or `error \"text\"`?".to_owned()),
    }
    Ok(sight)
}

/// What it asks about, and then how it stands on the screen.
fn dialog(id: &str, rest: &[&str]) -> Result<Observation, String> {
    let (mut dialog, looks) = match *rest {
        ["trust", ref looks @ ..] => (trust(id), looks),
        ["view", ref looks @ ..] => (view(id), looks),
        ["question", text, labels, ref looks @ ..] => (question(id, text, labels), looks),
        [tool, command, ref looks @ ..] => (permission(id, tool, command), looks),
        _ => return Err("`Bash \"command\"`, `trust` or `view`?".to_owned()),
    };
    let mut sight = screen("confirming", &[])?;
    sight.composer = None;
    for look in looks {
        match *look {
            "cut" => dialog.complete = false,
            "unknown" => sight.certain = false,
            "redrawing" => sight.redrawing = true,
            "last" => dialog.selected = dialog.options.len().checked_sub(1),
            "unmarked" => dialog.selected = None,
            "painted" => dialog.options.reverse(),
            _ => return Err(format!("how does it look if it is {look}?")),
        }
    }
    sight.dialog = Some(dialog);
    Ok(sight)
}

fn permission(id: &str, tool: &str, command: &str) -> Dialog {
    let labels = ["Yes", "Yes, and don't ask again for that", "No"];
    Dialog {
        tool: Some(tool.to_owned()),
        input: json!({ "command": command }).as_object().cloned(),
        text: "Do you want to proceed?".to_owned(),
        options: options(&labels, true),
        selected: Some(0),
        ..Dialog::new(id, DialogKind::Permission)
    }
}

/// Its options have no numbers, so that the marked row is moved by arrow keys.
fn trust(id: &str) -> Dialog {
    Dialog {
        kind: DialogKind::Trust,
        tool: None,
        input: None,
        text: "Do you trust this folder?".to_owned(),
        options: options(&["No, exit", "Yes, I trust this folder"], false),
        ..permission(id, "", "")
    }
}

/// A question of the model, with what Claude Code adds to its labels.
fn question(id: &str, text: &str, labels: &str) -> Dialog {
    let added = ["Type something.", "Chat about this"];
    let labels: Vec<&str> = labels.split(", ").chain(added).collect();
    Dialog {
        kind: DialogKind::Question,
        tool: Some("AskUserQuestion".to_owned()),
        input: json!({ "question": text }).as_object().cloned(),
        text: text.to_owned(),
        options: options(&labels, true),
        ..permission(id, "", "")
    }
}

/// One that nobody knows, with nothing to choose.
fn view(id: &str) -> Dialog {
    Dialog {
        kind: DialogKind::Other,
        tool: None,
        input: None,
        text: "Something new".to_owned(),
        options: Vec::new(),
        selected: None,
        ..permission(id, "", "")
    }
}

fn options(labels: &[&str], numbered: bool) -> Vec<Choice> {
    let choice = |(number, label): (u32, &&str)| Choice {
        label: (*label).to_owned(),
        number: numbered.then_some(number),
        description: None,
        checked: None,
    };
    (1..).zip(labels).map(choice).collect()
}

fn send(token: u64, text: &str, wait: bool) -> Input {
    Input::Send(Message {
        token: Some(token),
        text: text.to_owned(),
        slash: false,
        wait,
        task: None,
        id: None,
        person: None,
    })
}

fn confirm(token: u64, answer: &str, rest: &[&str]) -> Result<Input, String> {
    let (dialog, anyway, against_rule) = match *rest {
        [] => (None, false, false),
        ["anyway"] => (None, true, false),
        ["against", "the", "rule"] => (None, false, true),
        ["for", id] => (Some(id.to_owned()), false, false),
        _ => return Err("`for d1`, `anyway` or `against the rule`?".to_owned()),
    };
    Ok(Input::Confirm(Confirmation {
        token,
        answer: keys::Answer::Choice(answer.to_owned()),
        dialog,
        reason: None,
        person: person(),
        id: None,
        anyway,
        against_rule,
    }))
}

fn person() -> Person {
    Person {
        uid: 1000,
        pid: None,
        via: "cli".to_owned(),
    }
}

fn typed(key: &str) -> Input {
    let stroke = match key {
        "Enter" => Stroke::Enter,
        "Esc" => Stroke::Escape,
        _ => Stroke::Other,
    };
    Input::Typed {
        person: person(),
        strokes: vec![stroke],
    }
}

fn hook(words: &[&str]) -> Result<HookEvent, String> {
    let (text, failure) = (None, None);
    let what = match *words {
        ["session", "start"] => HookWhat::SessionStart,
        ["prompt", "taken"] => HookWhat::PromptTaken,
        ["turn", "over"] => HookWhat::TurnOver { text, failure },
        ["turn", "failed", why] => HookWhat::TurnOver {
            text,
            failure: Some(why.to_owned()),
        },
        ["before", "question", text, labels] => {
            let label = |label: &str| json!({ "label": label });
            let options: Vec<_> = labels.split(", ").map(label).collect();
            HookWhat::BeforeTool {
                tool: "AskUserQuestion".to_owned(),
                input: json!({"questions": [{"question": text, "options": options}]}),
                id: call_id(text),
            }
        }
        ["before", tool, command] => HookWhat::BeforeTool {
            tool: tool.to_owned(),
            input: json!({ "command": command }),
            id: call_id(command),
        },
        ["after", tool, command] => HookWhat::AfterTool {
            tool: tool.to_owned(),
            input: json!({ "command": command }),
            id: call_id(command),
            failure: None,
        },
        _ => return Err("no such hook here".to_owned()),
    };
    Ok(HookEvent {
        session_id: None,
        transcript: None,
        mode: None,
        cwd: None,
        agent: None,
        what,
    })
}

/// A command is called once in a scenario.
fn call_id(command: &str) -> Option<String> {
    Some(format!("call of {command}"))
}

fn found(text: Option<&str>, failure: Option<&str>) -> Input {
    Input::Found(Answer {
        text: text.map(str::to_owned),
        source: "transcript",
        failure: failure.map(str::to_owned),
    })
}
