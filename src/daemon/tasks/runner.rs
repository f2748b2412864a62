//! Runs one task at one slot: gives it to the slot, waits for its end, takes it back. After the daemon was away, finds
//! the result.

use crate::core::claude::reading::State;
use crate::core::claude::{keys, transcript};
use crate::core::machine::{Input, Interrupter, Interruption, Message, Reply, Token};
use crate::core::model::{RpcError, TaskStatus, Trace, Turn};
use crate::core::queue::Outcome;
use crate::core::text::secrets;
use crate::slot::{SlotCommand, SlotHandle};
use chrono::{DateTime, Utc};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A slot that has been idle for this long has written its transcript.
const SETTLED: Duration = Duration::from_secs(2);

/// Gives the task to the slot and waits for its end. `back` takes it back.
pub async fn give(task: Arc<TaskStatus>, slot: SlotHandle, back: CancellationToken) -> Outcome {
    let text = match keys::message(&task.text, keys::KeyMeaning::default()) {
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
            id: None,
            person: None,
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

/// Takes a task back. If it was sent already, its turn is interrupted, unless the slot is at another task.
async fn taken_back(id: &str, slot: &SlotHandle, error: &RpcError) -> Outcome {
    if error.trace == Some(Trace::Untouched) {
        return Outcome::Cancelled("cancelled before it was sent".to_owned());
    }
    let said = match slot.status().task_id.as_deref() == Some(id) {
        true => slot.ask(interrupt).await.err(),
        false => None,
    };
    Outcome::Cancelled(match said {
        None => "cancelled, and its turn interrupted".to_owned(),
        Some(error) => format!("cancelled; its turn goes on: {}", error.message),
    })
}

fn interrupt(token: Token) -> Input {
    let by = Interrupter::Task;
    Input::Interrupt(Interruption { token, by })
}

/// Finds the result of a task whose slot ran it while the daemon was away. The result is in the slot's conversation,
/// once the slot is at rest.
pub async fn look_for(task: Arc<TaskStatus>, slot: SlotHandle, back: CancellationToken) -> Outcome {
    slot.has_looked().await;
    tokio::select! {
        () = at_rest(&slot) => {}
        () = back.cancelled() => {
            return Outcome::Cancelled("cancelled; its turn was left as it is".to_owned());
        }
    }
    find(&task.text, task.started_at, &slot).await
}

/// Looks in the conversation of a slot at rest for a message that was given to it at `given`, and for its answer.
pub async fn find(text: &str, given: Option<DateTime<Utc>>, slot: &SlotHandle) -> Outcome {
    let history = slot.request(|reply| SlotCommand::History { last: None, reply });
    match history.await {
        Ok(history) => found_in(&history.turns, text, given, slot.status().state),
        Err(error) => Outcome::Failed(format!("the daemon was away: {}", error.message)),
    }
}

/// Like [`find`], for a command of Claude Code or of a shell. Some leave no trace in the conversation: then the result
/// is unknown.
pub async fn find_command(text: &str, given: DateTime<Utc>, slot: &SlotHandle) -> Outcome {
    let history = slot.request(|reply| SlotCommand::History { last: None, reply });
    match history.await {
        Ok(history) => command_in(&history.turns, text, given),
        Err(error) => Outcome::Failed(format!("the daemon was away: {}", error.message)),
    }
}

fn command_in(turns: &[Turn], text: &str, given: DateTime<Utc>) -> Outcome {
    let sent = secrets::mask(text);
    let is_it = |turn: &Turn| {
        let since = turn.time.is_some_and(|at| at >= given);
        since && turn.role == transcript::COMMAND && turn.text.trim() == sent.trim()
    };
    let Some(at) = turns.iter().position(is_it) else {
        let why = "the conversation has nothing of the command, as of one whose view was left: \
                   what it did is not known";
        return Outcome::Failed(why.to_owned());
    };
    let text = said_after(turns, at);
    let session_id = turns[at].session_id.clone();
    Outcome::Answered { text, session_id }
}

/// The answer to the message or command at this index, after the last tool call.
fn said_after(turns: &[Turn], at: usize) -> Option<String> {
    let is_entered = |turn: &Turn| ["user", transcript::COMMAND].contains(&turn.role.as_str());
    let turn = turns[at + 1..].split(is_entered).next();
    let after_tools = turn
        .unwrap_or_default()
        .rsplit(|turn| turn.role.starts_with("tool_"))
        .next();
    let said = after_tools.unwrap_or_default().iter();
    let said: Vec<&str> = said.map(|turn| turn.text.as_str()).collect();
    (!said.is_empty()).then(|| said.join("\n\n"))
}

pub fn rests(state: State) -> bool {
    matches!(state, State::Idle | State::Exited | State::Error)
}

/// Returns when the slot is at rest, and has had the time to write its transcript.
pub async fn at_rest(slot: &SlotHandle) {
    let mut status = slot.watch_status();
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

/// Looks for the message in the conversation, and for its answer.
fn found_in(turns: &[Turn], text: &str, given: Option<DateTime<Utc>>, state: State) -> Outcome {
    let sent = keys::message(text, keys::KeyMeaning::default()).unwrap_or_default();
    let sent = secrets::mask(&sent);
    let is_since = |turn: &Turn| {
        let since = turn.time.zip(given);
        turn.role == "user" && since.is_none_or(|(at, given)| at >= given)
    };
    let is_it = |turn: &Turn| is_since(turn) && turn.text.trim() == sent.trim();
    let Some(at) = turns.iter().position(is_it) else {
        // Certain only if the conversation can be read, the slot is idle, and no message came since.
        let certain = state == State::Idle && !turns.is_empty() && !turns.iter().any(is_since);
        return match certain {
            true => Outcome::Untouched("the daemon ended before the slot had taken it".to_owned()),
            false => Outcome::CutOff(
                "the daemon ended while it was being given out; the slot's conversation does not contain it"
                    .to_owned(),
            ),
        };
    };
    let text = said_after(turns, at);
    if text.is_none() {
        let why = "its turn has ended with no answer";
        return Outcome::Failed(why.to_owned());
    }
    Outcome::Answered {
        text,
        session_id: turns[at].session_id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    const GIVEN: DateTime<Utc> = DateTime::UNIX_EPOCH;

    /// This many seconds after the task was given out.
    fn turn(seconds: i64, role: &str, text: &str) -> Turn {
        Turn {
            time: Some(GIVEN + TimeDelta::seconds(seconds)),
            role: role.into(),
            text: text.into(),
            tool: None,
            input: None,
            is_error: None,
            session_id: None,
        }
    }

    #[test]
    fn what_was_answered_meanwhile_is_taken_from_the_conversation() {
        let turns = [
            turn(-5, "user", "do it"),
            turn(-4, "assistant", "an older one"),
            turn(1, "user", "do it"),
            turn(2, "assistant", "let me see"),
            turn(3, "tool_result", "x"),
            turn(4, "assistant", "done"),
        ];
        let found = found_in(&turns, "do it", Some(GIVEN), State::Idle);
        let text = Some("done".to_owned());
        assert_eq!(
            found,
            Outcome::Answered {
                text,
                session_id: None
            }
        );
        let found = found_in(&turns[..3], "do it", Some(GIVEN), State::Idle);
        assert!(matches!(found, Outcome::Failed(_)), "{found:?}");
    }

    #[test]
    fn what_a_command_printed_meanwhile_is_taken_from_the_conversation() {
        let turns = [
            turn(-5, "command", "!date"),
            turn(-4, "command_output", "yesterday"),
            turn(1, "command", "!date"),
            turn(2, "command_output", "today"),
            turn(3, "command", "/cost"),
        ];
        let answered = |text: Option<&str>| Outcome::Answered {
            text: text.map(str::to_owned),
            session_id: None,
        };
        assert_eq!(command_in(&turns, "!date", GIVEN), answered(Some("today")));
        assert_eq!(command_in(&turns, "/cost", GIVEN), answered(None));
        let unknown = command_in(&turns[..2], "!date", GIVEN);
        assert!(matches!(unknown, Outcome::Failed(_)), "{unknown:?}");
    }

    #[test]
    fn only_what_was_certainly_not_taken_is_given_out_again() {
        let before = [turn(-5, "user", "do it"), turn(-4, "assistant", "yes")];
        let found = found_in(&before, "do it", Some(GIVEN), State::Idle);
        assert!(matches!(found, Outcome::Untouched(_)), "{found:?}");
        let another = [
            turn(-5, "user", "x"),
            turn(1, "user", "do it, in other words"),
        ];
        for (turns, state) in [
            (&before[..], State::Exited),
            (&[], State::Idle),
            (&another[..], State::Idle),
        ] {
            let found = found_in(turns, "do it", Some(GIVEN), state);
            assert!(matches!(found, Outcome::CutOff(_)), "{found:?}");
        }
    }
}
