use super::*;

request! {
    /// Puts a task into the queue; it is on the disk before this answers.
    Submit = "submit", SubmitParams => TaskStatus;
    access: Granted("submit", Slots);
    names: Accepts::Slots("missiond type ID …");
}

async fn answer(
    dispatcher: &Dispatcher,
    params: SubmitParams,
    caller: Caller<'_>,
) -> Result<TaskStatus, RpcError> {
    dispatcher.submit(params, caller.peer).await
}
