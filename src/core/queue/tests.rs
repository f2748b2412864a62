use super::*;
use proptest::prelude::*;

/// A queue, its time, and the content of the disk.
struct World {
    queue: Queue,
    now: DateTime<Utc>,
    slots: Vec<SlotView>,
    saved: BTreeMap<String, TaskStatus>,
    /// Task and slot, in the order in which they were given out.
    given: Vec<(String, String)>,
    back: Vec<String>,
}

impl World {
    fn new(slots: &[(&str, &str)]) -> World {
        let slots = slots.iter().map(|(name, role)| SlotView {
            name: (*name).to_owned(),
            role: (*role).to_owned(),
            is_claude: *role != "shell",
            is_free: true,
            task: None,
            needs_person: false,
            is_removed: false,
        });
        let mut world = World {
            queue: Queue::default(),
            now: DateTime::UNIX_EPOCH,
            slots: slots.collect(),
            saved: BTreeMap::new(),
            given: Vec::new(),
            back: Vec::new(),
        };
        world.look();
        world
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Save(task) => drop(self.saved.insert(task.id.clone(), (*task).clone())),
                Effect::Remove(id) => drop(self.saved.remove(&id)),
                Effect::Give(task) => {
                    let slot = task.slot.clone().unwrap();
                    let on_disk = &self.saved[&task.id];
                    assert_eq!(
                        on_disk.slot.as_ref(),
                        Some(&slot),
                        "given before it was saved"
                    );
                    assert_eq!(on_disk.state, TaskState::Running);
                    self.slot(&slot).is_free = false;
                    self.slot(&slot).task = Some(task.id.clone());
                    self.given.push((task.id.clone(), slot));
                }
                Effect::TakeBack(id) => self.back.push(id),
                Effect::LookFor(_) => {}
            }
        }
    }

    fn slot(&mut self, name: &str) -> &mut SlotView {
        self.slots
            .iter_mut()
            .find(|slot| slot.name == name)
            .unwrap()
    }

    fn look(&mut self) {
        let effects = self.queue.see(self.slots.clone(), self.now);
        self.perform(effects);
    }

    fn try_submit(&mut self, id: &str, to: &str, retries: u32) -> Result<(), RpcError> {
        self.try_new(NewTask {
            id: id.to_owned(),
            to: to.to_owned(),
            text: format!("do {id}"),
            retries,
            by: "user".to_owned(),
            timeout_ms: None,
        })
    }

    fn try_new(&mut self, new: NewTask) -> Result<(), RpcError> {
        let (_, effects) = self.queue.submit(new, self.now)?;
        self.perform(effects);
        let effects = self.queue.advance(self.now);
        self.perform(effects);
        Ok(())
    }

    fn submit(&mut self, id: &str, to: &str) {
        self.try_submit(id, to, 0).unwrap();
    }

    fn end(&mut self, id: &str, outcome: Outcome) {
        self.now += TimeDelta::seconds(1);
        for slot in &mut self.slots {
            if slot.task.as_deref() == Some(id) {
                (slot.task, slot.is_free, slot.needs_person) = (None, true, false);
            }
        }
        let effects = self.queue.ended(id, outcome, self.now);
        self.perform(effects);
        self.look();
    }

    fn task(&self, id: &str) -> &TaskStatus {
        &self.saved[id]
    }

    fn state(&self, id: &str) -> TaskState {
        self.task(id).state
    }
}

/// A task with a time of ten seconds.
fn timed(id: &str, to: &str) -> NewTask {
    NewTask {
        id: id.to_owned(),
        to: to.to_owned(),
        text: format!("do {id}"),
        retries: 3,
        by: "user".to_owned(),
        timeout_ms: Some(10_000),
    }
}

#[test]
fn the_same_name_is_the_same_task_or_refused() {
    let mut world = World::new(&[("a", "coder")]);
    world.submit("nightly", "a");
    world.submit("nightly", "a");
    assert_eq!(world.queue.all().count(), 1);
    assert_eq!(given(&world), [("nightly", "a")]);
    world.end("nightly", answered());
    // Also after it was done: a repeated request gets its answer and not another turn.
    world.submit("nightly", "a");
    assert_eq!(given(&world), [("nightly", "a")]);
    for other in [
        NewTask {
            text: "something else".to_owned(),
            ..timed("nightly", "a")
        },
        NewTask {
            by: "slot:a".to_owned(),
            ..timed("nightly", "a")
        },
    ] {
        let refused = world.try_new(other).unwrap_err();
        assert_eq!(refused.fault, Fault::Refused);
    }
}

#[test]
fn a_task_whose_time_is_over_is_taken_back_and_fails() {
    let mut world = World::new(&[("a", "coder")]);
    world.try_new(timed("first", "a")).unwrap();
    world.try_new(timed("second", "a")).unwrap();
    // The time of a waiting task has not begun.
    assert_eq!(
        world.queue.poll_timeout(),
        Some(world.now + TimeDelta::seconds(10))
    );
    world.now += TimeDelta::seconds(9);
    world.look();
    assert!(world.back.is_empty());
    world.now += TimeDelta::seconds(1);
    world.look();
    world.look();
    assert_eq!(world.back, ["first"]);
    assert_eq!(world.queue.poll_timeout(), None);
    world.end(
        "first",
        Outcome::Cancelled("the turn was interrupted".to_owned()),
    );
    assert_eq!(world.state("first"), TaskState::Failed);
    let why = world.task("first").error.clone().unwrap();
    assert!(why.contains("not done within 10s"), "{why}");
    assert_eq!(given(&world), [("first", "a"), ("second", "a")]);
    // An answer in the last moment counts.
    world.now += TimeDelta::seconds(30);
    world.look();
    assert_eq!(world.back, ["first", "second"]);
    world.end("second", answered());
    assert_eq!(world.state("second"), TaskState::Done);
}

fn answered() -> Outcome {
    Outcome::Answered {
        text: Some("yes".to_owned()),
        session_id: Some("s".to_owned()),
    }
}

fn ended_under_it() -> Outcome {
    Outcome::CutOff("the program ended (crash)".to_owned())
}

fn given(world: &World) -> Vec<(&str, &str)> {
    let given = world.given.iter();
    given
        .map(|(id, slot)| (id.as_str(), slot.as_str()))
        .collect()
}

#[test]
fn a_role_is_served_by_its_free_slots_in_the_order_of_submission() {
    let mut world = World::new(&[("a", "coder"), ("b", "coder"), ("r", "reviewer")]);
    for id in ["1", "2", "3", "4"] {
        world.submit(id, "@coder");
    }
    world.submit("5", "r");
    assert_eq!(given(&world), [("1", "a"), ("2", "b"), ("5", "r")]);
    world.end("2", answered());
    assert_eq!(given(&world)[3], ("3", "b"));
    let done = world.task("2");
    assert_eq!(
        (done.state, done.answer.as_deref()),
        (TaskState::Done, Some("yes"))
    );
    assert_eq!(done.duration_ms, Some(1000));
    assert_eq!(done.session_id.as_deref(), Some("s"));
    assert_eq!(world.state("4"), TaskState::Queued);
}

#[test]
fn who_is_unknown_or_no_claude_gets_nothing() {
    let mut world = World::new(&[("a", "coder"), ("sh", "shell")]);
    for (to, fault, hint) in [
        ("b", Fault::Usage, "did you mean `a`? the slots are: a"),
        (
            "@coderr",
            Fault::Usage,
            "did you mean `@coder`? the roles are: coder",
        ),
        ("@nobody", Fault::Usage, "the roles are: coder"),
        ("nobody", Fault::Usage, "the slots are: a"),
        ("sh", Fault::Refused, ""),
    ] {
        let error = world.try_submit("1", to, 0).unwrap_err();
        assert_eq!(error.fault, fault, "{to}");
        assert_eq!(error.next.unwrap_or_default(), hint, "{to}");
    }
    assert!(world.saved.is_empty());
}

#[test]
fn a_full_queue_refuses_and_loses_nothing() {
    let mut world = World::new(&[("a", "coder")]);
    for id in 0..MAX_WAITING {
        world.submit(&id.to_string(), "a");
    }
    let error = world.try_submit("more", "a", 0).unwrap_err();
    assert_eq!(error.fault, Fault::Refused);
    world.end("0", answered());
    world.submit("more", "a");
    assert_eq!(world.queue.all().count(), MAX_WAITING + 1);
}

#[test]
fn a_slot_that_ends_under_its_task_fails_it_unless_retries_were_asked_for() {
    let mut world = World::new(&[("a", "coder"), ("b", "coder")]);
    world.submit("once", "a");
    world.try_submit("twice", "b", 1).unwrap();
    world.end("once", ended_under_it());
    assert_eq!(world.state("once"), TaskState::Failed);
    assert_eq!(
        world.task("once").error.as_deref(),
        Some("the program ended (crash)")
    );
    world.end("twice", ended_under_it());
    assert_eq!(
        given(&world),
        [("once", "a"), ("twice", "b"), ("twice", "b")]
    );
    world.end("twice", ended_under_it());
    assert_eq!(world.state("twice"), TaskState::Failed);
    assert_eq!(world.task("twice").attempts, 2);
}

#[test]
fn a_turn_that_failed_is_not_tried_again() {
    let mut world = World::new(&[("a", "coder")]);
    world.try_submit("1", "a", 5).unwrap();
    world.end("1", Outcome::Failed("API error".to_owned()));
    assert_eq!(world.state("1"), TaskState::Failed);
}

#[test]
fn what_a_slot_did_not_take_keeps_its_place_and_the_slot_rests() {
    let mut world = World::new(&[("a", "coder")]);
    world.submit("1", "a");
    world.submit("2", "a");
    world.end(
        "1",
        Outcome::Untouched("a draft is in its input box".to_owned()),
    );
    assert_eq!(world.state("1"), TaskState::Queued);
    assert_eq!(world.task("1").attempts, 0);
    assert_eq!(world.given.len(), 1, "the slot rests");
    world.now = world.queue.poll_timeout().unwrap();
    let effects = world.queue.advance(world.now);
    world.perform(effects);
    assert_eq!(given(&world)[1], ("1", "a"));
    assert_eq!(world.task("1").error, None);
    assert_eq!(world.queue.poll_timeout(), None);
}

#[test]
fn a_question_for_a_person_shows_and_goes() {
    let mut world = World::new(&[("a", "coder")]);
    world.submit("1", "a");
    world.slot("a").needs_person = true;
    world.look();
    assert_eq!(world.state("1"), TaskState::NeedsPerson);
    world.slot("a").needs_person = false;
    world.look();
    assert_eq!(world.state("1"), TaskState::Running);
    world.end("1", answered());
    assert_eq!(world.state("1"), TaskState::Done);
}

#[test]
fn cancelling_ends_what_waits_and_takes_back_what_runs() {
    let mut world = World::new(&[("a", "coder")]);
    world.submit("1", "a");
    world.submit("2", "a");
    for id in ["2", "1"] {
        let effects = world.queue.cancel(id, world.now).unwrap();
        world.perform(effects);
    }
    assert_eq!(world.state("2"), TaskState::Cancelled);
    assert_eq!(
        (world.state("1"), &world.back[..]),
        (TaskState::Running, &["1".to_owned()][..])
    );
    world.end("1", Outcome::Cancelled("interrupted".to_owned()));
    assert_eq!(world.state("1"), TaskState::Cancelled);
    let again = world.queue.cancel("1", world.now).unwrap_err();
    assert_eq!(again.fault, Fault::Refused);
    assert_eq!(
        world.queue.cancel("9", world.now).unwrap_err().fault,
        Fault::Usage
    );
}

#[test]
fn a_task_whose_slot_has_left_the_config_fails() {
    let mut world = World::new(&[("a", "coder"), ("b", "other")]);
    world.submit("1", "@coder");
    world.submit("2", "@coder");
    world.slots.remove(0);
    world.look();
    assert_eq!(world.state("2"), TaskState::Failed);
    assert_eq!(world.state("1"), TaskState::Running, "its slot ends it");
}

#[test]
fn after_a_restart_what_waited_waits_and_what_ran_is_looked_for() {
    let mut world = World::new(&[("a", "coder")]);
    world.try_submit("ran", "a", 1).unwrap();
    world.submit("waited", "a");
    let (queue, effects) = Queue::restore(world.saved.values().cloned());
    let looked: Vec<_> = effects
        .iter()
        .map(|effect| match effect {
            Effect::LookFor(task) => task.id.as_str(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(looked, ["ran"]);
    world.queue = queue;
    world.slot("a").is_free = true;
    world.slot("a").task = None;
    world.look();
    assert_eq!(
        world.given.len(),
        1,
        "nothing is given to a slot that may have a task"
    );
    world.end("ran", Outcome::CutOff("nothing of it was found".to_owned()));
    assert_eq!(given(&world)[1..], [("ran", "a")]);
}

#[test]
fn a_queue_that_is_closed_gives_out_nothing() {
    let mut world = World::new(&[("a", "coder"), ("b", "coder")]);
    world.try_submit("1", "@coder", 3).unwrap();
    world.queue.close();
    world.end("1", ended_under_it());
    assert_eq!(
        (world.state("1"), world.given.len()),
        (TaskState::Queued, 1)
    );
}

#[test]
fn an_answer_that_is_too_long_ends_in_a_mark() {
    let mut world = World::new(&[("a", "coder")]);
    world.submit("1", "a");
    let outcome = Outcome::Answered {
        text: Some("é".repeat(MAX_ANSWER)),
        session_id: None,
    };
    world.end("1", outcome);
    let answer = world.task("1").answer.clone().unwrap();
    assert!(answer.len() < MAX_ANSWER + 100);
    assert!(
        answer.contains(&format!("{MAX_ANSWER} more bytes")),
        "{}",
        &answer[MAX_ANSWER..]
    );
}

#[derive(Debug, Clone)]
enum Op {
    Submit(usize, u32),
    End(usize, usize),
    Cancel(usize),
    Time(i64),
    Restart,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..4usize, 0..3u32).prop_map(|(to, retries)| Op::Submit(to, retries)),
        (0..40usize, 0..5usize).prop_map(|(id, how)| Op::End(id, how)),
        (0..40usize).prop_map(Op::Cancel),
        (0..10i64).prop_map(Op::Time),
        Just(Op::Restart),
    ]
}

proptest! {
    /// Whatever happens: no slot has two tasks, no task is given out more often than requested, and none is lost.
    #[test]
    fn nothing_is_lost_and_nothing_runs_twice(ops in prop::collection::vec(op(), 1..120)) {
        let mut world = World::new(&[("a", "coder"), ("b", "coder"), ("r", "reviewer")]);
        let mut submitted = 0;
        for op in ops {
            match op {
                Op::Submit(to, retries) => {
                    let to = ["@coder", "a", "b", "@reviewer"][to];
                    world.try_submit(&submitted.to_string(), to, retries).unwrap();
                    submitted += 1;
                }
                Op::End(id, how) => {
                    let outcome = [
                        answered(),
                        ended_under_it(),
                        Outcome::Failed("x".to_owned()),
                        Outcome::Cancelled("x".to_owned()),
                        Outcome::Untouched("x".to_owned()),
                    ][how].clone();
                    world.end(&id.to_string(), outcome);
                }
                Op::Cancel(id) => {
                    if let Ok(effects) = world.queue.cancel(&id.to_string(), world.now) {
                        world.perform(effects);
                    }
                }
                Op::Time(seconds) => {
                    world.now += TimeDelta::seconds(seconds);
                    world.look();
                }
                Op::Restart => {
                    world.queue = Queue::restore(world.saved.values().cloned()).0;
                    world.look();
                }
            }
            prop_assert_eq!(world.saved.len(), submitted);
            let running: Vec<&TaskStatus> =
                world.saved.values().filter(|task| task.state.is_under_way()).collect();
            let slots: BTreeSet<_> = running.iter().map(|task| &task.slot).collect();
            prop_assert_eq!(slots.len(), running.len(), "a slot has two tasks");
            for task in world.saved.values() {
                prop_assert!(task.attempts <= task.retries + 1);
            }
        }
    }
}
