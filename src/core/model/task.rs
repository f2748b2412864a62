//! Tasks: prompts that a slot gets when it is free.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskState {
    /// It waits for a slot.
    Queued,
    /// A slot has it.
    Running,
    /// Its slot asks something that no rule answers; it continues when a person has answered.
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

    /// Whether the state is final.
    pub fn is_final(self) -> bool {
        matches!(
            self,
            TaskState::Done | TaskState::Failed | TaskState::Cancelled
        )
    }

    /// Whether a slot has it, or may have it.
    pub fn is_under_way(self) -> bool {
        matches!(self, TaskState::Running | TaskState::NeedsPerson)
    }
}

/// A task, as clients see it and as it is kept on the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskStatus {
    pub id: String,
    /// Its position in the order of submission.
    pub seq: u64,
    /// A slot's name, or `@role` for the first free slot of a role.
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
    /// When a slot last got it.
    pub started_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
    /// From the start on a slot to its end.
    pub duration_ms: Option<u64>,
    /// How often it may be tried again when its slot ends during the task.
    pub retries: u32,
    /// How often a slot got it.
    pub attempts: u32,
    /// It fails, and its turn is interrupted, this many milliseconds after a slot gets it.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// `text` and `answer` are shortened: `task` with the id has the whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}
