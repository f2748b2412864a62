//! Tasks: prompts that are given to a slot when one is free.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It waits for a slot.
    Queued,
    /// A slot has it.
    Running,
    /// Its slot asks something that no rule answers; it goes on when a person has.
    NeedsPerson,
    Done,
    Failed,
    Cancelled,
}

impl TaskState {
    pub fn name(self) -> &'static str {
        match self {
            TaskState::Queued => "queued",
            TaskState::Running => "running",
            TaskState::NeedsPerson => "needs_person",
            TaskState::Done => "done",
            TaskState::Failed => "failed",
            TaskState::Cancelled => "cancelled",
        }
    }

    /// Nothing more happens to it.
    pub fn is_final(self) -> bool {
        matches!(
            self,
            TaskState::Done | TaskState::Failed | TaskState::Cancelled
        )
    }

    /// A slot has it, or may have it.
    pub fn is_under_way(self) -> bool {
        matches!(self, TaskState::Running | TaskState::NeedsPerson)
    }
}

/// One task, as it is told to clients and kept on the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskStatus {
    pub id: String,
    /// Its place in the order of submission.
    pub seq: u64,
    /// A slot's name, or `@role` for the first slot of a role that is free.
    pub to: String,
    pub text: String,
    pub state: TaskState,
    /// Who submitted it: `user`, or `slot:NAME` for a program inside a slot.
    pub by: String,
    /// The slot that has it, or had it last.
    pub slot: Option<String>,
    /// The conversation in which it was answered.
    pub session_id: Option<String>,
    pub answer: Option<String>,
    /// Why it failed, was cancelled, or waits.
    pub error: Option<String>,
    pub submitted_at: DateTime<Utc>,
    /// When it was last given to a slot.
    pub started_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
    /// From being given to a slot to its end.
    pub duration_ms: Option<u64>,
    /// How often it may be given out again when its slot ends under it.
    pub retries: u32,
    /// How often it was given to a slot.
    pub attempts: u32,
    /// It fails, and its turn is interrupted, so many milliseconds after a slot has it.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// `text` and `answer` are shown in part: `task` with the id has the whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}
