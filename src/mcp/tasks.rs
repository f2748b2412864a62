//! Tools for tasks.

use super::McpServer;
use super::answer::{self, Told};
use super::slots::PATIENCE_MS;
use crate::control::requests::{
    Cancel, OneTask, Submit, SubmitParams, Task, TaskParams, Tasks, TasksParams,
};
use crate::core::model::{TaskState, TaskStatus};
use crate::core::text::excerpt;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::{schemars, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// How much of a task's text is shown with its state.
const MAX_TEXT: usize = 300;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewTaskParams {
    /// The name of a slot, or @role for the first free slot of that role.
    to: String,
    /// The prompt.
    text: String,
    /// How often it may be tried again when its slot ends during the task; default 0.
    #[serde(default)]
    retries: u32,
    /// Your own id for it: a task with the same id is submitted only once.
    #[serde(default)]
    id: Option<String>,
    /// It fails, and its turn is interrupted, this many milliseconds after a slot gets it; default: no limit.
    #[serde(default)]
    timeout_ms: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskOf {
    /// The id that `submit` returned.
    id: String,
    /// Wait until it has ended or needs a person, instead of returning its state at once.
    #[serde(default)]
    wait: bool,
    /// With `wait`: milliseconds to wait, default 300,000; the task continues after that.
    #[serde(default)]
    timeout_ms: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskList {
    /// Also show ended tasks.
    #[serde(default)]
    all: bool,
}

#[tool_router(router = tasks_router, vis = "pub(super)")]
impl McpServer {
    /// Submits a prompt to the queue for a slot or a @role, and returns its id at once. `task` with the id returns the
    /// answer.
    #[tool(annotations(
        title = "Submit a task",
        read_only_hint = false,
        destructive_hint = true,
        idempotent_hint = false
    ))]
    async fn submit(
        &self,
        Parameters(params): Parameters<NewTaskParams>,
        cancelled: CancellationToken,
    ) -> Told {
        let request = SubmitParams {
            slot: params.to,
            text: params.text,
            retries: params.retries,
            id: params.id,
            timeout_ms: params.timeout_ms,
        };
        self.tell::<Submit>(request, cancelled, |task| answer::json(&in_short(&task)))
            .await
    }

    /// Shows a task: its state (queued, running, needs_person, done, failed, cancelled), its slot, and its answer or
    /// why it failed.
    #[tool(annotations(title = "A task and its answer", read_only_hint = true))]
    async fn task(
        &self,
        Parameters(params): Parameters<TaskOf>,
        cancelled: CancellationToken,
    ) -> Told {
        let request = TaskParams {
            id: params.id,
            wait: params.wait,
            timeout_ms: params
                .wait
                .then(|| params.timeout_ms.unwrap_or(PATIENCE_MS)),
        };
        self.tell::<Task>(request, cancelled, |task| {
            let head = in_short(&task).to_string();
            match &task.answer {
                Some(words) => answer::text(&format!("{head}\n\n{words}")),
                None => answer::text(&head),
            }
        })
        .await
    }

    /// Shows the waiting and running tasks, in the order of submission.
    #[tool(annotations(title = "Tasks", read_only_hint = true))]
    async fn tasks(
        &self,
        Parameters(params): Parameters<TaskList>,
        cancelled: CancellationToken,
    ) -> Told {
        let states = match params.all {
            true => Vec::new(),
            false => vec![
                TaskState::Queued,
                TaskState::Running,
                TaskState::NeedsPerson,
            ],
        };
        self.tell::<Tasks>(TasksParams { states }, cancelled, |tasks| {
            answer::json(&tasks.iter().map(in_short).collect::<Vec<_>>())
        })
        .await
    }

    /// Cancels a task: a waiting one is removed from the queue, a running one is interrupted.
    #[tool(annotations(
        title = "Cancel a task",
        read_only_hint = false,
        destructive_hint = true,
        idempotent_hint = true
    ))]
    async fn cancel(
        &self,
        Parameters(one): Parameters<OneTask>,
        cancelled: CancellationToken,
    ) -> Told {
        self.tell::<Cancel>(one, cancelled, |task| answer::json(&in_short(&task)))
            .await
    }
}

/// The parts of a task that a model needs, except its answer.
fn in_short(task: &TaskStatus) -> Value {
    json!({
        "id": task.id,
        "state": task.state,
        "to": task.to,
        "slot": task.slot,
        "error": task.error,
        "duration_ms": task.duration_ms,
        "text": excerpt::ends(&task.text, MAX_TEXT),
    })
}
