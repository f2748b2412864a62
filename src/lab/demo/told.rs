//! Events as text for a person who sees them for the first time. Pure.

use crate::core::claude::reading::{Dialog, State};
use crate::core::model::{Event, EventKind, NO_ANSWER};
use crate::core::policy::{Decision, RuleRef};
use std::path::Path;

/// The importance of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// The table above shows it too.
    Aside,
    Plain,
    Good,
    Bad,
    /// A person is needed.
    Asks,
}

/// The line for an event, and its importance; `None` if the event has nothing new.
///
/// A file in the slot's own directory below `work` is named relative to that directory.
pub fn line(event: &Event, work: &Path) -> Option<(Weight, String)> {
    let slot = event.slot.as_deref()?;
    let (weight, text) = words(&event.what)?;
    let own = format!("{}/", work.join(slot).display());
    Some((weight, format!("{slot:<9} {}", text.replace(&own, ""))))
}

fn words(what: &EventKind) -> Option<(Weight, String)> {
    Some(match what {
        EventKind::Spawned {
            pid,
            session_id,
            resumed,
        } => {
            let id = session_id.as_deref().map_or("no conversation", short);
            let how = if *resumed {
                "goes on with conversation"
            } else {
                "begins conversation"
            };
            (Weight::Plain, format!("started, pid {pid}; {how} {id}"))
        }
        // The start was shown already.
        EventKind::State { to, .. } if *to == State::Starting => return None,
        EventKind::State { from, to } => {
            (Weight::Aside, format!("{} → {}", from.name(), to.name()))
        }
        EventKind::Message { text } => (Weight::Plain, format!("is told: {text}")),
        EventKind::Answer { text, .. } => (Weight::Plain, format!("answers: {text}")),
        EventKind::Failed { text } => (Weight::Bad, format!("no answer: {text}")),
        EventKind::Dialog { dialog } => (Weight::Asks, question(dialog)),
        EventKind::Key { key, reason } => (Weight::Aside, format!("key {key}: {reason}")),
        EventKind::Exit { cause, .. } => (Weight::Bad, format!("its program ended: {cause}")),
        EventKind::Restart { attempt, delay_ms } => {
            let delay = *delay_ms as f64 / 1000.0;
            (Weight::Plain, format!("restart {attempt} in {delay:.1} s"))
        }
        EventKind::GaveUp { reason } => (Weight::Bad, format!("given up: {reason}")),
        EventKind::Doubtful { why } => (Weight::Bad, format!("doubtful: {why}")),
        EventKind::Warning { text } => (Weight::Bad, format!("warning: {text}")),
        EventKind::Verdict {
            tool,
            target,
            verdict,
            answer: Some(answer),
            ..
        } if answer == NO_ANSWER && *verdict != Decision::Allow => (
            Weight::Plain,
            format!("left to Claude Code's own rules: {tool} {target}"),
        ),
        EventKind::Verdict {
            tool,
            target,
            verdict,
            rule,
            why,
            by,
            ..
        } => {
            return verdict_words(tool, target, *verdict, rule.as_ref(), why, by);
        }
        _ => return None,
    })
}

fn verdict_words(
    tool: &str,
    target: &str,
    verdict: Decision,
    rule: Option<&RuleRef>,
    why: &str,
    by: &str,
) -> Option<(Weight, String)> {
    let call = match target {
        "" => tool.to_owned(),
        target => format!("{tool} {target}"),
    };
    let ground = rule.map_or_else(|| why.to_owned(), place);
    match (verdict, by) {
        (Decision::Allow, "policy") => {
            Some((Weight::Good, format!("automatic yes: {call}\n{ground}")))
        }
        (Decision::Deny, "policy") => {
            Some((Weight::Bad, format!("automatic no: {call}\n{ground}")))
        }
        // The dialog itself comes next, with the rest.
        (Decision::Ask, _) => Some((Weight::Plain, format!("for a person: {call}\n{ground}"))),
        (verdict, by) => Some((
            Weight::Good,
            format!("{} by a {by}: {call}", verdict.word()),
        )),
    }
}

/// The rule, with its file and line.
fn place(rule: &RuleRef) -> String {
    let file = rule.file.file_name().map(Path::new).unwrap_or(&rule.file);
    format!(
        "rule {}, policies/{}:{}",
        rule.text,
        file.display(),
        rule.line
    )
}

/// The question of a dialog, and the answers that it offers.
fn question(dialog: &Dialog) -> String {
    let input = serde_json::Value::from(dialog.input.clone().unwrap_or_default());
    let whole = &input["questions"][0]["question"];
    let shown = [whole, &input["question"], &input["command"]];
    let what = shown.iter().find_map(|value| value.as_str());
    let what = what.or(dialog.tool.as_deref()).unwrap_or("something");
    let labels = dialog.options.iter().map(|option| option.label.as_str());
    let labels: Vec<&str> = labels.collect();
    format!("asks: {what}\n{}", labels.join(" | "))
}

/// The first characters of an id, enough to recognise it.
pub fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(what: EventKind) -> Option<String> {
        let event = Event {
            seq: 1,
            time: chrono::Utc::now(),
            slot: Some("coder".to_owned()),
            what,
        };
        line(&event, Path::new("/x/work")).map(|(_, text)| text)
    }

    #[test]
    fn an_automatic_no_names_the_rule_and_its_place() {
        let rule = RuleRef {
            text: "Bash(rm *)".to_owned(),
            file: "/x/policies/coder.toml".into(),
            line: 10,
        };
        let what = EventKind::Verdict {
            tool: "Bash".to_owned(),
            target: "rm -rf /x/work/coder/build".to_owned(),
            verdict: Decision::Deny,
            rule: Some(rule),
            why: String::new(),
            by: "policy".to_owned(),
            via: None,
            answer: Some("deny".to_owned()),
            agent: None,
        };
        assert_eq!(
            told(what).as_deref(),
            Some(
                "coder     automatic no: Bash rm -rf build\nrule Bash(rm *), policies/coder.toml:10"
            )
        );
    }

    #[test]
    fn what_says_nothing_new_is_not_told() {
        assert_eq!(told(EventKind::DialogGone { id: "d".to_owned() }), None);
        assert_eq!(
            told(EventKind::Restart {
                attempt: 1,
                delay_ms: 1500
            })
            .as_deref(),
            Some("coder     restart 1 in 1.5 s")
        );
    }
}
