//! Counts what happens in all slots since the daemon began, for monitoring. Every set of names has a bound: what comes beyond it
//! counts as [`OTHER`].

use super::{Activity, Follower, SlotChange, Wait, in_seconds};
use crate::core::model::{Event, EventKind};
use crate::core::policy::{Decision, RuleRef};
use crate::core::text::excerpt::head;
use crate::core::text::secrets;
use chrono::{DateTime, Utc};
use std::collections::BTreeMap;

/// Slots and sessions that are counted; a config with more was not meant.
const MOST_SLOTS: usize = 1024;
/// Rules, or tools, of one slot. A model can name tools that nobody has.
const MOST_NAMES: usize = 100;
/// Bytes of a name: of a rule with a long path, or of a tool of an MCP server.
const MOST_BYTES: usize = 120;
/// In the place of a name beyond the bound.
pub const OTHER: &str = "other";

/// The upper edges of a histogram of waits, in seconds.
pub const EDGES: [f64; 10] = [
    1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
];

#[derive(Debug, Clone, Default)]
pub struct Tally {
    slots: BTreeMap<String, SlotTally>,
}

#[derive(Debug, Clone, Default)]
pub struct SlotTally {
    follower: Follower,
    /// Seconds in each activity that is over.
    seconds: [f64; Activity::ALL.len()],
    /// By tool, or by the kind of the dialog.
    waits: BTreeMap<String, Histogram>,
    /// By verdict and rule.
    verdicts: BTreeMap<(&'static str, String), u64>,
    /// By what a person chose.
    answers: BTreeMap<&'static str, u64>,
    dollars: f64,
}

/// How many waits were how long.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Histogram {
    /// For each of [`EDGES`], those that were not longer.
    pub within: [u64; EDGES.len()],
    pub count: u64,
    pub sum: f64,
}

impl Histogram {
    fn add(&mut self, seconds: f64) {
        for (within, edge) in self.within.iter_mut().zip(EDGES) {
            *within += u64::from(seconds <= edge);
        }
        self.count += 1;
        self.sum += seconds;
    }

    pub fn plus(&mut self, other: &Histogram) {
        for (within, more) in self.within.iter_mut().zip(other.within) {
            *within += more;
        }
        self.count += other.count;
        self.sum += other.sum;
    }
}

impl Tally {
    pub fn take(&mut self, event: &Event) {
        let Some(slot) = &event.slot else { return };
        if matches!(event.what, EventKind::Closed { .. }) {
            self.slots.remove(slot);
            return;
        }
        if self.slots.len() >= MOST_SLOTS && !self.slots.contains_key(slot) {
            return;
        }
        self.slots.entry(slot.clone()).or_default().take(event);
    }

    pub fn of(&self, slot: &str) -> Option<&SlotTally> {
        self.slots.get(slot)
    }
}

impl SlotTally {
    fn take(&mut self, event: &Event) {
        if let EventKind::Cost { dollars, .. } = &event.what {
            self.dollars += dollars.max(0.0);
        }
        for news in self.follower.take(event) {
            match news {
                SlotChange::Span(span) => {
                    self.seconds[span.activity as usize] += in_seconds(span.length());
                }
                SlotChange::Wait(wait) => self.waited(&wait),
                SlotChange::Decided { decision, rule, .. } => self.decided(decision, rule.as_ref()),
                SlotChange::Trouble { .. } | SlotChange::DownSince(_) => {}
            }
        }
    }

    fn waited(&mut self, wait: &Wait) {
        let tool = wait.tool.as_deref().unwrap_or("none");
        let tool = bounded(tool, |name| self.waits.contains_key(name), self.waits.len());
        let waits = self.waits.entry(tool).or_default();
        waits.add(in_seconds(wait.length()));
        if let Some(answer) = wait.answer {
            *self.answers.entry(answer.word()).or_default() += 1;
        }
    }

    fn decided(&mut self, decision: Decision, rule: Option<&RuleRef>) {
        let word = decision.word();
        // It leaves the machine.
        let rule = rule.map_or_else(|| "none".to_owned(), |rule| secrets::mask(&rule.text));
        let is_known = |name: &str| self.verdicts.contains_key(&(word, name.to_owned()));
        let rule = bounded(&rule, is_known, self.verdicts.len());
        *self.verdicts.entry((word, rule)).or_default() += 1;
    }

    /// Seconds in this activity until now.
    pub fn seconds_of(&self, activity: Activity, now: DateTime<Utc>) -> f64 {
        let current = self.follower.activity().filter(|(it, _)| *it == activity);
        let current = current.map_or(0.0, |(_, since)| in_seconds(now - since).max(0.0));
        self.seconds[activity as usize] + current
    }

    pub fn waits_since(&self) -> Option<DateTime<Utc>> {
        self.follower.waits_since()
    }

    pub fn waits(&self) -> &BTreeMap<String, Histogram> {
        &self.waits
    }

    pub fn verdicts(&self) -> &BTreeMap<(&'static str, String), u64> {
        &self.verdicts
    }

    pub fn answers(&self) -> &BTreeMap<&'static str, u64> {
        &self.answers
    }

    pub fn dollars(&self) -> f64 {
        self.dollars
    }
}

/// The name, or [`OTHER`] if there are too many.
fn bounded(name: &str, is_known: impl Fn(&str) -> bool, count: usize) -> String {
    let name = head(name, MOST_BYTES);
    match count < MOST_NAMES || is_known(name) {
        true => name.to_owned(),
        false => OTHER.to_owned(),
    }
}
