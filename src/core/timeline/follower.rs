//! Follows the events of one slot as they come, from a log or live: its activity, and the dialogs that wait for a person.

use super::{Activity, Span, Wait, WaitReason};
use crate::core::claude::reading::{Dialog, DialogKind, State};
use crate::core::machine::{about, kind_name, target_of};
use crate::core::model::{Event, EventKind};
use crate::core::policy::{Decision, RuleRef};
use crate::core::text::excerpt::head;
use chrono::{DateTime, Utc};
use serde_json::Value;
use std::collections::VecDeque;

/// The verdicts that a dialog may still come for: more calls than Claude Code makes at once.
const MOST_VERDICTS: usize = 64;
/// The longest target of a dialog that is kept, in bytes: a line on a wide terminal.
const MOST_ABOUT: usize = 200;

/// A fact about the past of a slot that is known once an event has come: a finished span, a finished wait, a verdict.
#[derive(Debug, Clone, PartialEq)]
pub enum SlotChange {
    Span(Span),
    Wait(Wait),
    /// The rules decided on a call.
    Decided {
        tool: String,
        decision: Decision,
        rule: Option<RuleRef>,
    },
    /// Something is wrong with the slot.
    Trouble {
        cause: String,
        at: DateTime<Utc>,
    },
    /// The program ended at this time, while no daemon ran: spans that were reported after it are wrong.
    DownSince(DateTime<Utc>),
}

#[derive(Debug, Clone)]
struct OpenDialog {
    id: String,
    begin: DateTime<Utc>,
    kind: DialogKind,
    complete: bool,
    tool: Option<String>,
    target: String,
    about: String,
    reason: Option<WaitReason>,
    answer: Option<Decision>,
    by_rule: bool,
}

/// A verdict of the rules on a call whose dialog may come.
#[derive(Debug, Clone)]
struct SeenVerdict {
    tool: String,
    target: String,
    reason: WaitReason,
}

/// The state of a slot, as far as its events have told it.
#[derive(Debug, Clone, Default)]
pub struct Follower {
    /// The time of the last event: a clock that was set back does not make time run backwards.
    now: Option<DateTime<Utc>>,
    state: Option<State>,
    dialog: Option<OpenDialog>,
    judged: VecDeque<SeenVerdict>,
    span: Option<(Activity, DateTime<Utc>)>,
}

impl Follower {
    pub fn take(&mut self, event: &Event) -> Vec<SlotChange> {
        let now = self.now.map_or(event.time, |last| last.max(event.time));
        self.now = Some(now);
        let mut news = Vec::new();
        match &event.what {
            EventKind::State { to, .. } => {
                self.state = Some(*to);
                if !matches!(to, State::Starting | State::Confirming) {
                    self.dialog_over(now, &mut news);
                }
            }
            EventKind::Exit { ended_at, .. } => {
                self.dialog_over(now, &mut news);
                self.state = Some(State::Exited);
                news.extend(ended_at.map(SlotChange::DownSince));
            }
            EventKind::Dialog { dialog } => self.dialog_up(dialog, now, &mut news),
            EventKind::DialogGone { id } if self.shows(id) => self.dialog_over(now, &mut news),
            EventKind::Verdict { .. } => news.extend(self.judge(&event.what)),
            EventKind::Trouble { cause, .. } => news.push(SlotChange::Trouble {
                cause: cause.clone(),
                at: now,
            }),
            _ => {}
        }
        self.change_span(now, &mut news);
        news
    }

    /// The activity now, and since when.
    pub fn activity(&self) -> Option<(Activity, DateTime<Utc>)> {
        self.span
    }

    /// When the dialog came that waits for a person, if one does.
    pub fn waits_since(&self) -> Option<DateTime<Utc>> {
        let open = self.dialog.as_ref().filter(|open| !open.by_rule);
        open.map(|open| open.begin)
    }

    /// The spans and waits that are still open at the end of the window.
    pub fn finish(mut self, until: DateTime<Utc>) -> Vec<SlotChange> {
        let until = self.now.map_or(until, |now| now.max(until));
        let mut news = Vec::new();
        if let Some(mut wait) = self.dialog.take().and_then(|open| open.over(until)) {
            wait.open = true;
            news.push(SlotChange::Wait(wait));
        }
        news.extend(self.span.and_then(|span| ended(span, until)));
        news
    }

    fn shows(&self, dialog: &str) -> bool {
        let open = self.dialog.as_ref();
        open.is_some_and(|open| open.id == dialog)
    }

    fn change_span(&mut self, now: DateTime<Utc>, news: &mut Vec<SlotChange>) {
        let activity = match (&self.dialog, self.state) {
            (Some(open), _) if open.by_rule => Activity::Works,
            (Some(_), _) => Activity::Waits,
            (_, Some(state)) => Activity::of(state),
            (_, None) => return,
        };
        match self.span {
            Some((before, _)) if before == activity => {}
            before => {
                news.extend(before.and_then(|span| ended(span, now)));
                self.span = Some((activity, now));
            }
        }
    }

    fn dialog_up(&mut self, dialog: &Dialog, now: DateTime<Utc>, news: &mut Vec<SlotChange>) {
        if self.shows(&dialog.id) {
            return;
        }
        self.dialog_over(now, news);
        let mut open = OpenDialog::new(dialog, now);
        let fits = |judged: &SeenVerdict| open.is_about(&judged.tool, &judged.target);
        let verdict = self.judged.iter().rposition(fits);
        open.reason = verdict
            .and_then(|place| self.judged.remove(place))
            .map(|judged| judged.reason);
        self.dialog = Some(open);
    }

    fn dialog_over(&mut self, now: DateTime<Utc>, news: &mut Vec<SlotChange>) {
        let wait = self.dialog.take().and_then(|open| open.over(now));
        news.extend(wait.map(SlotChange::Wait));
    }

    /// A verdict: a person's answer to the dialog, or what the rules say about it or about a call without a dialog.
    fn judge(&mut self, what: &EventKind) -> Option<SlotChange> {
        let EventKind::Verdict {
            tool,
            target,
            verdict,
            rule,
            why,
            by,
            ..
        } = what
        else {
            return None;
        };
        if by != "policy" {
            if let Some(open) = &mut self.dialog {
                open.answer = Some(*verdict);
            }
            return None;
        }
        let reason = reason(*verdict, rule.as_ref(), why);
        let dialog = self.dialog.as_mut();
        match dialog.filter(|open| open.is_about(tool, target)) {
            Some(open) => {
                open.by_rule |= matches!(verdict, Decision::Allow | Decision::Deny);
                open.reason.get_or_insert(reason);
            }
            None => self.keep(SeenVerdict {
                tool: tool.clone(),
                target: target.clone(),
                reason,
            }),
        }
        Some(SlotChange::Decided {
            tool: tool.clone(),
            decision: *verdict,
            rule: rule.clone(),
        })
    }

    fn keep(&mut self, judged: SeenVerdict) {
        if self.judged.len() == MOST_VERDICTS {
            self.judged.pop_front();
        }
        self.judged.push_back(judged);
    }
}

/// Why a dialog comes after this verdict of the gate.
fn reason(verdict: Decision, rule: Option<&RuleRef>, why: &str) -> WaitReason {
    match verdict {
        Decision::Ask => WaitReason {
            rule: rule.cloned(),
            why: head(why, MOST_ABOUT).to_owned(),
        },
        // The gate has left it to Claude Code, or has not stopped it.
        Decision::Silent | Decision::Allow | Decision::Deny => {
            WaitReason::words("Claude Code's own rules")
        }
    }
}

fn ended((activity, begin): (Activity, DateTime<Utc>), end: DateTime<Utc>) -> Option<SlotChange> {
    (end > begin).then_some(SlotChange::Span(Span {
        activity,
        begin,
        end,
    }))
}

impl OpenDialog {
    fn new(dialog: &Dialog, begin: DateTime<Utc>) -> OpenDialog {
        let input = dialog.input.clone().map(Value::Object);
        OpenDialog {
            id: dialog.id.clone(),
            begin,
            kind: dialog.kind,
            complete: dialog.complete,
            tool: dialog.tool.clone(),
            target: input.as_ref().and_then(target_of).unwrap_or_default(),
            about: head(&about(dialog), MOST_ABOUT).to_owned(),
            reason: None,
            answer: None,
            by_rule: false,
        }
    }

    /// Whether it asks about this call, as far as the screen shows it.
    fn is_about(&self, tool: &str, target: &str) -> bool {
        let own = self.tool.as_deref().unwrap_or(kind_name(self.kind));
        own == tool && (self.target == target || !self.complete)
    }

    /// `None` if a rule answered it.
    fn over(self, end: DateTime<Utc>) -> Option<Wait> {
        let kind = self.kind;
        // What the gate said of a question is not why it is asked.
        let reason = self.reason.filter(|_| kind == DialogKind::Permission);
        (!self.by_rule).then(|| Wait {
            begin: self.begin,
            end,
            open: false,
            tool: self.tool,
            about: self.about,
            reason: reason.unwrap_or_else(|| WaitReason::of_kind(kind)),
            answer: self.answer,
        })
    }
}
