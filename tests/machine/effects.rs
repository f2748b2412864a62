//! What the machine wants done, in the words of the scripts.

use missiond::core::claude::reading::Dialog;
use missiond::core::machine::{Decider, Effect, Reply, RulesQuestion, Wants, target_of};
use missiond::core::model::EventKind;
use serde_json::Value;

/// One effect; a reply has the name of the request in place of its number.
pub fn words(effect: &Effect, name_of: impl Fn(u64) -> String) -> String {
    match effect {
        Effect::Spawn => "start the program".to_owned(),
        Effect::CancelSpawn => "cancel the start".to_owned(),
        Effect::ForgetConversation => "forget the conversation".to_owned(),
        Effect::Press { key, reason, .. } => format!("key {key} ({reason})"),
        Effect::NoEffect { key, why, .. } => format!("audit: no effect of {key} ({why})"),
        Effect::StopTree => "end the program".to_owned(),
        Effect::EndOrphans => "end what is left of it".to_owned(),
        Effect::Repaint => "have the screen drawn again".to_owned(),
        Effect::FindAnswer => "look for the answer".to_owned(),
        Effect::Judge(question) => asked(question),
        Effect::DateCost(grown) => format!("find out on which day {grown} were spent"),
        Effect::FindReset(text) => format!("find out when the limit is lifted: {text}"),
        Effect::Drop { id, .. } => format!("message {id} is dropped"),
        Effect::Reply(token, reply) => {
            let reply = match reply {
                Ok(reply) => answered(reply),
                Err(error) => format!("refused {}", error.refusal.unwrap_or("without a name")),
            };
            format!("{}: {reply}", name_of(*token))
        }
        Effect::Tell(what) => told(what),
        Effect::Audit(verdict, _, decider) => {
            let by = match decider {
                Decider::Policy => "a rule",
                Decider::Gate { .. } => "the gate",
                Decider::Person(_) => "a person",
                Decider::Keys { .. } => "keys",
            };
            format!("audit: {} by {by}", verdict.decision.word())
        }
        Effect::Alarm(why, _) => format!("alarm: {why}"),
    }
}

fn asked(question: &RulesQuestion) -> String {
    let call = match target_of(&question.ask.input) {
        Some(target) => format!("{} {target:?}", question.ask.tool),
        None => question.ask.tool.clone(),
    };
    match question.wants {
        Wants::RuleForAlways => format!("ask the rules what `always` would add: {call}"),
        Wants::GateAnswer(_) | Wants::Verdict => format!("ask the rules: {call}"),
    }
}

fn answered(reply: &Reply) -> String {
    match reply {
        Reply::Done => "done".to_owned(),
        Reply::Cut(cut) => {
            let all: Vec<String> = cut.waited.iter().chain(&cut.dropped).cloned().collect();
            format!("done, which has cut {}", all.join(", "))
        }
        Reply::Already => "nothing to do".to_owned(),
        Reply::Taken => "taken".to_owned(),
        Reply::Answered { text, source } => {
            format!(
                "answered {:?} ({source})",
                text.as_deref().unwrap_or_default()
            )
        }
        Reply::NeedsPerson(dialog) => format!("needs a person at {}", dialog.id),
        Reply::Confirmed { chosen, .. } => format!("chosen {chosen:?}"),
        Reply::Interrupted(effect) => (*effect).to_owned(),
        Reply::Unknown => "unknown".to_owned(),
        Reply::Hook(None) => "no answer".to_owned(),
        Reply::Hook(Some(output)) => {
            let decision = &output["hookSpecificOutput"]["permissionDecision"];
            decision.as_str().unwrap_or("an answer").to_owned()
        }
    }
}

fn told(what: &EventKind) -> String {
    match what {
        EventKind::State { to, .. } => format!("state {}", to.name()),
        EventKind::Dialog { dialog } => dialog_is_up(dialog),
        EventKind::DialogGone { id } => format!("dialog {id} is gone"),
        EventKind::Verdict { verdict, by, .. } => {
            format!("event verdict: {} by {by}", verdict.word())
        }
        other => event(&serde_json::to_value(other).expect("an event has a JSON form")),
    }
}

fn dialog_is_up(dialog: &Dialog) -> String {
    format!("dialog {} is up", dialog.id)
}

/// Its name, and what it says.
fn event(value: &Value) -> String {
    let name = value["event"].as_str().unwrap_or_default();
    let said = ["cause", "text", "reason", "why", "by", "delay_ms"];
    let said = said.iter().filter_map(|key| match &value[key] {
        Value::String(text) => Some(text.clone()),
        // A little chance is in it.
        Value::Number(delay) => Some(format!("in {} s", delay.as_u64()? / 1000)),
        _ => None,
    });
    let said: Vec<String> = said.collect();
    match said.is_empty() {
        true => format!("event {name}"),
        false => format!("event {name}: {}", said.join(": ")),
    }
}
