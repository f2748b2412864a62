//! What has come of an answer that was given here, step by step, as the events of its slot tell. Pure.

use crate::core::claude::reading::Dialog;
use crate::core::model::{AnsweredDialog, Event, EventKind};
use chrono::{DateTime, Local, TimeDelta, Utc};
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
    is_closed: bool,
    /// When its last step came.
    at: Option<DateTime<Utc>>,
}

impl Receipt {
    fn new(slot: &str, dialog: &str, call: Option<String>) -> Receipt {
        Receipt {
            slot: slot.to_owned(),
            dialog: dialog.to_owned(),
            call,
            answer: String::new(),
            steps: Vec::new(),
            is_decided: false,
            is_gone: false,
            is_closed: false,
            at: None,
        }
    }

    fn is_about(&self, answered: &AnsweredDialog) -> bool {
        self.dialog == answered.dialog
    }

    /// This is all that comes of it.
    fn close(&mut self, how: String, now: DateTime<Utc>) {
        self.steps = vec![how];
        self.is_closed = true;
        self.at = Some(now);
    }

    /// The next step that an event tells of, if it does.
    fn step(&mut self, event: &Event) -> Option<String> {
        if event.slot.as_ref() != Some(&self.slot) || self.is_closed {
            return None;
        }
        match &event.what {
            EventKind::Verdict { by, via, .. }
                if by == "person" && is_own(via.as_deref()) && !self.is_decided =>
            {
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

/// Somebody else may decide before the answer from here arrives. By its name, the client of another dashboard is not told apart.
fn is_own(via: Option<&str>) -> bool {
    via.is_none_or(|via| via == "cli top")
}

/// The answers that were given here, the newest last.
#[derive(Debug, Default)]
pub struct Receipts(VecDeque<Receipt>);

impl Receipts {
    pub fn given(&mut self, slot: &str, dialog: &Dialog, answer: &str) {
        let call = dialog.request.clone().filter(|call| !call.is_empty());
        let mut receipt = Receipt::new(slot, &dialog.id, call);
        receipt.answer = answer.to_owned();
        self.push(receipt);
    }

    /// The answers to these dialogs were not taken: what happens to the dialogs is not their effect.
    pub fn refused(&mut self, dialogs: &[String], why: &str, now: DateTime<Utc>) {
        let is_it = |receipt: &&mut Receipt| dialogs.contains(&receipt.dialog);
        for receipt in self.0.iter_mut().filter(is_it) {
            receipt.close(format!("not taken: {why}"), now);
        }
    }

    /// The ask under the cursor is gone. If it was answered elsewhere, a line says by whom, when and how.
    pub fn gone(&mut self, slot: &str, answered: &AnsweredDialog, now: DateTime<Utc>) {
        if self.0.iter().any(|receipt| receipt.is_about(answered)) {
            return;
        }
        let by = answered.via.as_ref().unwrap_or(&answered.by);
        let at = answered.time.with_timezone(&Local).format("%H:%M:%S");
        let mut receipt = Receipt::new(slot, &answered.dialog, None);
        receipt.answer = format!("was answered by {by} at {at}");
        receipt.close(answered.why.clone(), now);
        self.push(receipt);
    }

    fn push(&mut self, receipt: Receipt) {
        if self.0.len() == MAX_RECEIPTS {
            self.0.pop_front();
        }
        self.0.push_back(receipt);
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
        let verdict = |by: &str, via: &str| EventKind::Verdict {
            tool: "Bash".to_owned(),
            target: "make".to_owned(),
            verdict: crate::core::policy::Decision::Allow,
            rule: None,
            why: String::new(),
            by: by.to_owned(),
            answer: None,
            agent: None,
            via: Some(via.to_owned()),
        };
        let mut receipts = Receipts::default();
        receipts.given("coder", &dialog, "yes");
        let told = [
            // Of another slot, of a rule, of another dialog, of another call.
            event("api", key("1")),
            event("coder", verdict("policy", "")),
            event("coder", verdict("person", "web phone")),
            event("coder", gone("d-0")),
            event("coder", ran("call-0", None)),
            event("coder", verdict("person", "cli top")),
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
        let why = "coder was answered before";
        receipts.refused(&["d-coder".to_owned()], why, Utc::now());
        let line = "coder yes: not taken: coder was answered before";
        assert_eq!(receipts.lines(Utc::now()).collect::<Vec<_>>(), [line]);
        receipts.note(&event("coder", key("1")));
        assert_eq!(receipts.lines(Utc::now()).collect::<Vec<_>>(), [line]);
    }

    #[test]
    fn an_ask_that_is_answered_elsewhere_says_by_whom() {
        let answered = |id: &str| AnsweredDialog {
            dialog: id.to_owned(),
            time: Utc::now(),
            verdict: crate::core::policy::Decision::Allow,
            by: "person".to_owned(),
            via: Some("web phone".to_owned()),
            why: "a person chose Yes".to_owned(),
        };
        let mut receipts = Receipts::default();
        receipts.gone("coder", &answered("d-1"), Utc::now());
        receipts.gone("coder", &answered("d-1"), Utc::now());
        let lines: Vec<String> = receipts.lines(Utc::now()).collect();
        let [line] = &lines[..] else {
            panic!("{lines:?}");
        };
        let (who, how) = (
            "coder was answered by web phone at ",
            ": a person chose Yes",
        );
        assert!(line.starts_with(who) && line.ends_with(how), "{line}");
        // One that was answered here has its own line.
        let dialog = sample::asks("coder", "make").dialog.unwrap();
        receipts.given("coder", &dialog, "yes");
        receipts.gone("coder", &answered(&dialog.id), Utc::now());
        assert_eq!(receipts.lines(Utc::now()).count(), 2);
    }
}
