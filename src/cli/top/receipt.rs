//! What has come of an answer that was given here, step by step, as the events of its slot tell. Pure.

use crate::core::claude::reading::Dialog;
use crate::core::model::{Event, EventKind};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::VecDeque;

/// Answers that are followed at once: the older ones have long had their effect.
const MAX_RECEIPTS: usize = 8;
/// For how long a receipt is shown after its last step.
const SHOWN: TimeDelta = TimeDelta::seconds(60);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Receipt {
    slot: String,
    dialog: String,
    /// Claude Code's id of the call, if the dialog is about one.
    call: Option<String>,
    answer: String,
    steps: Vec<String>,
    is_decided: bool,
    is_gone: bool,
    /// When its last step came.
    at: Option<DateTime<Utc>>,
}

impl Receipt {
    /// The next step that an event tells of, if it does.
    fn step(&mut self, event: &Event) -> Option<String> {
        if event.slot.as_ref() != Some(&self.slot) {
            return None;
        }
        match &event.what {
            EventKind::Verdict { by, .. } if by == "person" && !self.is_decided => {
                self.is_decided = true;
                Some("decided".to_owned())
            }
            EventKind::Key { key, .. } if self.is_decided && !self.is_gone => {
                Some(format!("key {key}"))
            }
            EventKind::DialogGone { id } if *id == self.dialog => {
                self.is_gone = true;
                Some("dialog gone".to_owned())
            }
            EventKind::Ran { call, error, .. } if call.is_some() && *call == self.call => {
                Some(match error {
                    Some(error) => format!("ran, failed: {error}"),
                    None => "ran".to_owned(),
                })
            }
            _ => None,
        }
    }
}

/// The answers that were given here, the newest last.
#[derive(Debug, Default)]
pub struct Receipts(VecDeque<Receipt>);

impl Receipts {
    pub fn given(&mut self, slot: &str, dialog: &Dialog, answer: &str) {
        if self.0.len() == MAX_RECEIPTS {
            self.0.pop_front();
        }
        self.0.push_back(Receipt {
            slot: slot.to_owned(),
            dialog: dialog.id.clone(),
            call: dialog.request.clone().filter(|call| !call.is_empty()),
            answer: answer.to_owned(),
            steps: Vec::new(),
            is_decided: false,
            is_gone: false,
            at: None,
        });
    }

    /// The answers to these dialogs were not taken: what happens to the dialogs is not their effect.
    pub fn refused(&mut self, dialogs: &[String]) {
        self.0.retain(|receipt| !dialogs.contains(&receipt.dialog));
    }

    pub fn note(&mut self, event: &Event) {
        for receipt in &mut self.0 {
            if let Some(step) = receipt.step(event) {
                receipt.steps.push(step);
                receipt.at = Some(event.time);
            }
        }
    }

    /// A line for each one whose last step is not long ago, the newest first: `coder yes: decided, key 1, dialog gone, ran`.
    pub fn lines(&self, now: DateTime<Utc>) -> impl Iterator<Item = String> {
        let is_fresh = move |receipt: &&Receipt| receipt.at.is_none_or(|at| now - at < SHOWN);
        self.0.iter().rev().filter(is_fresh).map(|receipt| {
            let steps = match receipt.steps.is_empty() {
                true => "sent".to_owned(),
                false => receipt.steps.join(", "),
            };
            format!("{} {}: {steps}", receipt.slot, receipt.answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn event(slot: &str, what: EventKind) -> Event {
        Event {
            slot: Some(slot.to_owned()),
            ..Event::sample(what)
        }
    }

    #[test]
    fn an_answer_is_followed_until_its_tool_has_run() {
        let mut dialog = sample::asks("coder", "make").dialog.unwrap();
        dialog.request = Some("call-1".to_owned());
        let gone = |id: &str| EventKind::DialogGone { id: id.to_owned() };
        let key = |key: &str| EventKind::Key {
            key: key.to_owned(),
            reason: String::new(),
        };
        let ran = |call: &str, error: Option<&str>| EventKind::Ran {
            tool: "Bash".to_owned(),
            target: "make".to_owned(),
            call: Some(call.to_owned()),
            error: error.map(str::to_owned),
        };
        let verdict = |by: &str| EventKind::Verdict {
            tool: "Bash".to_owned(),
            target: "make".to_owned(),
            verdict: crate::core::policy::Decision::Allow,
            rule: None,
            why: String::new(),
            by: by.to_owned(),
            answer: None,
            agent: None,
            via: None,
        };
        let mut receipts = Receipts::default();
        receipts.given("coder", &dialog, "yes");
        let told = [
            // Of another slot, of a rule, of another dialog, of another call.
            event("api", key("1")),
            event("coder", verdict("policy")),
            event("coder", gone("d-0")),
            event("coder", ran("call-0", None)),
            event("coder", verdict("person")),
            event("coder", key("1")),
            event("coder", gone("d-coder")),
            event("coder", key("Enter")),
            event("coder", ran("call-1", Some("Exit code 2"))),
        ];
        assert_eq!(
            receipts.lines(Utc::now()).collect::<Vec<_>>(),
            ["coder yes: sent"]
        );
        told.iter().for_each(|event| receipts.note(event));
        let line = "coder yes: decided, key 1, dialog gone, ran, failed: Exit code 2";
        assert_eq!(receipts.lines(Utc::now()).collect::<Vec<_>>(), [line]);
        assert_eq!(receipts.lines(Utc::now() + SHOWN).count(), 0);
        receipts.refused(&["d-coder".to_owned()]);
        assert_eq!(receipts.lines(Utc::now()).count(), 0);
    }
}
