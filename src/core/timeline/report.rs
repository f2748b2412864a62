//! All slots together: how long people were waited for, and why.

use super::{SlotHistory, Wait, WaitReason, Window, seconds};
use crate::core::policy::Decision;
use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimelineReport {
    #[serde(flatten)]
    pub window: Window,
    pub slots: Vec<SlotHistory>,
    pub waiting: WaitingTime,
}

/// How long people were waited for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WaitingTime {
    pub asks: usize,
    /// Asks that still wait.
    pub open: usize,
    /// All of them together, in seconds, like all lengths here.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub total: TimeDelta,
    #[serde(serialize_with = "seconds")]
    pub p50: TimeDelta,
    #[serde(serialize_with = "seconds")]
    pub p95: TimeDelta,
    pub longest: Option<LongestWait>,
    /// The costliest first.
    pub by_reason: Vec<ReasonCost>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LongestWait {
    pub slot: String,
    pub begin: DateTime<Utc>,
    pub about: String,
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub length: TimeDelta,
}

/// What one reason to ask has cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReasonCost {
    #[serde(flatten)]
    pub reason: WaitReason,
    pub asks: usize,
    pub allowed: usize,
    pub denied: usize,
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub total: TimeDelta,
}

impl TimelineReport {
    pub fn of(slots: Vec<SlotHistory>, window: Window) -> TimelineReport {
        let waiting = WaitingTime::of(&slots);
        TimelineReport {
            window,
            slots,
            waiting,
        }
    }
}

impl WaitingTime {
    fn of<'a>(slots: &'a [SlotHistory]) -> WaitingTime {
        let waits = |slot: &'a SlotHistory| slot.waits.iter().map(move |wait| (slot, wait));
        let all = || slots.iter().flat_map(waits);
        let mut lengths: Vec<TimeDelta> = all().map(|(_, wait)| wait.length()).collect();
        lengths.sort_unstable();
        let longest = all().max_by_key(|(_, wait)| wait.length());
        WaitingTime {
            asks: lengths.len(),
            open: all().filter(|(_, wait)| wait.open).count(),
            total: lengths.iter().sum(),
            p50: percentile(&lengths, 50),
            p95: percentile(&lengths, 95),
            longest: longest.map(|(slot, wait)| LongestWait {
                slot: slot.slot.clone(),
                begin: wait.begin,
                about: wait.about.clone(),
                length: wait.length(),
            }),
            by_reason: by_reason(all().map(|(_, wait)| wait)),
        }
    }
}

fn by_reason<'a>(waits: impl Iterator<Item = &'a Wait>) -> Vec<ReasonCost> {
    let mut costs: Vec<ReasonCost> = Vec::new();
    for wait in waits {
        let place = costs
            .iter()
            .position(|cost| is_same(&cost.reason, &wait.reason));
        let place = place.unwrap_or_else(|| {
            costs.push(ReasonCost {
                reason: wait.reason.clone(),
                asks: 0,
                allowed: 0,
                denied: 0,
                total: TimeDelta::zero(),
            });
            costs.len() - 1
        });
        let cost = &mut costs[place];
        cost.asks += 1;
        cost.allowed += usize::from(wait.answer == Some(Decision::Allow));
        cost.denied += usize::from(wait.answer == Some(Decision::Deny));
        cost.total += wait.length();
    }
    costs.sort_by_key(|cost| std::cmp::Reverse(cost.total));
    costs
}

/// The words of a rule may name the part of a command that it matched.
fn is_same(one: &WaitReason, other: &WaitReason) -> bool {
    match (&one.rule, &other.rule) {
        (Some(one), Some(other)) => one == other,
        (None, None) => one.why == other.why,
        _ => false,
    }
}

/// The shortest length that so many percent of them do not exceed.
fn percentile(sorted: &[TimeDelta], percent: usize) -> TimeDelta {
    let rank = (sorted.len() * percent).div_ceil(100);
    let found = sorted.get(rank.saturating_sub(1));
    found.copied().unwrap_or_default()
}
