use super::wait::within;
use super::*;

/// The time limit of `cancel`. An Esc ends a turn within ten seconds, or never.
const CANCEL_LIMIT_MS: u64 = 20_000;

request! {
    /// Cancels a task, and answers when it has ended.
    Cancel = "cancel", OneTask => TaskStatus;
    access: Granted("submit", OwnTasks);
    scope: Scope::Steer;
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OneTask {
    /// The id of the task.
    pub id: String,
}

async fn answer(call: Call<'_>, one: OneTask) -> Result<TaskStatus, RpcError> {
    let tasks = &call.daemon().tasks;
    tasks.cancel(&one.id).await?;
    let ended = tasks.wait(&one.id, |task| task.state.is_final());
    let task = within(Some(CANCEL_LIMIT_MS), ended).await?;
    Ok((*task).clone())
}
