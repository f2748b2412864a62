//! `send` with an id: a message that is done once, over the life of several daemons.

use super::Dispatcher;
use crate::core::claude::keys;
use crate::core::machine::{Input, Message, Reply};
use crate::core::model::{Fault, RpcError, SendAnswer, SentAnswer, SentParams, SlotStatus, Trace};
use crate::core::queue::Outcome as Found;
use crate::daemon::tasks::runner;
use crate::once::{Active, Begun, Came, Once, Outcome, Record, Sending, Stage, Waiter};
use crate::slot::SlotHandle;
use chrono::{DateTime, Utc};
use std::sync::Arc;
use std::time::Duration;

/// A message as the slot is to get it.
pub(super) struct ToSend {
    pub record: Record<Sending>,
    pub message: Message,
    pub slot: SlotHandle,
    pub limit: Option<Duration>,
}

impl Dispatcher {
    pub(super) async fn send_once(&self, send: ToSend) -> Result<SendAnswer, RpcError> {
        let ToSend {
            record,
            message,
            slot,
            limit,
        } = send;
        let waits = !record.request.unattended;
        let unanswered = answer("taken", &record, &slot);
        let handle = slot.clone();
        let waiter = match self.daemon.sends.begin(record)? {
            Begun::Ended(outcome) => return outcome.result(),
            Begun::UnderWay(waiter) => waiter,
            Begun::Yours(waiter, record) => {
                let sends = self.daemon.sends.clone();
                let on_its_way = OnItsWay {
                    sends,
                    slot,
                    record: *record,
                    active: waiter.active(),
                };
                tokio::spawn(on_its_way.run(message));
                waiter
            }
        };
        let outcome = match waits {
            true => within(limit, waiter.outcome()).await,
            false => within(limit, handed_over(&waiter, &handle, unanswered)).await,
        };
        match outcome {
            Some(outcome) if waits => outcome,
            Some(outcome) => {
                waiter.leave();
                outcome
            }
            None => waiter.give_up().await.unwrap_or_else(|| Err(too_late())),
        }
    }

    /// What became of a message.
    pub(in crate::control) async fn sent(
        &self,
        params: SentParams,
    ) -> Result<SentAnswer, RpcError> {
        let slot = self.slot(&params.slot)?;
        let sends = &self.daemon.sends;
        let (mut record, under_way) = sends.look(&params.slot, &params.id)?;
        let unclear = record.outcome.is_none() && record.entered_at.is_some() && !under_way;
        // Its turn is over, and nobody has looked for the answer yet.
        if unclear && runner::rests(slot.status().state) {
            let came = find(&record, &slot).await;
            if let Came::End(outcome) = came {
                sends.settle(&record.slot, &record.id, Came::End(outcome.clone()));
                record.outcome = Some(outcome);
            }
        }
        Ok(about(record))
    }

    /// Sends what an earlier daemon had taken for a sender who does not wait, and had not sent.
    pub fn send_what_was_left(&self) {
        for record in self.daemon.sends.unsent() {
            let slot = self.slot(&record.slot).ok();
            let Some((slot, message)) = slot.zip(as_message(&record)) else {
                let why = "the daemon ended before it was sent";
                let failed = Outcome::Failed(RpcError::new(Fault::Failed, why));
                self.daemon
                    .sends
                    .settle(&record.slot, &record.id, Came::End(failed));
                continue;
            };
            if let Ok(Begun::Yours(waiter, record)) = self.daemon.sends.begin(record) {
                let on_its_way = OnItsWay {
                    sends: self.daemon.sends.clone(),
                    slot,
                    record: *record,
                    active: waiter.active(),
                };
                waiter.leave();
                tokio::spawn(async move {
                    on_its_way.slot.has_looked().await;
                    on_its_way.run(message).await;
                });
            }
        }
    }
}

/// Returns when nobody has to wait any more for a message whose answer is not waited for.
async fn handed_over(
    waiter: &Waiter<Sending>,
    slot: &SlotHandle,
    taken: SendAnswer,
) -> Result<SendAnswer, RpcError> {
    let queued = async {
        waiter.reached(Stage::Accepted).await;
        // One that is not in the queue is being typed, which takes a moment.
        if slot.status().queued == 0 {
            std::future::pending().await
        }
    };
    tokio::select! {
        biased;
        outcome = waiter.outcome() => outcome,
        () = waiter.reached(Stage::Taken) => Ok(taken),
        () = queued => Ok(SendAnswer { state: "queued".to_owned(), ..taken }),
    }
}

/// A message as the slot gets it; `None` for a command, which only its sender sends again.
fn as_message(record: &Record<Sending>) -> Option<Message> {
    let text = keys::message(&record.request.text, keys::Meaning::default());
    Some(Message {
        token: None,
        text: text.ok().filter(|_| record.request.plain)?,
        slash: false,
        wait: true,
        task: None,
        id: Some(record.id.clone()),
        // An earlier daemon has heard them.
        person: None,
    })
}

fn about(record: Record<Sending>) -> SentAnswer {
    let is_dropped = record.dropped.is_some();
    // Some commands print nothing.
    let is_answered = matches!(record.outcome, Some(Outcome::Answered(_)));
    let (response, error) = match record.outcome {
        Some(Outcome::Answered(answer)) => (answer.response, None),
        Some(Outcome::Failed(error)) => (None, Some(error)),
        None => (None, record.dropped),
    };
    let state = match (&error, record.entered_at) {
        _ if is_dropped => "dropped",
        _ if is_answered => "answered",
        (Some(_), _) => "failed",
        (None, Some(_)) => "sent",
        (None, None) => "queued",
    };
    SentAnswer {
        slot: record.slot,
        id: record.id,
        state: state.to_owned(),
        queued_at: record.queued_at,
        entered_at: record.entered_at,
        response,
        error,
    }
}

/// A message that this daemon sees to.
struct OnItsWay {
    sends: Once<Sending>,
    slot: SlotHandle,
    record: Record<Sending>,
    active: Arc<Active<Sending>>,
}

impl OnItsWay {
    async fn run(self, message: Message) {
        let came = match self.record.entered_at {
            Some(_) => self.look_for(message).await,
            None => self.give(message).await,
        };
        self.sends.settle(&self.record.slot, &self.record.id, came);
    }

    async fn give(&self, message: Message) -> Came<Sending> {
        let send = |token| {
            Input::Send(Message {
                token: Some(token),
                ..message
            })
        };
        let abandoned = self.active.abandoned.clone();
        match self.slot.ask_until(abandoned.cancelled(), send).await {
            Ok(Reply::Answered { text, source }) => {
                Came::End(Outcome::Answered(Box::new(SendAnswer {
                    response: text,
                    source: Some(source.to_owned()),
                    ..answer("answered", &self.record, &self.slot)
                })))
            }
            Ok(Reply::NeedsPerson(dialog)) => Came::Part(Box::new(Ok(SendAnswer {
                dialog: Some(*dialog),
                ..answer("needs_person", &self.record, &self.slot)
            }))),
            Ok(_) => Came::Part(Box::new(Ok(answer("taken", &self.record, &self.slot)))),
            Err(error) if error.trace == Some(Trace::Untouched) => Came::Nothing(error),
            Err(error) if error.fault == Fault::TimedOut => Came::Part(Box::new(Err(error))),
            Err(error) => Came::End(Outcome::Failed(error)),
        }
    }

    /// An earlier daemon has pressed Enter for it: what came of it is found in the conversation, once the slot rests.
    async fn look_for(&self, message: Message) -> Came<Sending> {
        self.slot.has_looked().await;
        tokio::select! {
            () = runner::at_rest(&self.slot) => {}
            dialog = needs_person(&self.slot) => return Came::Part(Box::new(Ok(SendAnswer {
                dialog: Some(dialog),
                ..answer("needs_person", &self.record, &self.slot)
            }))),
            () = self.active.abandoned.cancelled() => return Came::Part(Box::new(Err(too_late()))),
        }
        match find(&self.record, &self.slot).await {
            // Enter did not reach it.
            Came::Nothing(_) => self.give(message).await,
            came => came,
        }
    }
}

/// Looks for a message in the conversation of a slot that rests, and for what was answered.
async fn find(record: &Record<Sending>, slot: &SlotHandle) -> Came<Sending> {
    let failed = |text: String| Came::End(Outcome::Failed(RpcError::new(Fault::Failed, text)));
    let entered = record.entered_at.unwrap_or(record.queued_at);
    let text = &record.request.text;
    let found = match record.request.plain {
        true => runner::find(text, Some(entered), slot).await,
        false => runner::find_command(text, entered, slot).await,
    };
    match found {
        Found::Answered { text, session_id } => {
            Came::End(Outcome::Answered(Box::new(SendAnswer {
                response: text,
                source: Some("transcript".to_owned()),
                session_id,
                ..answer("answered", record, slot)
            })))
        }
        Found::Untouched(why) => {
            Came::Nothing(RpcError::new(Fault::Failed, why).trace(Trace::Untouched))
        }
        Found::Failed(why) | Found::CutOff(why) | Found::Cancelled(why) => failed(why),
    }
}

fn answer(state: &str, record: &Record<Sending>, slot: &SlotHandle) -> SendAnswer {
    SendAnswer {
        slot: record.slot.clone(),
        id: Some(record.id.clone()),
        state: state.to_owned(),
        response: None,
        duration_ms: since(record.queued_at),
        session_id: slot.status().session_id,
        source: None,
        dialog: None,
    }
}

fn since(time: DateTime<Utc>) -> u64 {
    let passed = Utc::now().signed_duration_since(time).num_milliseconds();
    passed.try_into().unwrap_or(0)
}

async fn needs_person(slot: &SlotHandle) -> crate::core::claude::reading::Dialog {
    let mut status = slot.watch_status();
    let waits = |status: &SlotStatus| status.dialog.is_some() && status.waits_because.is_some();
    let seen = status.wait_for(waits).await.ok();
    match seen.and_then(|status| status.dialog.clone()) {
        Some(dialog) => dialog,
        // The slot is gone, which others tell.
        None => std::future::pending().await,
    }
}

async fn within<T>(limit: Option<Duration>, outcome: impl Future<Output = T>) -> Option<T> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, outcome).await.ok(),
        None => Some(outcome.await),
    }
}

fn too_late() -> RpcError {
    RpcError::new(
        Fault::TimedOut,
        "the message was sent, and its turn goes on",
    )
}
