use super::*;

request! {
    /// Writes to a command and answers with what has come since the last look.
    WriteStdin = "write_stdin", StdinParams => ToolAnswer;
    access: Granted("unified_exec", OwnSessions);
    names: Accepts::Sessions {
        claude: "missiond send ID …; a dialog: missiond confirm ID …",
        shell: "missiond write ID '…\\r'",
    };
}

async fn answer(
    dispatcher: &Dispatcher,
    params: StdinParams,
    caller: Caller<'_>,
) -> Result<ToolAnswer, RpcError> {
    dispatcher.stdin(params, caller.peer).await
}
