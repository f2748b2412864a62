use super::unified_exec::owner_for;
use super::*;

request! {
    /// Lists sessions in the format of the `unified_exec` tools.
    ListPtySessions = "list_pty_sessions", SessionsParams => ListPtyAnswer;
    access: Granted("unified_exec", OwnSessions);
    scope: Scope::View;
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListPtyAnswer {
    pub success: bool,
    pub sessions: Vec<SessionInfo>,
}

async fn answer(call: Call<'_>, params: SessionsParams) -> Result<ListPtyAnswer, RpcError> {
    let owner = owner_for(call.peer, params.owner)?;
    let params = SessionsParams { owner };
    Ok(ListPtyAnswer {
        success: true,
        sessions: sessions::answer(call, params).await?,
    })
}
