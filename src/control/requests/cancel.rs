use super::*;

request! {
    /// Cancels a task, and answers when it has ended.
    Cancel = "cancel", OneTask => TaskStatus;
    access: Granted("submit", OwnTasks);
    names: Either;
}

async fn answer(
    dispatcher: &Dispatcher,
    params: OneTask,
    _: Caller<'_>,
) -> Result<TaskStatus, RpcError> {
    dispatcher.cancel(params).await
}
