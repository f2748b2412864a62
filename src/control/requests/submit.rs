use super::send::not_sendable;
use super::*;
use crate::core::claude::keys;
use crate::core::queue::{MAX_RETRIES, NewTask};
use crate::core::settings::is_name;
use uuid::Uuid;

request! {
    /// Puts a task into the queue; it is on the disk before this answers.
    Submit = "submit", SubmitParams => TaskStatus;
    access: Granted("submit", Slots);
    scope: Scope::Steer;
    names: Accepts::Slots("missiond type ID …");
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitParams {
    /// A slot's name, or `@role`.
    pub slot: String,
    /// The prompt.
    pub text: String,
    /// How often it may be given out again when its slot ends under it.
    #[serde(default)]
    pub retries: u32,
    /// A name of the caller's own: the same task under the same name is submitted once.
    #[serde(default)]
    pub id: Option<String>,
    /// It fails, and its turn is interrupted, so many milliseconds after a slot has it.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

async fn answer(call: Call<'_>, params: SubmitParams) -> Result<TaskStatus, RpcError> {
    keys::message(&params.text, keys::KeyMeaning::default())
        .map_err(|error| not_sendable(&error, call.peer, &params.slot))?;
    if params.retries > MAX_RETRIES {
        let text = format!(
            "{} retries are too many: at most {MAX_RETRIES}",
            params.retries
        );
        return Err(RpcError::new(Fault::Usage, text));
    }
    let id = match params.id {
        Some(id) if !is_name(&id) => {
            let text = format!("`{id}` can't be the name of a task");
            return Err(RpcError::new(Fault::Usage, text)
                .next("1 to 64 of a-z, 0-9, `_` and `-`, beginning with a letter or digit"));
        }
        Some(id) => id,
        None => Uuid::new_v4().simple().to_string()[..8].to_owned(),
    };
    if params.timeout_ms == Some(0) {
        let text = "the timeout must be more than nothing";
        return Err(RpcError::new(Fault::Usage, text));
    }
    let new = NewTask {
        id,
        timeout_ms: params.timeout_ms,
        to: params.slot,
        text: params.text,
        retries: params.retries,
        by: submitter(call.peer),
    };
    let task = call.daemon().tasks.submit(new).await?;
    Ok((*task).clone())
}

impl Dispatcher {
    /// Whoever may submit may look at and cancel what they have submitted, and nothing else.
    pub(in crate::control) fn is_own_task(&self, own: &str, params: &Value) -> bool {
        let Some(id) = params.get("id") else {
            return true;
        };
        let task = id.as_str().map(|id| self.daemon().tasks.get(id));
        task.is_some_and(|task| task.is_ok_and(|task| task.by == inside(own)))
    }
}

pub(super) fn submitter(peer: &Peer) -> String {
    match &peer.origin {
        PeerOrigin::Outside => "user".to_owned(),
        PeerOrigin::Slot(slot) => inside(slot),
        _ => "unknown".to_owned(),
    }
}

fn inside(slot: &str) -> String {
    format!("slot:{slot}")
}
