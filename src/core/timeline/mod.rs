//! Looking back: what a slot did when, and how long people were waited for, from its events. Pure.

mod exposition;
mod follower;
mod history;
mod report;
mod spending;
mod tally;
#[cfg(test)]
mod tests;

pub use exposition::{FAMILIES, exposition};
pub use follower::{Follower, SlotChange};
pub use history::{SlotHistory, Window, needed};
pub use report::{ReasonCost, TimelineReport, WaitingTime};
pub use spending::{By, Spending, Spent, in_all, summed_up};
pub use tally::{SlotTally, Tally};

use crate::core::claude::reading::{DialogKind, State};
use crate::core::policy::{Decision, RuleRef};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Serialize, Serializer};

/// What a slot was doing, as far as a person cares who looks back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    Works,
    /// A dialog waits for a person.
    Waits,
    Idle,
    Down,
    /// The log does not say.
    Unknown,
}

impl Activity {
    pub const ALL: [Activity; 5] = [
        Activity::Works,
        Activity::Waits,
        Activity::Idle,
        Activity::Down,
        Activity::Unknown,
    ];

    pub fn of(state: State) -> Activity {
        match state {
            State::Starting | State::Thinking | State::Responding | State::ToolRunning => {
                Activity::Works
            }
            State::Confirming => Activity::Waits,
            State::Idle => Activity::Idle,
            State::Error | State::Exited => Activity::Down,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Activity::Works => "works",
            Activity::Waits => "waits",
            Activity::Idle => "idle",
            Activity::Down => "down",
            Activity::Unknown => "unknown",
        }
    }
}

/// A period in which a slot did one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    pub activity: Activity,
    pub begin: DateTime<Utc>,
    pub end: DateTime<Utc>,
}

impl Span {
    pub fn length(&self) -> TimeDelta {
        self.end - self.begin
    }
}

/// A period in which a dialog waited for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wait {
    pub begin: DateTime<Utc>,
    pub end: DateTime<Utc>,
    /// It was not over at the end of the window.
    pub open: bool,
    pub tool: Option<String>,
    /// What it was about, in one line.
    pub about: String,
    #[serde(flatten)]
    pub reason: WaitReason,
    /// The person's answer: `allow` or `deny`; `null` if the dialog went away without one.
    pub answer: Option<Decision>,
}

impl Wait {
    pub fn length(&self) -> TimeDelta {
        self.end - self.begin
    }
}

/// Why a person was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitReason {
    /// The rule that asks, if one does.
    pub rule: Option<RuleRef>,
    /// The reason in words.
    pub why: String,
}

impl WaitReason {
    fn words(why: &str) -> WaitReason {
        WaitReason {
            rule: None,
            why: why.to_owned(),
        }
    }

    /// The reason of a dialog about which no verdict is known.
    fn of_kind(kind: DialogKind) -> WaitReason {
        WaitReason::words(match kind {
            DialogKind::Permission => "no verdict is known",
            DialogKind::Question => "a question",
            DialogKind::Plan => "a plan",
            DialogKind::Trust => "trust in a folder",
            DialogKind::ApiKey => "an API key",
            DialogKind::Other => "a menu or another dialog",
        })
    }
}

/// Seconds with three decimals.
fn seconds<S: Serializer>(length: &TimeDelta, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(in_seconds(*length))
}

pub fn in_seconds(length: TimeDelta) -> f64 {
    length.num_milliseconds() as f64 / 1000.0
}
