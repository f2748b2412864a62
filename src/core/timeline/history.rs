//! What one slot did in a window of time.

use super::{Activity, Follower, SlotChange, Span, Wait};
use crate::core::claude::reading::{Dialog, State};
use crate::core::model::{Event, EventKind};
use crate::core::policy::Decision;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

/// The time that is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Window {
    pub since: DateTime<Utc>,
    pub until: DateTime<Utc>,
    /// Later than this nothing is known, since no daemon ran; not later than `until`.
    #[serde(skip)]
    pub known: DateTime<Utc>,
}

impl Window {
    pub fn length(&self) -> TimeDelta {
        self.until - self.since
    }

    fn clip(&self, begin: DateTime<Utc>, end: DateTime<Utc>) -> (DateTime<Utc>, DateTime<Utc>) {
        let clip = |time: DateTime<Utc>| time.clamp(self.since, self.until);
        (clip(begin), clip(end))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlotHistory {
    pub slot: String,
    /// In order, without a gap, from the beginning of the window to its end.
    pub spans: Vec<Span>,
    pub waits: Vec<Wait>,
    /// Calls that the rules have allowed or denied.
    pub by_rule: u64,
    /// Calls of these that they have denied.
    pub denied: u64,
    /// The last trouble, by name.
    pub trouble: Option<(DateTime<Utc>, String)>,
}

impl SlotHistory {
    /// From its events in order; those before the window say how it begins.
    pub fn of<'a>(
        slot: &str,
        events: impl IntoIterator<Item = &'a Event>,
        window: Window,
    ) -> SlotHistory {
        let mut history = SlotHistory {
            slot: slot.to_owned(),
            spans: Vec::new(),
            waits: Vec::new(),
            by_rule: 0,
            denied: 0,
            trouble: None,
        };
        let mut follower = Follower::default();
        for event in events {
            if event.time > window.until {
                break;
            }
            for news in follower.take(event) {
                history.add(news, event.time, window);
            }
        }
        let last = follower.activity();
        let until = match last {
            // What has ended stays so, whether a daemon runs or not.
            Some((Activity::Down, _)) => window.until,
            _ => window.known,
        };
        for news in follower.finish(until) {
            history.add(news, window.until, window);
        }
        history.fill(window);
        history
    }

    fn add(&mut self, news: SlotChange, time: DateTime<Utc>, window: Window) {
        match news {
            SlotChange::Span(span) => self.add_span(span, window),
            SlotChange::Wait(mut wait) => {
                (wait.begin, wait.end) = window.clip(wait.begin, wait.end);
                if wait.begin < wait.end {
                    self.waits.push(wait);
                }
            }
            SlotChange::Decided { decision, .. } if time >= window.since => {
                self.by_rule += u64::from(matches!(decision, Decision::Allow | Decision::Deny));
                self.denied += u64::from(decision == Decision::Deny);
            }
            SlotChange::Trouble { cause, at } if time >= window.since => {
                self.trouble = Some((at, cause));
            }
            SlotChange::DownSince(at) => self.down_since(at),
            SlotChange::Decided { .. } | SlotChange::Trouble { .. } => {}
        }
    }

    fn add_span(&mut self, span: Span, window: Window) {
        let (begin, end) = window.clip(span.begin, span.end);
        match self.spans.last_mut() {
            _ if begin >= end => {}
            Some(last) if last.activity == span.activity && last.end == begin => last.end = end,
            _ => self.spans.push(Span {
                activity: span.activity,
                begin,
                end,
            }),
        }
    }

    /// Its program ended at that time, and no daemon was there to see it.
    fn down_since(&mut self, at: DateTime<Utc>) {
        let Some(end) = self.spans.last().map(|span| span.end) else {
            return;
        };
        self.spans.retain(|span| span.begin < at);
        if let Some(last) = self.spans.last_mut().filter(|last| last.end > at) {
            last.end = at;
        }
        let begin = self.spans.last().map_or(at, |last| last.end);
        if begin < end {
            self.spans.push(Span {
                activity: Activity::Down,
                begin,
                end,
            });
        }
        self.waits.retain(|wait| wait.begin < at);
        for wait in &mut self.waits {
            wait.end = wait.end.min(at);
        }
    }

    /// What no event speaks about is unknown.
    fn fill(&mut self, window: Window) {
        let mut filled: Vec<Span> = Vec::with_capacity(self.spans.len() + 2);
        let mut at = window.since;
        let end = Span {
            activity: Activity::Unknown,
            begin: window.until,
            end: window.until,
        };
        for span in self.spans.drain(..).chain([end]) {
            if span.begin > at {
                filled.push(Span {
                    activity: Activity::Unknown,
                    begin: at,
                    end: span.begin,
                });
            }
            at = span.end;
            if span.begin < span.end {
                filled.push(span);
            }
        }
        self.spans = filled;
    }

    /// How long it did this.
    pub fn total(&self, activity: Activity) -> TimeDelta {
        let spans = self.spans.iter().filter(|span| span.activity == activity);
        spans.map(Span::length).sum()
    }

    /// The window in so many parts: what took most of the time of each. Waiting counts as soon as it took a fifth of it,
    /// since it is what people look for.
    pub fn band(&self, window: Window, cells: usize) -> Vec<Activity> {
        let length = window.length().num_milliseconds().max(1);
        let cells = i64::try_from(cells).unwrap_or(i64::MAX).max(1);
        let edge = |cell: i64| i128::from(length) * i128::from(cell) / i128::from(cells);
        let since = |time: DateTime<Utc>| i128::from((time - window.since).num_milliseconds());
        let mut spans = self.spans.iter().peekable();
        let mut band = Vec::new();
        for cell in 0..cells {
            let (begin, end) = (edge(cell), edge(cell + 1));
            let mut shares = [0_i128; Activity::ALL.len()];
            while let Some(span) = spans.peek() {
                let share = since(span.end).min(end) - since(span.begin).max(begin);
                shares[span.activity as usize] += share.max(0);
                if since(span.end) > end {
                    break;
                }
                spans.next();
            }
            band.push(shown(shares, end - begin));
        }
        band
    }
}

fn shown(shares: [i128; Activity::ALL.len()], whole: i128) -> Activity {
    let share = |activity: &Activity| shares[*activity as usize];
    if share(&Activity::Waits) > 0 && share(&Activity::Waits) * 5 >= whole {
        return Activity::Waits;
    }
    let most = Activity::ALL.into_iter().rev().max_by_key(share);
    most.filter(|most| share(most) > 0)
        .unwrap_or(Activity::Unknown)
}

/// The event, without what looking back does not need, so that many of them fit into memory; `None` if nothing of it is
/// needed.
pub fn needed(event: Event) -> Option<Event> {
    let what = match event.what {
        EventKind::Dialog { dialog } => EventKind::Dialog {
            dialog: without_options(dialog),
        },
        what @ (EventKind::State { .. }
        | EventKind::DialogGone { .. }
        | EventKind::Verdict { .. }
        | EventKind::Trouble { .. }
        | EventKind::Exit { .. }) => what,
        _ => return None,
    };
    Some(Event { what, ..event })
}

fn without_options(dialog: Dialog) -> Dialog {
    let first = dialog.text.lines().find(|line| !line.trim().is_empty());
    Dialog {
        text: first.unwrap_or_default().to_owned(),
        options: Vec::new(),
        ..dialog
    }
}

impl Window {
    /// Whether the events from this one on say how the slot was at the beginning of the window. A verdict comes up to a
    /// minute before its dialog.
    pub fn begins_after(&self, event: &Event) -> bool {
        let lead = TimeDelta::minutes(1);
        let tells = matches!(event.what, EventKind::State { to, .. } if to != State::Confirming);
        tells && event.time < self.since - lead
    }
}
