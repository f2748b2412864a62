use super::sessions::{owner_prefix, sessions_of};
use super::*;
use tokio::sync::oneshot;

request! {
    /// Ends sessions and removes them.
    Close = "close", CloseParams => CloseAnswer;
    access: PersonOnly;
    scope: Scope::Keys;
    names: Accepts::only_sessions("missiond stop ID");
}

/// One session by its id, or all sessions of an owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CloseParams {
    /// The id of the session; this or `owner`.
    #[serde(default)]
    pub slot: Option<String>,
    /// All sessions of this owner, and of owners whose name continues it after a colon.
    #[serde(default)]
    pub owner: Option<String>,
    /// Send KILL at once.
    #[serde(default)]
    pub force: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CloseAnswer {
    pub closed: Vec<String>,
}

async fn answer(call: Call<'_>, params: CloseParams) -> Result<CloseAnswer, RpcError> {
    let meant = match (params.slot, params.owner) {
        (Some(id), None) => vec![call.slot(&id)?],
        (None, Some(owner)) => sessions_of(&call, Some(&owner_prefix(owner)?)),
        _ => {
            return Err(RpcError::new(Fault::Usage, "either an id or an owner")
                .next("missiond session close ID, or missiond session close --owner OWNER"));
        }
    };
    let ids: Vec<String> = meant.iter().map(|slot| slot.status().slot).collect();
    end_sessions(&call, ids.clone(), params.force).await?;
    Ok(CloseAnswer { closed: ids })
}

pub(super) async fn end_sessions(
    dispatcher: &Dispatcher,
    ids: Vec<String>,
    force: bool,
) -> Result<(), RpcError> {
    let (done, over): (Vec<_>, Vec<_>) = ids.iter().map(|_| oneshot::channel()).unzip();
    let why = "by request".to_owned();
    let order = Order::Close {
        ids,
        why,
        force,
        done,
    };
    dispatcher.daemon().give(order).await?;
    futures_util::future::join_all(over).await;
    Ok(())
}
