use super::send::not_sendable;
use super::*;
use crate::core::claude::keys;
use crate::core::queue::{MAX_RETRIES, NewTask};
use crate::core::settings::is_name;
use uuid::Uuid;

request! {
    /// Puts a task into the queue; the task is on the disk before the answer.
    Submit = "submit", SubmitParams => TaskStatus;
    access: Granted("submit", Slots);
    scope: Scope::Steer;
    names: Accepts::Slots("missiond session type ID …");
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SubmitParams {
    /// A slot's name, or `@role`.
    pub slot: String,
    /// The prompt.
    pub text: String,
    /// How often the task may be given out again if its slot ends while it runs.
    #[serde(default)]
    pub retries: u32,
    /// An id chosen by the caller. A task that is submitted again with the same id is queued once.
    #[serde(default)]
    pub id: Option<String>,
    /// The task fails, and its turn is interrupted, this many milliseconds after a slot has taken it.
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
        let text = "the timeout must be more than 0 ms";
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
    /// Tells whether a request is about a task of this slot. A slot may see and cancel only the tasks that it has
    /// submitted.
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
