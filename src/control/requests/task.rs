use super::*;

request! {
    /// Shows a task.
    Task = "task", TaskParams => TaskStatus;
    access: Granted("submit", OwnTasks);
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    params: TaskParams,
    _: Caller<'_>,
) -> Result<TaskStatus, RpcError> {
    dispatcher.task(params).await
}
