use super::*;

request! {
    /// Answers with a part of what a program has written; with `wait_ms` it waits for more.
    Output = "output", OutputParams => OutputAnswer;
    access: PersonOnly;
    names: Accepts::Sessions {
        claude: "missiond screen ID, missiond history ID, missiond logs ID -f",
        shell: "missiond screen ID, missiond search ID REGEX",
    };
}

async fn answer(
    dispatcher: &Dispatcher,
    params: OutputParams,
    _: Caller<'_>,
) -> Result<OutputAnswer, RpcError> {
    dispatcher.output(params).await
}
