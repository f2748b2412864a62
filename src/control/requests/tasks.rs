use super::*;

request! {
    /// Shows the tasks.
    Tasks = "tasks", TasksParams => Vec<TaskStatus>;
    access: Granted("submit", OwnTasks);
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    params: TasksParams,
    caller: Caller<'_>,
) -> Result<Vec<TaskStatus>, RpcError> {
    dispatcher.tasks(params, caller.peer).await
}
