use super::*;

request! {
    /// Sends a signal to the program in the foreground of a session.
    Signal = "signal", SignalParams => Done;
    access: PersonOnly;
    names: Accepts::Sessions {
        claude: "missiond interrupt ID, or missiond stop ID",
        shell: "missiond keys ID ctrl+c, or missiond stop ID",
    };
}

async fn answer(
    dispatcher: &Dispatcher,
    params: SignalParams,
    _: Caller<'_>,
) -> Result<Done, RpcError> {
    dispatcher.signal(params).await
}
