use super::*;

request! {
    /// Types a line into a session, with Enter behind it.
    Type = "type", TypeParams => TypeAnswer;
    access: PersonOnly;
    names: Accepts::Sessions {
        claude: "missiond send ID …; a dialog: missiond confirm ID …",
        shell: "missiond write ID '…\\r'",
    };
}

async fn answer(
    dispatcher: &Dispatcher,
    params: TypeParams,
    caller: Caller<'_>,
) -> Result<TypeAnswer, RpcError> {
    dispatcher.type_text(params, caller.peer.person()).await
}
