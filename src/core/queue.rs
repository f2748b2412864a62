//! Which task goes to which slot, and its result. Pure: the time and the states of the slots come in, the effects come out.

use crate::core::model::{Fault, RpcError, TaskState, TaskStatus};
use crate::core::text::diagnostic::nearest;
use crate::core::text::excerpt;
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub mod file;
pub mod plan;
#[cfg(test)]
mod tests;

/// The most waiting tasks: more is a loop, not a plan.
pub const MAX_WAITING: usize = 256;
/// The most bytes of waiting texts: together with the kept answers, this bounds the daemon's memory.
pub const MAX_WAITING_BYTES: usize = 32 << 20;
/// Ended tasks that are kept for later requests; the oldest are dropped first.
pub const MAX_ENDED: usize = 256;
/// The longest answer that is kept whole; a longer one is cut, with a mark at its end.
pub const MAX_ANSWER: usize = 512 << 10;
/// More attempts than this are a loop.
pub const MAX_RETRIES: u32 = 100;
/// A slot that looked free and refused a task gets no task for this long.
const REST: TimeDelta = TimeDelta::seconds(5);

/// A slot, as far as the queue needs to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotView {
    pub name: String,
    pub role: String,
    /// Only Claude Code takes prompts.
    pub is_claude: bool,
    /// Idle, with nothing on the way to it.
    pub is_free: bool,
    /// The task that it works on.
    pub task: Option<String>,
    /// It asks something that no rule answers.
    pub needs_person: bool,
    /// The slot is no longer in the config: it may finish its task, but gets no new one.
    pub is_removed: bool,
}

/// A submitted task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    pub id: String,
    pub to: String,
    pub text: String,
    pub retries: u32,
    pub by: String,
    /// How long a slot may have it.
    pub timeout_ms: Option<u64>,
}

/// The result of a task that a slot had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Answered {
        text: Option<String>,
        session_id: Option<String>,
    },
    /// The slot certainly did not accept it.
    Untouched(String),
    /// The slot ended while it worked on it, or no trace of it is found after the daemon was away.
    CutOff(String),
    Failed(String),
    Cancelled(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Write it to disk before any later effect.
    Save(Arc<TaskStatus>),
    /// Remove it from disk.
    Remove(String),
    /// Give it to its slot.
    Give(Arc<TaskStatus>),
    /// Find out its result while the daemon was away.
    LookFor(Arc<TaskStatus>),
    /// Take it back from its slot.
    TakeBack(String),
}

#[derive(Debug, Default)]
pub struct Queue {
    /// In the order of submission.
    tasks: BTreeMap<u64, Arc<TaskStatus>>,
    slots: Vec<SlotView>,
    /// Slots that get no task until then.
    resting: BTreeMap<String, DateTime<Utc>>,
    /// Tasks that were taken back because their time was over.
    late: BTreeSet<String>,
    /// No more tasks are given out.
    closed: bool,
    effects: Vec<Effect>,
}

impl Queue {
    /// Restores the queue of the last daemon. The tasks that slots had then are looked up.
    pub fn restore(tasks: impl IntoIterator<Item = TaskStatus>) -> (Queue, Vec<Effect>) {
        let tasks = tasks.into_iter().map(|task| (task.seq, Arc::new(task)));
        let queue = Queue {
            tasks: tasks.collect(),
            ..Queue::default()
        };
        let under_way = queue
            .tasks
            .values()
            .filter(|task| task.state.is_under_way());
        let looks = under_way.cloned().map(Effect::LookFor).collect();
        (queue, looks)
    }

    pub fn all(&self) -> impl Iterator<Item = &Arc<TaskStatus>> {
        self.tasks.values()
    }

    /// Accepts a task, or returns why not.
    pub fn submit(
        &mut self,
        new: NewTask,
        now: DateTime<Utc>,
    ) -> Result<(Arc<TaskStatus>, Vec<Effect>), RpcError> {
        if let Some(seq) = self.seq_of(&new.id) {
            let known = self.tasks[&seq].clone();
            return same_task(&known, &new).map(|()| (known, Vec::new()));
        }
        self.check_address(&new.to)?;
        self.check_room(&new)?;
        let seq = self.tasks.keys().next_back().map_or(1, |last| last + 1);
        let task = Arc::new(TaskStatus {
            id: new.id,
            seq,
            to: new.to,
            text: new.text,
            state: TaskState::Queued,
            by: new.by,
            slot: None,
            session_id: None,
            answer: None,
            error: None,
            submitted_at: now,
            started_at: None,
            ended_at: None,
            duration_ms: None,
            retries: new.retries,
            attempts: 0,
            timeout_ms: new.timeout_ms,
            truncated: false,
        });
        self.tasks.insert(seq, task.clone());
        Ok((task.clone(), vec![Effect::Save(task)]))
    }

    /// A task that could not be written to disk was never accepted.
    pub fn unsubmit(&mut self, id: &str) {
        self.tasks.retain(|_, task| task.id != id);
    }

    /// Takes the current states of the slots.
    pub fn see(&mut self, slots: Vec<SlotView>, now: DateTime<Utc>) -> Vec<Effect> {
        self.slots = slots;
        self.fail_unreachable(now);
        self.note_questions();
        self.advance(now)
    }

    /// Gives out the tasks that can run.
    pub fn advance(&mut self, now: DateTime<Utc>) -> Vec<Effect> {
        self.take_back_the_late(now);
        self.resting.retain(|_, until| *until > now);
        let mut taken = self.slots_with_a_task();
        let waiting = match self.closed {
            true => Vec::new(),
            false => self.seqs(|task| task.state == TaskState::Queued),
        };
        for seq in waiting {
            let Some(task) = self.tasks.get(&seq) else {
                continue;
            };
            let free = self
                .addressed(&task.to)
                .find(|slot| slot.is_free && self.may_have_a_task(slot, &taken))
                .map(|slot| slot.name.clone());
            if let Some(slot) = free {
                taken.insert(slot.clone());
                self.give(seq, slot, now);
            }
        }
        std::mem::take(&mut self.effects)
    }

    /// A slot has finished a task, with any result.
    pub fn ended(&mut self, id: &str, outcome: Outcome, now: DateTime<Utc>) -> Vec<Effect> {
        let Some(seq) = self.seq_of(id) else {
            return Vec::new();
        };
        if !self.tasks[&seq].state.is_under_way() {
            return Vec::new();
        }
        let was_late = self.late.remove(id);
        match outcome {
            Outcome::Answered { text, session_id } => {
                let answer = text.map(bounded);
                self.finish(seq, TaskState::Done, None, now, |task| {
                    task.answer = answer;
                    task.session_id = session_id;
                });
            }
            _ if was_late => {
                let why = too_late(&self.tasks[&seq]);
                self.finish(seq, TaskState::Failed, Some(why), now, |_| {});
            }
            Outcome::Untouched(why) => self.put_back(seq, why, now),
            Outcome::CutOff(why) => self.cut_off(seq, why, now),
            Outcome::Failed(why) => self.finish(seq, TaskState::Failed, Some(why), now, |_| {}),
            Outcome::Cancelled(why) => {
                self.finish(seq, TaskState::Cancelled, Some(why), now, |_| {})
            }
        }
        self.advance(now)
    }

    /// Ends a waiting task, and takes back one that a slot has.
    pub fn cancel(&mut self, id: &str, now: DateTime<Utc>) -> Result<Vec<Effect>, RpcError> {
        let unknown = || unknown_task(id, self.tasks.values().map(|task| task.id.as_str()));
        let seq = self.seq_of(id).ok_or_else(unknown)?;
        match self.tasks[&seq].state {
            TaskState::Queued => {
                let why = "cancelled while it waited".to_owned();
                self.finish(seq, TaskState::Cancelled, Some(why), now, |_| {});
            }
            TaskState::Running | TaskState::NeedsPerson => {
                self.effects.push(Effect::TakeBack(id.to_owned()));
            }
            ended => {
                let text = format!("task {id} has ended already: {}", ended.name());
                return Err(RpcError::new(Fault::Refused, text));
            }
        }
        Ok(self.advance(now))
    }

    /// Gives out no more tasks: the slots are about to end.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// When [`Queue::advance`] is due.
    pub fn poll_timeout(&self) -> Option<DateTime<Utc>> {
        let late = self.tasks.values().filter_map(|task| self.deadline(task));
        self.resting.values().copied().chain(late).min()
    }

    /// When a task is taken back from its slot.
    fn deadline(&self, task: &TaskStatus) -> Option<DateTime<Utc>> {
        let may_be_late = task.state.is_under_way() && !self.late.contains(&task.id);
        let limit = i64::try_from(task.timeout_ms.filter(|_| may_be_late)?).ok()?;
        task.started_at?
            .checked_add_signed(TimeDelta::try_milliseconds(limit)?)
    }

    fn take_back_the_late(&mut self, now: DateTime<Utc>) {
        let is_late = |task: &&Arc<TaskStatus>| self.deadline(task).is_some_and(|at| at <= now);
        let late = self.tasks.values().filter(is_late);
        let late: Vec<String> = late.map(|task| task.id.clone()).collect();
        for id in late {
            self.effects.push(Effect::TakeBack(id.clone()));
            self.late.insert(id);
        }
    }

    fn check_address(&self, to: &str) -> Result<(), RpcError> {
        let mut found = self.addressed(to).peekable();
        if found.peek().is_none() {
            return Err(self.unknown_address(to));
        }
        if found.any(|slot| slot.is_claude) {
            return Ok(());
        }
        let text = format!("{to} is a plain program: only Claude Code takes prompts");
        Err(RpcError::new(Fault::Refused, text))
    }

    fn check_room(&self, new: &NewTask) -> Result<(), RpcError> {
        let waiting = self.tasks.values().filter(|task| !task.state.is_final());
        let (count, bytes) = waiting.fold((0, 0), |(count, bytes), task| {
            (count + 1, bytes + task.text.len())
        });
        if count < MAX_WAITING && bytes + new.text.len() <= MAX_WAITING_BYTES {
            return Ok(());
        }
        let text = format!("the queue is full: {count} tasks of {bytes} bytes wait");
        Err(RpcError::new(Fault::Refused, text)
            .next("wait for some of them, or: missiond task cancel ID"))
    }

    fn addressed<'a>(&'a self, to: &'a str) -> impl Iterator<Item = &'a SlotView> {
        let role = to.strip_prefix('@');
        let staying = self.slots.iter().filter(|slot| !slot.is_removed);
        staying.filter(move |slot| match role {
            Some(role) => slot.role == role,
            None => slot.name == to,
        })
    }

    fn unknown_address(&self, to: &str) -> RpcError {
        let (kind, prefix) = match to.starts_with('@') {
            true => ("role", "@"),
            false => ("slot", ""),
        };
        let slots = self.slots.iter().filter(|slot| slot.is_claude);
        let known: BTreeSet<&str> = match prefix {
            "@" => slots.map(|slot| slot.role.as_str()).collect(),
            _ => slots.map(|slot| slot.name.as_str()).collect(),
        };
        let word = to.trim_start_matches('@');
        let meant = nearest(word, known.iter().copied());
        let meant = meant.map(|meant| format!("did you mean `{prefix}{meant}`? "));
        let known: Vec<&str> = known.into_iter().collect();
        let next = match known.is_empty() {
            true => "there are no slots with Claude Code".to_owned(),
            false => format!(
                "{}the {kind}s are: {}",
                meant.unwrap_or_default(),
                known.join(", ")
            ),
        };
        let text = match kind {
            "role" => format!("no slot has the role `{word}`"),
            _ => format!("no slot `{word}`"),
        };
        RpcError::new(Fault::Usage, text).next(next)
    }

    fn may_have_a_task(&self, slot: &SlotView, taken: &BTreeSet<String>) -> bool {
        slot.is_claude
            && !slot.is_removed
            && !taken.contains(&slot.name)
            && !self.resting.contains_key(&slot.name)
    }

    fn slots_with_a_task(&self) -> BTreeSet<String> {
        let under_way = self.tasks.values().filter(|task| task.state.is_under_way());
        under_way.filter_map(|task| task.slot.clone()).collect()
    }

    /// A task whose slot or role has left the config fails: it would wait for ever.
    fn fail_unreachable(&mut self, now: DateTime<Utc>) {
        for seq in self.seqs(|task| task.state == TaskState::Queued) {
            let to = self.tasks[&seq].to.clone();
            if self.addressed(&to).next().is_none() {
                let why = format!("there is no slot for {to} any more");
                self.finish(seq, TaskState::Failed, Some(why), now, |_| {});
            }
        }
    }

    /// Copies from each slot whether its task needs a person.
    fn note_questions(&mut self) {
        for seq in self.seqs(|task| task.state.is_under_way()) {
            let task = &self.tasks[&seq];
            let slot = self
                .slots
                .iter()
                .find(|slot| Some(&slot.name) == task.slot.as_ref());
            let Some(slot) = slot.filter(|slot| slot.task.as_deref() == Some(&task.id)) else {
                continue;
            };
            let state = match slot.needs_person {
                true => TaskState::NeedsPerson,
                false => TaskState::Running,
            };
            if state != task.state {
                self.change(seq, |task| task.state = state);
            }
        }
    }

    fn give(&mut self, seq: u64, slot: String, now: DateTime<Utc>) {
        let task = self.change(seq, |task| {
            task.state = TaskState::Running;
            task.slot = Some(slot);
            task.started_at = Some(now);
            task.attempts += 1;
            task.error = None;
        });
        self.effects.extend(task.map(Effect::Give));
    }

    /// Puts it back to its place in the queue; the slot that refused it gets nothing for a while.
    fn put_back(&mut self, seq: u64, why: String, now: DateTime<Utc>) {
        if let Some(slot) = self.tasks[&seq].slot.clone() {
            self.resting.insert(slot, now + REST);
        }
        self.change(seq, |task| {
            task.attempts = task.attempts.saturating_sub(1);
            wait_again(task, why);
        });
    }

    fn cut_off(&mut self, seq: u64, why: String, now: DateTime<Utc>) {
        let task = &self.tasks[&seq];
        if task.attempts <= task.retries {
            self.change(seq, |task| wait_again(task, why));
        } else {
            self.finish(seq, TaskState::Failed, Some(why), now, |_| {});
        }
    }

    fn finish(
        &mut self,
        seq: u64,
        state: TaskState,
        error: Option<String>,
        now: DateTime<Utc>,
        more: impl FnOnce(&mut TaskStatus),
    ) {
        self.change(seq, |task| {
            task.state = state;
            task.error = error;
            task.ended_at = Some(now);
            task.duration_ms = task.started_at.map(|began| {
                let took = now.signed_duration_since(began).num_milliseconds();
                u64::try_from(took).unwrap_or_default()
            });
            more(task);
        });
        self.forget_the_oldest();
    }

    fn forget_the_oldest(&mut self) {
        let ended = self.seqs(|task| task.state.is_final());
        let too_many = ended.len().saturating_sub(MAX_ENDED);
        for seq in ended.into_iter().take(too_many) {
            let task = self.tasks.remove(&seq);
            self.effects
                .extend(task.map(|task| Effect::Remove(task.id.clone())));
        }
    }

    /// Changes a task and saves it.
    fn change(&mut self, seq: u64, edit: impl FnOnce(&mut TaskStatus)) -> Option<Arc<TaskStatus>> {
        let task = self.tasks.get_mut(&seq)?;
        edit(Arc::make_mut(task));
        self.effects.push(Effect::Save(task.clone()));
        Some(task.clone())
    }

    fn seqs(&self, wanted: impl Fn(&TaskStatus) -> bool) -> Vec<u64> {
        let wanted = self.tasks.iter().filter(|(_, task)| wanted(task));
        wanted.map(|(seq, _)| *seq).collect()
    }

    fn seq_of(&self, id: &str) -> Option<u64> {
        let mut tasks = self.tasks.iter();
        tasks.find(|(_, task)| task.id == id).map(|(seq, _)| *seq)
    }
}

fn too_late(task: &TaskStatus) -> String {
    let limit = Duration::from_millis(task.timeout_ms.unwrap_or_default());
    let limit = humantime::format_duration(limit);
    format!("not done within {limit}; its turn was interrupted")
}

/// Whether a known name is used again for the same task.
fn same_task(known: &TaskStatus, new: &NewTask) -> Result<(), RpcError> {
    if (&known.to, &known.text, &known.by) == (&new.to, &new.text, &new.by) {
        return Ok(());
    }
    let text = format!(
        "another task has the name `{}`; nothing was submitted",
        new.id
    );
    Err(RpcError::new(Fault::Refused, text).next("give it another --id"))
}

fn wait_again(task: &mut TaskStatus, why: String) {
    task.state = TaskState::Queued;
    task.slot = None;
    task.error = Some(why);
}

pub fn unknown_task<'a>(id: &str, known: impl Iterator<Item = &'a str>) -> RpcError {
    let meant = nearest(id, known).map(|meant| format!("did you mean `{meant}`? "));
    let next = "see which there are: missiond task list --all";
    RpcError::new(Fault::Usage, format!("no task `{id}`"))
        .next(format!("{}{next}", meant.unwrap_or_default()))
}

/// The answer, cut if it is too long to keep.
fn bounded(text: String) -> String {
    if text.len() <= MAX_ANSWER {
        return text;
    }
    let kept = excerpt::head(&text, MAX_ANSWER);
    let left = text.len() - kept.len();
    format!("{kept}\n[… {left} more bytes are in the slot's history]")
}
