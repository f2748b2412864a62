//! One task at one slot: gives it, waits for its end, takes it back; and after the daemon was away, finds out what
//! became of it.

use super::queue::Outcome;
use crate::control::protocol::{RpcError, TaskStatus, Trace, Turn};
use crate::reading::State;
use crate::slot::machine::{Input, Message, Reply};
use crate::slot::{Command, SlotHandle};
use crate::{keys, secrets};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A slot that has been idle for this long has written down what it did.
const SETTLED: Duration = Duration::from_secs(2);

/// Gives the task to the slot and waits for its end. `back` takes it back.
pub async fn give(task: Arc<TaskStatus>, slot: SlotHandle, back: CancellationToken) -> Outcome {
    let text = match keys::message(&task.text, keys::Meaning::default()) {
        Ok(text) => text,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let send = |token| {
        Input::Send(Message {
            token: Some(token),
            text,
            slash: false,
            wait: true,
            task: Some(task.id.clone()),
        })
    };
    let reply = slot.ask_until(back.cancelled(), send).await;
    match reply {
        Ok(Reply::Answered { text, .. }) => Outcome::Answered {
            text,
            session_id: slot.status().session_id,
        },
        Ok(_) => Outcome::Failed("the slot gave no answer".to_owned()),
        Err(error) if back.is_cancelled() => taken_back(&task.id, &slot, &error).await,
        Err(error) => not_answered(error),
    }
}

fn not_answered(error: RpcError) -> Outcome {
    match error.trace {
        Some(Trace::Untouched) => Outcome::Untouched(error.message),
        Some(Trace::CutOff) => Outcome::CutOff(error.message),
        None => Outcome::Failed(error.message),
    }
}

/// What was sent already is interrupted, as long as it is this task that the slot is at.
async fn taken_back(id: &str, slot: &SlotHandle, error: &RpcError) -> Outcome {
    if error.trace == Some(Trace::Untouched) {
        return Outcome::Cancelled("cancelled before it was sent".to_owned());
    }
    let said = match slot.status().task_id.as_deref() == Some(id) {
        true => slot.ask(Input::Interrupt).await.err(),
        false => None,
    };
    Outcome::Cancelled(match said {
        None => "cancelled, and its turn interrupted".to_owned(),
        Some(error) => format!("cancelled; its turn goes on: {}", error.message),
    })
}

/// The daemon was away while a slot had this task. What became of it is in the slot's conversation, once the slot
/// has come to rest; a task of which nothing is found there was not taken.
pub async fn look_for(task: Arc<TaskStatus>, slot: SlotHandle, back: CancellationToken) -> Outcome {
    slot.has_looked().await;
    tokio::select! {
        () = at_rest(&slot) => {}
        () = back.cancelled() => {
            return Outcome::Cancelled("cancelled; its turn was left as it is".to_owned());
        }
    }
    let history = slot.request(|reply| Command::History { last: None, reply });
    match history.await {
        Ok(turns) => found_in(&turns, &task),
        Err(error) => Outcome::Failed(format!("the daemon was away: {}", error.message)),
    }
}

async fn at_rest(slot: &SlotHandle) {
    let mut status = slot.watch_status();
    let rests = |state: State| matches!(state, State::Idle | State::Exited | State::Error);
    loop {
        if status.wait_for(|status| rests(status.state)).await.is_err() {
            return;
        }
        let moved = status.wait_for(|status| !rests(status.state));
        if tokio::time::timeout(SETTLED, moved).await.is_err() {
            return;
        }
    }
}

/// Looks for the message in the conversation, and for what was answered to it.
fn found_in(turns: &[Turn], task: &TaskStatus) -> Outcome {
    let sent = keys::message(&task.text, keys::Meaning::default()).unwrap_or_default();
    let sent = secrets::mask(&sent);
    let is_it = |turn: &Turn| {
        let in_time = turn
            .time
            .zip(task.started_at)
            .is_none_or(|(at, given)| at >= given);
        turn.role == "user" && in_time && turn.text.trim() == sent.trim()
    };
    let Some(at) = turns.iter().position(is_it) else {
        return Outcome::CutOff(
            "the daemon ended while it was being given out; the slot's conversation has nothing of it"
                .to_owned(),
        );
    };
    let turn = turns[at + 1..].split(|turn| turn.role == "user").next();
    let after_tools = turn
        .unwrap_or_default()
        .rsplit(|turn| turn.role.starts_with("tool_"))
        .next();
    let said: Vec<&str> = after_tools
        .unwrap_or_default()
        .iter()
        .map(|turn| turn.text.as_str())
        .collect();
    if said.is_empty() {
        let why = "the daemon ended while it ran, and its turn has ended with no answer";
        return Outcome::Failed(why.to_owned());
    }
    Outcome::Answered {
        text: Some(said.join("\n\n")),
        session_id: turns[at].session_id.clone(),
    }
}
