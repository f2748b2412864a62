//! Tasks: into the queue, and what became of them.

use super::Dispatcher;
use super::acting::not_sendable;
use crate::control::dispatch::wait::within;
use crate::core::claude::keys;
use crate::core::model::*;
use crate::core::queue::{MAX_RETRIES, NewTask};
use crate::core::settings::is_name;
use crate::core::text::excerpt;
use crate::os::peer::{Origin, Peer};
use serde_json::Value;
use uuid::Uuid;

/// What a list shows of a text; the whole would not fit into one answer.
const SHOWN: usize = 400;
/// An Esc ends a turn within ten seconds, or never.
const CANCEL_LIMIT_MS: u64 = 20_000;

impl Dispatcher {
    pub(in crate::control) async fn submit(
        &self,
        params: SubmitParams,
        peer: &Peer,
    ) -> Result<TaskStatus, RpcError> {
        keys::message(&params.text, keys::Meaning::default())
            .map_err(|error| not_sendable(&error))?;
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
            by: submitter(peer),
        };
        let task = self.daemon.tasks.submit(new).await?;
        Ok((*task).clone())
    }

    pub(in crate::control) async fn task(
        &self,
        params: TaskParams,
    ) -> Result<TaskStatus, RpcError> {
        let tasks = &self.daemon.tasks;
        if !params.wait {
            return Ok((*tasks.get(&params.id)?).clone());
        }
        let settled =
            |task: &TaskStatus| task.state.is_final() || task.state == TaskState::NeedsPerson;
        let waited = within(params.timeout_ms, tasks.wait(&params.id, settled)).await;
        match waited {
            Ok(task) => Ok((*task).clone()),
            Err(error) if error.fault == Fault::TimedOut => {
                let state = tasks.get(&params.id)?.state.name();
                let text = format!("{}: task {} is {state}", error.message, params.id);
                Err(RpcError::new(Fault::TimedOut, text)
                    .next(format!("missiond task {} --wait", params.id)))
            }
            Err(error) => Err(error),
        }
    }

    /// A slot sees its own tasks.
    pub(in crate::control) async fn tasks(
        &self,
        params: TasksParams,
        peer: &Peer,
    ) -> Result<Vec<TaskStatus>, RpcError> {
        let own = match peer.origin {
            Origin::Outside => None,
            _ => Some(submitter(peer)),
        };
        let all = self.daemon.tasks.all();
        let wanted = all.iter().filter(|task| {
            let state = params.states.is_empty() || params.states.contains(&task.state);
            state && own.as_ref().is_none_or(|own| *own == task.by)
        });
        Ok(wanted.map(|task| in_short(task)).collect())
    }

    pub(in crate::control) async fn cancel(&self, one: OneTask) -> Result<TaskStatus, RpcError> {
        let tasks = &self.daemon.tasks;
        tasks.cancel(&one.id).await?;
        let ended = tasks.wait(&one.id, |task| task.state.is_final());
        let task = within(Some(CANCEL_LIMIT_MS), ended).await?;
        Ok((*task).clone())
    }

    /// Whoever may submit may look at and cancel what they have submitted, and nothing else.
    pub(super) fn is_own_task(&self, own: &str, params: &Value) -> bool {
        let Some(id) = params.get("id") else {
            return true;
        };
        let task = id.as_str().map(|id| self.daemon.tasks.get(id));
        task.is_some_and(|task| task.is_ok_and(|task| task.by == inside(own)))
    }
}

fn submitter(peer: &Peer) -> String {
    match &peer.origin {
        Origin::Outside => "user".to_owned(),
        Origin::Slot(slot) => inside(slot),
        _ => "unknown".to_owned(),
    }
}

fn inside(slot: &str) -> String {
    format!("slot:{slot}")
}

fn in_short(task: &TaskStatus) -> TaskStatus {
    let mut short = task.clone();
    short.truncated = cut(&mut short.text);
    if let Some(answer) = &mut short.answer {
        short.truncated |= cut(answer);
    }
    short
}

fn cut(text: &mut String) -> bool {
    let too_long = text.len() > SHOWN;
    if too_long {
        text.truncate(excerpt::head(text, SHOWN).len());
        text.push('…');
    }
    too_long
}
