use super::close::end_sessions;
use super::*;

request! {
    /// Ends a command and removes its session.
    ClosePtySession = "close_pty_session", ClosePtyParams => ClosePtyAnswer;
    access: Granted("unified_exec", OwnSessions);
    scope: Scope::Keys;
    names: Accepts::only_sessions("missiond stop ID");
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClosePtyParams {
    /// The id that `unified_exec` answered with.
    pub session_id: String,
    /// Send KILL at once.
    #[serde(default)]
    pub force: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClosePtyAnswer {
    pub success: bool,
    pub session_id: String,
}

async fn answer(call: Call<'_>, params: ClosePtyParams) -> Result<ClosePtyAnswer, RpcError> {
    let session_id = call.slot(&params.session_id)?.status().slot;
    end_sessions(&call, vec![session_id.clone()], params.force).await?;
    Ok(ClosePtyAnswer {
        success: true,
        session_id,
    })
}
