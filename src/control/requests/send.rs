use super::*;
use crate::core::claude::keys;
use crate::core::machine::Message;
use crate::core::queue::Outcome as Found;
use crate::core::text::quoting::quoted;
use crate::daemon::tasks::runner;
use crate::os::peer::PeerOrigin;
use crate::slot::once::{
    Active, Begun, Came, Once, OnceOutcome, OnceRecord, OnceWaiter, Sending, Stage,
};
use std::collections::BTreeMap;
use std::sync::Arc;

request! {
    /// Sends a message to a slot, and answers with Claude Code's answer.
    Send = "send", SendParams => SendAnswer;
    access: Granted("send", Slots);
    scope: Scope::Steer;
    names: Accepts::Slots("missiond session type ID …");
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendParams {
    /// The name of the slot, or `@role` if the role has one slot.
    pub slot: String,
    /// The message.
    pub text: String,
    /// Wait for Claude Code's answer; else only until Claude Code has taken the message.
    #[serde(default = "yes")]
    pub wait: bool,
    /// The wait for the answer fails after this many milliseconds, and the turn goes on; if absent, there is no limit.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// A leading `!` is intended: run the text as a shell command.
    #[serde(default)]
    pub shell: bool,
    /// A leading `/` is intended: run the text as a command of Claude Code.
    #[serde(default)]
    pub slash: bool,
    /// An id chosen by the sender. A message that is repeated with the same id is sent once, and gets the same answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

fn yes() -> bool {
    true
}

async fn answer(call: Call<'_>, params: SendParams) -> Result<SendAnswer, RpcError> {
    let slot = call.slot(&params.slot)?;
    let name = params.slot.clone();
    if slot.status().kind != "claude" {
        let text = format!("{name} is a plain program, not Claude Code");
        return Err(RpcError::new(Fault::Refused, text).next(format!("missiond write {name} …")));
    }
    let meaning = keys::KeyMeaning {
        shell: params.shell,
        slash: params.slash,
    };
    let text = keys::message(&params.text, meaning)
        .map_err(|error| not_sendable(&error, call.peer, &name))?;
    let message = Message {
        token: None,
        slash: params.slash && text.starts_with('/'),
        // The end of the turn is awaited in any case, so that the answer is known.
        wait: true,
        task: None,
        id: params.id.or_else(|| Some(uuid::Uuid::new_v4().to_string())),
        text,
        person: (call.peer.origin == PeerOrigin::Outside).then(|| call.peer.person()),
    };
    let sending = Sending {
        text: params.text,
        plain: !params.shell && !params.slash,
        unattended: !params.wait,
        person: message.person.clone(),
    };
    let id = message.id.clone().unwrap_or_default();
    let record = OnceRecord::new(name, id, sending);
    let limit = params.timeout_ms.map(Duration::from_millis);
    send_once(
        &call,
        ToSend {
            record,
            message,
            slot,
            limit,
        },
    )
    .await
}

/// A message to send, with its record, its slot and its time limit.
struct ToSend {
    record: OnceRecord<Sending>,
    message: Message,
    slot: SlotHandle,
    limit: Option<Duration>,
}

async fn send_once(dispatcher: &Dispatcher, send: ToSend) -> Result<SendAnswer, RpcError> {
    let ToSend {
        record,
        message,
        slot,
        limit,
    } = send;
    let waits = !record.request.unattended;
    let unanswered = outlined("taken", &record, &slot);
    let handle = slot.clone();
    let sends = dispatcher.daemon().once().sends.clone();
    let waiter = match sends.begin_on_disk(record).await? {
        Begun::Ended(outcome) => return outcome.result(),
        Begun::UnderWay(waiter) => waiter,
        Begun::Yours(waiter, record) => {
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

impl Dispatcher {
    /// Sends the messages that an earlier daemon accepted from senders who do not wait, and had not sent.
    pub fn send_what_was_left(&self) {
        let mut left = BTreeMap::new();
        for record in self.daemon().once().sends.unsent() {
            if !record.request.unattended {
                self.drop_unless_sent_again(record);
                continue;
            }
            let slot = self.slot(&record.slot).ok();
            let Some((slot, message)) = slot.zip(as_message(&record)) else {
                let why = "the daemon ended before it was sent";
                let failed = OnceOutcome::Failed(RpcError::new(Fault::Failed, why));
                self.daemon()
                    .once()
                    .sends
                    .settle(&record.slot, &record.id, Came::End(failed));
                continue;
            };
            if let Ok(Begun::Yours(waiter, record)) = self.daemon().once().sends.begin(record) {
                let of_slot: &mut Vec<_> = left.entry(record.slot.clone()).or_default();
                let on_its_way = OnItsWay {
                    sends: self.daemon().once().sends.clone(),
                    slot,
                    record: *record,
                    active: waiter.active(),
                };
                of_slot.push((waiter, on_its_way, message));
            }
        }
        for of_slot in left.into_values() {
            tokio::spawn(give_in_order(of_slot));
        }
    }
}

/// Gives a slot the messages that an earlier daemon has left, each when the slot has the one before.
async fn give_in_order(left: Vec<(OnceWaiter<Sending>, OnItsWay, Message)>) {
    for (waiter, on_its_way, message) in left {
        tokio::spawn(on_its_way.run(message));
        tokio::select! {
            () = waiter.reached(Stage::Accepted) => {}
            _ended = waiter.outcome() => {}
        }
        waiter.leave();
    }
}

impl Dispatcher {
    /// Drops the message of a sender who waited for an earlier daemon, unless the sender sends it again to this one.
    fn drop_unless_sent_again(&self, record: OnceRecord<Sending>) {
        let (sends, slot) = (
            self.daemon().once().sends.clone(),
            self.slot(&record.slot).ok(),
        );
        tokio::spawn(async move {
            if let Some(slot) = slot {
                slot.has_looked().await;
            }
            let why = "not sent: the daemon ended first, and the sender did not send it again";
            sends.drop_unless_active(&record, RpcError::new(Fault::Failed, why));
        });
    }
}

/// Returns when a sender that does not wait for the answer can go: the message is queued or taken.
async fn handed_over(
    waiter: &OnceWaiter<Sending>,
    slot: &SlotHandle,
    taken: SendAnswer,
) -> Result<SendAnswer, RpcError> {
    let queued = async {
        waiter.reached(Stage::Accepted).await;
        // A message that is not in the queue is being typed, which takes a moment.
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

/// A message in the form that the slot takes; `None` for a command, which only its sender may send again.
fn as_message(record: &OnceRecord<Sending>) -> Option<Message> {
    let text = keys::message(&record.request.text, keys::KeyMeaning::default());
    Some(Message {
        token: None,
        text: text.ok().filter(|_| record.request.plain)?,
        slash: false,
        wait: true,
        task: None,
        id: Some(record.id.clone()),
        person: record.request.person.clone(),
    })
}

/// A message that this daemon delivers.
struct OnItsWay {
    sends: Once<Sending>,
    slot: SlotHandle,
    record: OnceRecord<Sending>,
    active: Arc<Active<Sending>>,
}

impl OnItsWay {
    async fn run(self, message: Message) {
        let OnceRecord { slot, id, .. } = &self.record;
        // If the program that an earlier daemon's message was meant for has ended, the slot drops the message.
        self.slot.has_looked().await;
        // If its Enter was not written, it is entered no more.
        let came = match (
            self.sends.why_dropped(slot, id),
            self.sends.is_entered(slot, id),
        ) {
            (Some(why), _) => Came::Nothing(why),
            (None, true) => self.rejoin(message).await,
            (None, false) => self.give(message).await,
        };
        self.sends.settle_on_disk(slot, id, came).await;
    }

    async fn give(&self, message: Message) -> Came<Sending> {
        let send = |token| {
            Input::Send(Message {
                token: Some(token),
                ..message
            })
        };
        let abandoned = self.active.abandoned.clone();
        let reply = self.slot.ask_until(abandoned.cancelled(), send).await;
        self.came_of(reply)
    }

    fn came_of(&self, reply: Result<Reply, RpcError>) -> Came<Sending> {
        match reply {
            Ok(Reply::Answered { text, source }) => {
                Came::End(OnceOutcome::Answered(Box::new(SendAnswer {
                    response: text,
                    source: Some(source.to_owned()),
                    ..outlined("answered", &self.record, &self.slot)
                })))
            }
            Ok(Reply::NeedsPerson(dialog)) => Came::Part(Box::new(Ok(SendAnswer {
                dialog: Some(*dialog),
                ..outlined("needs_person", &self.record, &self.slot)
            }))),
            Ok(_) => Came::Part(Box::new(Ok(outlined("taken", &self.record, &self.slot)))),
            Err(error) if error.trace == Some(Trace::Untouched) => Came::Nothing(error),
            Err(error) if error.fault == Fault::TimedOut => {
                // The message may have been typed: then its turn goes on, in this daemon or the next.
                self.sends.leave(&self.record.slot, &self.record.id);
                Came::Part(Box::new(Err(error)))
            }
            Err(error) => Came::End(OnceOutcome::Failed(error)),
        }
    }

    /// Waits for the end of a turn for which an earlier daemon has pressed Enter.
    async fn rejoin(&self, message: Message) -> Came<Sending> {
        let OnceRecord { slot, id, .. } = &self.record;
        // A sender who does not wait for the answer can go.
        self.sends.reached(slot, id, Stage::Taken);
        let rejoin = |token| Input::Rejoin {
            token,
            id: self.record.id.clone(),
        };
        let abandoned = self.active.abandoned.clone();
        match self.slot.ask_until(abandoned.cancelled(), rejoin).await {
            Ok(Reply::Unknown) => self.look_for(message).await,
            reply => self.came_of(reply),
        }
    }

    /// Looks in the conversation for the result, once the slot is at rest: the slot knows no more of the message.
    async fn look_for(&self, message: Message) -> Came<Sending> {
        tokio::select! {
            () = runner::at_rest(&self.slot) => {}
            dialog = needs_person(&self.slot) => return Came::Part(Box::new(Ok(SendAnswer {
                dialog: Some(dialog),
                ..outlined("needs_person", &self.record, &self.slot)
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

/// Looks for a message and its answer in the conversation of a slot at rest.
pub(super) async fn find(record: &OnceRecord<Sending>, slot: &SlotHandle) -> Came<Sending> {
    let failed = |text: String| Came::End(OnceOutcome::Failed(RpcError::new(Fault::Failed, text)));
    let entered = record.entered_at.unwrap_or(record.queued_at);
    let text = &record.request.text;
    let found = match record.request.plain {
        true => runner::find(text, Some(entered), slot).await,
        false => runner::find_command(text, entered, slot).await,
    };
    match found {
        Found::Answered { text, session_id } => {
            Came::End(OnceOutcome::Answered(Box::new(SendAnswer {
                response: text,
                source: Some("transcript".to_owned()),
                session_id,
                ..outlined("answered", record, slot)
            })))
        }
        Found::Untouched(why) => {
            Came::Nothing(RpcError::new(Fault::Failed, why).trace(Trace::Untouched))
        }
        Found::Failed(why) | Found::CutOff(why) | Found::Cancelled(why) => failed(why),
    }
}

fn outlined(state: &str, record: &OnceRecord<Sending>, slot: &SlotHandle) -> SendAnswer {
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
        // The slot is gone; other code reports that.
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

/// The error for a text that can't be sent. For a command of Claude Code, the next step is a person's `send`: nothing
/// else may send a command.
pub(super) fn not_sendable(error: &keys::NotSendable, peer: &Peer, to: &str) -> RpcError {
    let keys::NotSendable::Slash(command) = error else {
        return RpcError::new(Fault::Usage, error.to_string());
    };
    let slot = if to.starts_with('@') { "SLOT" } else { to };
    let meant = match peer.origin {
        PeerOrigin::Outside => {
            let command = quoted(command);
            format!("if that is meant: missiond send {slot} --slash {command}")
        }
        _ => "if that is meant: only a person can send one".to_owned(),
    };
    RpcError::new(Fault::Refused, error.to_string()).next(format!(
        "{meant}\nif it is not: begin the message with a word"
    ))
}
