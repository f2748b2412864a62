//! The task in the daemon that owns the queue: it passes events to the queue and carries out its effects.

use super::runner;
use super::store::{Left, Store};
use crate::core::claude::reading::State;
use crate::core::model::{EventKind, Fault, RpcError, SlotStatus, TaskStatus};
use crate::core::queue::{Effect, NewTask, Outcome, Queue, SlotView, unknown_task};
use crate::daemon::{Reply, Slots};
use crate::events::Bus;
use crate::slot::{SlotCommand, SlotHandle};
use chrono::{DateTime, Utc};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// The maximum of queued commands; the keeper answers each in the time of a small write.
const MAX_COMMANDS: usize = 64;

type Tasks = Arc<Vec<Arc<TaskStatus>>>;

#[derive(Debug)]
enum QueueCommand {
    Submit {
        new: NewTask,
        reply: Reply<Arc<TaskStatus>>,
    },
    Cancel {
        id: String,
        reply: Reply<()>,
    },
    /// Gives out no more tasks.
    Close {
        reply: Reply<()>,
    },
}

/// A handle to the queue.
#[derive(Debug, Clone)]
pub struct TasksHandle {
    commands: mpsc::Sender<QueueCommand>,
    tasks: watch::Receiver<Tasks>,
}

impl TasksHandle {
    /// Puts a task into the queue. It is on the disk when this returns.
    pub async fn submit(&self, new: NewTask) -> Result<Arc<TaskStatus>, RpcError> {
        self.ask(|reply| QueueCommand::Submit { new, reply }).await
    }

    /// Ends a task, or has it taken back from its slot; [`TasksHandle::wait`] returns when that has happened.
    pub async fn cancel(&self, id: &str) -> Result<(), RpcError> {
        let id = id.to_owned();
        self.ask(|reply| QueueCommand::Cancel { id, reply }).await
    }

    /// Stops giving out tasks, because the slots are about to be ended.
    pub async fn close(&self) {
        // A keeper that is gone gives out nothing either.
        let _ = self.ask(|reply| QueueCommand::Close { reply }).await;
    }

    /// All kept tasks, in the order of their submission.
    pub fn all(&self) -> Tasks {
        self.tasks.borrow().clone()
    }

    pub fn get(&self, id: &str) -> Result<Arc<TaskStatus>, RpcError> {
        let tasks = self.all();
        let found = tasks.iter().find(|task| task.id == id);
        found
            .cloned()
            .ok_or_else(|| unknown_task(id, tasks.iter().map(|task| task.id.as_str())))
    }

    /// Waits until the task meets the condition `wanted`.
    pub async fn wait(
        &self,
        id: &str,
        wanted: impl Fn(&TaskStatus) -> bool,
    ) -> Result<Arc<TaskStatus>, RpcError> {
        let mut tasks = self.tasks.clone();
        let is_there = |tasks: &Tasks| {
            let task = tasks.iter().find(|task| task.id == id);
            task.is_none_or(|task| wanted(task))
        };
        tasks.wait_for(is_there).await.map_err(|_| ending())?;
        self.get(id)
    }

    async fn ask<T>(&self, make: impl FnOnce(Reply<T>) -> QueueCommand) -> Result<T, RpcError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.commands.send(make(reply)).await;
        sent.map_err(|_| ending())?;
        answer.await.unwrap_or_else(|_| Err(ending()))
    }
}

fn ending() -> RpcError {
    RpcError::new(Fault::Failed, "the daemon is ending")
}

/// Starts the keeper with the tasks that the last daemon left.
pub fn start(
    store: Store,
    left: Left,
    slots: watch::Receiver<Slots>,
    bus: Bus,
) -> (TasksHandle, JoinHandle<()>) {
    for text in left.faults {
        tracing::error!("{text}");
        bus.publish(None, EventKind::Warning { text });
    }
    let (queue, effects) = Queue::restore(left.tasks);
    // A client that asks before the keeper runs gets the tasks that were left.
    let (published, tasks) = watch::channel(kept(&queue));
    let (commands, orders) = mpsc::channel(MAX_COMMANDS);
    let keeper = Keeper {
        queue,
        store,
        slots,
        bus,
        published,
        runners: JoinSet::new(),
        backs: HashMap::new(),
    };
    let task = tokio::spawn(keeper.run(orders, effects));
    (TasksHandle { commands, tasks }, task)
}

/// All tasks of a queue, in the order of their submission.
fn kept(queue: &Queue) -> Tasks {
    Arc::new(queue.all().cloned().collect())
}

struct Keeper {
    queue: Queue,
    store: Store,
    slots: watch::Receiver<Slots>,
    bus: Bus,
    published: watch::Sender<Tasks>,
    /// One for each task that a slot has.
    runners: JoinSet<(String, Outcome)>,
    /// Tokens that take a task back from its slot.
    backs: HashMap<String, CancellationToken>,
}

impl Keeper {
    async fn run(mut self, mut orders: mpsc::Receiver<QueueCommand>, effects: Vec<Effect>) {
        let moved = Arc::new(Notify::new());
        let mut watchers = self.watch_slots(&moved);
        self.perform(effects).await;
        self.look().await;
        loop {
            self.publish();
            tokio::select! {
                order = orders.recv() => match order {
                    Some(order) => self.obey(order).await,
                    None => return,
                },
                Some(ended) = self.runners.join_next() => self.has_ended(ended).await,
                changed = self.slots.changed() => {
                    if changed.is_err() {
                        return self.write_last_notes().await;
                    }
                    watchers = self.watch_slots(&moved);
                    self.look().await;
                }
                () = moved.notified() => self.look().await,
                () = until(self.queue.poll_timeout()) => {
                    let effects = self.queue.advance(Utc::now());
                    self.perform(effects).await;
                }
                Some(_) = watchers.join_next() => {}
            }
        }
    }

    /// Waits for the results of tasks after the slots have ended, which takes a moment.
    async fn write_last_notes(&mut self) {
        while let Some(ended) = self.runners.join_next().await {
            self.has_ended(ended).await;
        }
    }

    /// Notifies `moved` whenever a slot changes.
    fn watch_slots(&mut self, moved: &Arc<Notify>) -> JoinSet<()> {
        let slots = self.slots.borrow_and_update().clone();
        let mut watchers = JoinSet::new();
        for slot in slots.values() {
            let (mut status, moved) = (slot.watch_status(), moved.clone());
            watchers.spawn(async move {
                while status.changed().await.is_ok() {
                    moved.notify_one();
                }
            });
        }
        watchers
    }

    async fn obey(&mut self, order: QueueCommand) {
        match order {
            QueueCommand::Submit { new, reply } => {
                // The address is checked against the slots as they are now.
                self.look().await;
                let taken = self.submit(new).await;
                let _ = reply.send(taken);
                let effects = self.queue.advance(Utc::now());
                self.perform(effects).await;
            }
            QueueCommand::Cancel { id, reply } => {
                let outcome = self.queue.cancel(&id, Utc::now());
                let outcome = match outcome {
                    Ok(effects) => {
                        self.perform(effects).await;
                        Ok(())
                    }
                    Err(error) => Err(error),
                };
                self.publish();
                let _ = reply.send(outcome);
            }
            QueueCommand::Close { reply } => {
                self.queue.close();
                let _ = reply.send(Ok(()));
            }
        }
    }

    /// Queues a task. A task that can't be written to the disk is refused.
    async fn submit(&mut self, new: NewTask) -> Result<Arc<TaskStatus>, RpcError> {
        let (task, effects) = self.queue.submit(new, Utc::now())?;
        if let Err(error) = self.perform_saves(&effects).await {
            self.queue.unsubmit(&task.id);
            let text = format!("the task can't be written to the disk: {error}");
            return Err(RpcError::new(Fault::Failed, text));
        }
        self.publish();
        Ok(task)
    }

    async fn look(&mut self) {
        let slots = self.slots.borrow().clone();
        let seen = slots.values().map(|slot| view(&slot.status())).collect();
        let effects = self.queue.see(seen, Utc::now());
        self.perform(effects).await;
    }

    async fn has_ended(&mut self, ended: Result<(String, Outcome), tokio::task::JoinError>) {
        let (id, outcome) = match ended {
            Ok(ended) => ended,
            // A runner does not panic, and is aborted only with this task.
            Err(error) => return tracing::error!("a task's runner ended: {error}"),
        };
        self.backs.remove(&id);
        let effects = self.queue.ended(&id, outcome, Utc::now());
        self.perform(effects).await;
    }

    async fn perform_saves(&mut self, effects: &[Effect]) -> io::Result<()> {
        for effect in effects {
            if let Effect::Save(task) = effect {
                self.save(task).await?;
            }
        }
        Ok(())
    }

    async fn perform(&mut self, effects: Vec<Effect>) {
        // A task that is not on the disk is not given out.
        let mut unsaved = None;
        for effect in effects {
            match effect {
                Effect::Save(task) => {
                    if let Err(error) = self.save(&task).await {
                        tracing::error!(task = %task.id, "it can't be written to the disk: {error}");
                        unsaved = Some((task.id.clone(), error.to_string()));
                    }
                }
                Effect::Give(task) => {
                    let failed = unsaved.take_if(|(id, _)| *id == task.id);
                    self.give(task, failed.map(|(_, error)| error));
                }
                Effect::LookFor(task) => self.look_for(task),
                Effect::Remove(id) => drop(self.store.remove(&id)),
                Effect::TakeBack(id) => {
                    if let Some(back) = self.backs.get(&id) {
                        back.cancel();
                    }
                }
            }
        }
    }

    /// Writes a task to the disk, and publishes the change.
    async fn save(&mut self, task: &Arc<TaskStatus>) -> io::Result<()> {
        self.store.save(task)?;
        let what = EventKind::Task {
            id: task.id.clone(),
            to: task.to.clone(),
            state: task.state,
            error: task.error.clone(),
        };
        match self.slot_of(task) {
            // Only the slot itself writes its log.
            Some(slot) => drop(slot.send(SlotCommand::Note(what)).await),
            None => drop(self.bus.publish(None, what)),
        }
        Ok(())
    }

    fn give(&mut self, task: Arc<TaskStatus>, unsaved: Option<String>) {
        let slot = self.slot_of(&task);
        let back = self.back(&task.id);
        self.runners.spawn(async move {
            let id = task.id.clone();
            let outcome = match (slot, unsaved) {
                (_, Some(error)) => {
                    Outcome::Untouched(format!("its start can't be written to the disk: {error}"))
                }
                (Some(slot), None) => runner::give(task, slot, back).await,
                (None, None) => Outcome::Untouched("the slot was removed".to_owned()),
            };
            (id, outcome)
        });
    }

    fn look_for(&mut self, task: Arc<TaskStatus>) {
        let slot = self.slot_of(&task);
        let back = self.back(&task.id);
        self.runners.spawn(async move {
            let id = task.id.clone();
            let outcome = match slot {
                Some(slot) => runner::look_for(task, slot, back).await,
                None => Outcome::Failed(
                    "the daemon ended while it ran, and its slot is gone".to_owned(),
                ),
            };
            (id, outcome)
        });
    }

    fn back(&mut self, id: &str) -> CancellationToken {
        let back = CancellationToken::new();
        self.backs.insert(id.to_owned(), back.clone());
        back
    }

    fn slot_of(&self, task: &TaskStatus) -> Option<SlotHandle> {
        self.slots.borrow().get(task.slot.as_ref()?).cloned()
    }

    fn publish(&self) {
        let now = kept(&self.queue);
        self.published.send_if_modified(|before| {
            let same = before.len() == now.len()
                && before
                    .iter()
                    .zip(now.iter())
                    .all(|(old, new)| Arc::ptr_eq(old, new));
            if !same {
                *before = now;
            }
            !same
        });
    }
}

fn view(status: &SlotStatus) -> SlotView {
    let at_rest = status.state == State::Idle && status.dialog.is_none();
    let untouched = status.queued == 0 && status.task_id.is_none() && status.doing.is_none();
    SlotView {
        name: status.slot.clone(),
        role: status.role.clone(),
        is_claude: status.kind == "claude",
        is_free: at_rest && untouched && status.doubtful.is_none(),
        task: status.task_id.clone(),
        needs_person: status.dialog.is_some() && status.waits_because.is_some(),
        is_removed: status.removed,
    }
}

async fn until(time: Option<DateTime<Utc>>) {
    match time {
        Some(time) => {
            let left = time.signed_duration_since(Utc::now()).to_std();
            tokio::time::sleep(left.unwrap_or_default()).await;
        }
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn left() -> TaskStatus {
        serde_json::from_value(json!({
            "id": "a3", "seq": 3, "to": "coder", "text": "do it", "state": "running", "by": "user", "slot": "coder",
            "session_id": null, "answer": null, "error": null, "submitted_at": "2026-01-01T10:00:00Z",
            "started_at": "2026-01-01T10:00:05Z", "ended_at": null, "duration_ms": null, "retries": 0, "attempts": 1
        }))
        .unwrap()
    }

    #[tokio::test]
    async fn a_task_that_was_left_is_known_before_the_keeper_has_its_turn() {
        let state = tempfile::tempdir().unwrap();
        let open = || Store::open(state.path().join("tasks")).unwrap();
        open().0.save(&left()).unwrap();
        let (store, tasks) = open();
        let bus = Bus::open(&state.path().join("events.jsonl")).unwrap();
        let (_published, slots) = watch::channel(Slots::default());
        let (handle, keeper) = start(store, tasks, slots, bus);
        // On this thread the keeper runs only when the test waits.
        assert_eq!(*handle.get("a3").unwrap(), left());
        keeper.abort();
    }
}
