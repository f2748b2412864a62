use super::info::info_of;
use super::*;

request! {
    /// Lists sessions, including ended ones that are kept.
    Sessions = "sessions", SessionsParams => Vec<SessionInfo>;
    access: PersonOnly;
    scope: Scope::View;
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SessionsParams {
    /// Only sessions of this owner, and of owners whose name continues it after a colon.
    #[serde(default)]
    pub owner: Option<String>,
}

pub(super) async fn answer(
    call: Call<'_>,
    params: SessionsParams,
) -> Result<Vec<SessionInfo>, RpcError> {
    let prefix = params.owner.map(owner_prefix).transpose()?;
    let _turn = call.list_turn().await;
    let mut infos = Vec::new();
    for slot in sessions_of(&call, prefix.as_deref()) {
        // A session that is gone meanwhile is left out.
        infos.extend(info_of(&call, &slot).await.ok());
    }
    infos.sort_by_key(|info| info.created_at);
    Ok(infos)
}

pub(super) fn sessions_of(dispatcher: &Dispatcher, prefix: Option<&str>) -> Vec<SlotHandle> {
    let slots = dispatcher.daemon().slots();
    let meant = slots.values().filter(|slot| {
        let status = slot.status();
        let owned = prefix.is_none_or(|prefix| is_of_owner(&status.owner, prefix));
        status.session.is_some() && owned
    });
    meant.cloned().collect()
}

pub(super) fn owner_prefix(owner: String) -> Result<String, RpcError> {
    if owner.trim_matches(':').is_empty() {
        return Err(RpcError::new(Fault::Usage, "the owner is empty"));
    }
    Ok(owner)
}
