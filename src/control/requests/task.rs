use super::wait::within;
use super::*;

request! {
    /// Shows a task.
    Task = "task", TaskParams => TaskStatus;
    access: Granted("submit", OwnTasks);
    scope: Scope::View;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskParams {
    /// The id of the task.
    pub id: String,
    /// Answer when the task has ended or needs a person, not at once.
    #[serde(default)]
    pub wait: bool,
    /// With `wait`: the wait fails after this many milliseconds, and the task goes on.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

async fn answer(call: Call<'_>, params: TaskParams) -> Result<TaskStatus, RpcError> {
    let tasks = &call.daemon().tasks;
    if !params.wait {
        return Ok((*tasks.get(&params.id)?).clone());
    }
    let settled = |task: &TaskStatus| task.state.is_final() || task.state == TaskState::NeedsPerson;
    let waited = within(params.timeout_ms, tasks.wait(&params.id, settled)).await;
    match waited {
        Ok(task) => Ok((*task).clone()),
        Err(error) if error.fault == Fault::TimedOut => {
            let state = tasks.get(&params.id)?.state.name();
            let text = format!("{}: task {} is {state}", error.message, params.id);
            Err(RpcError::new(Fault::TimedOut, text)
                .next(format!("missiond task {} --wait", params.id)))
        }
        Err(error) => Err(error),
    }
}
