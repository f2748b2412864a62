//! Which task of a file runs when. Pure: ended tasks come in, tasks to start come out.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

#[cfg(test)]
mod tests;

/// One task of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub name: String,
    pub work: Work,
    pub timeout: Option<Duration>,
    /// Positions of the tasks in the plan that must succeed first.
    pub needs: Vec<usize>,
    /// How often it is tried again when it fails.
    pub retries: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Shell lines, run one after another up to the first that fails.
    Commands {
        lines: Vec<String>,
        cwd: PathBuf,
        env: BTreeMap<String, String>,
    },
    /// A prompt for a slot or a `@role`.
    Prompt { to: String, text: String },
}

/// How a task has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub success: bool,
    pub exit_code: Option<i32>,
    pub duration: Duration,
    pub output: String,
    pub error: Option<String>,
    /// It was never started, or was stopped before its end; it did not fail itself.
    pub skipped: bool,
}

impl Report {
    fn skipped(why: String) -> Report {
        Report {
            error: Some(why),
            skipped: true,
            ..Report::default()
        }
    }
}

#[derive(Debug)]
enum State {
    Waiting,
    Running { attempt: u32 },
    Ended(Report),
}

/// The next action.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Start the task at this position; the second number is the attempt, from 1.
    Start(usize, u32),
    /// The task at this position has ended, or will never begin.
    Tell(usize),
    /// Stop all running tasks.
    StopAll,
}

/// The state of a running plan.
#[derive(Debug)]
pub struct Run {
    jobs: Vec<Job>,
    states: Vec<State>,
    /// How many may run at once.
    limit: usize,
    /// The first failure ends everything.
    fail_fast: bool,
    /// Nothing more is started.
    stopped: Option<String>,
}

impl Run {
    /// The jobs have no cycle: the parser has checked that.
    pub fn new(jobs: Vec<Job>, limit: usize, fail_fast: bool) -> Run {
        let states = jobs.iter().map(|_| State::Waiting).collect();
        Run {
            jobs,
            states,
            limit: limit.max(1),
            fail_fast,
            stopped: None,
        }
    }

    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    pub fn report(&self, place: usize) -> Option<&Report> {
        match &self.states[place] {
            State::Ended(report) => Some(report),
            State::Waiting | State::Running { .. } => None,
        }
    }

    pub fn is_over(&self) -> bool {
        self.states
            .iter()
            .all(|state| matches!(state, State::Ended(_)))
    }

    /// Skips the tasks that can't run any more and starts those that can.
    pub fn advance(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        while let Some((place, why)) = self.next_to_skip() {
            self.states[place] = State::Ended(Report::skipped(why));
            effects.push(Effect::Tell(place));
        }
        while let Some(place) = self.next_to_start() {
            self.states[place] = State::Running { attempt: 1 };
            effects.push(Effect::Start(place, 1));
        }
        effects
    }

    /// The task at this position has ended; a failed one may be tried again.
    pub fn ended(&mut self, place: usize, report: Report) -> Vec<Effect> {
        let State::Running { attempt } = self.states[place] else {
            return Vec::new();
        };
        let failed = !report.success && !report.skipped;
        if failed && attempt <= self.jobs[place].retries && self.stopped.is_none() {
            self.states[place] = State::Running {
                attempt: attempt + 1,
            };
            return vec![Effect::Start(place, attempt + 1)];
        }
        self.states[place] = State::Ended(report);
        let mut effects = vec![Effect::Tell(place)];
        if failed && self.fail_fast && self.stopped.is_none() {
            effects.extend(self.stop(&format!("`{}` failed", self.jobs[place].name)));
        }
        effects.extend(self.advance());
        effects
    }

    /// Starts nothing more, and stops all running tasks.
    pub fn stop(&mut self, why: &str) -> Vec<Effect> {
        self.stopped.get_or_insert_with(|| why.to_owned());
        let mut effects = vec![Effect::StopAll];
        effects.extend(self.advance());
        effects
    }

    /// Why nothing more is started.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.as_deref()
    }

    fn next_to_skip(&self) -> Option<(usize, String)> {
        let waiting = |place: &usize| matches!(self.states[*place], State::Waiting);
        (0..self.jobs.len()).filter(waiting).find_map(|place| {
            let stopped = self.stopped.as_ref();
            let why = stopped.map(|why| format!("not started: {why}"));
            why.or_else(|| self.broken_need(place))
                .map(|why| (place, why))
        })
    }

    /// A task that this one needs and that has not succeeded.
    fn broken_need(&self, place: usize) -> Option<String> {
        let mut needs = self.jobs[place].needs.iter();
        needs.find_map(|need| {
            let report = self.report(*need).filter(|report| !report.success)?;
            let what = if report.skipped {
                "was not run"
            } else {
                "failed"
            };
            Some(format!(
                "not started: it needs `{}`, which {what}",
                self.jobs[*need].name
            ))
        })
    }

    fn next_to_start(&self) -> Option<usize> {
        let running = self
            .states
            .iter()
            .filter(|state| matches!(state, State::Running { .. }));
        if running.count() >= self.limit {
            return None;
        }
        (0..self.jobs.len()).find(|place| {
            let ready = |need: &usize| self.report(*need).is_some_and(|report| report.success);
            matches!(self.states[*place], State::Waiting)
                && self.jobs[*place].needs.iter().all(ready)
        })
    }
}

/// A cycle in the needs of the tasks, as the positions of its members; `None` if there is none.
pub fn circle(needs: &[Vec<usize>]) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Seen {
        No,
        OnTheWay,
        Done,
    }
    fn visit(
        place: usize,
        needs: &[Vec<usize>],
        seen: &mut [Seen],
        way: &mut Vec<usize>,
    ) -> Option<Vec<usize>> {
        match seen[place] {
            Seen::Done => return None,
            Seen::OnTheWay => {
                let from = way.iter().position(|on_the_way| *on_the_way == place)?;
                return Some(way[from..].to_vec());
            }
            Seen::No => {}
        }
        seen[place] = Seen::OnTheWay;
        way.push(place);
        let found = needs[place]
            .iter()
            .find_map(|need| visit(*need, needs, seen, way));
        way.pop();
        seen[place] = Seen::Done;
        found
    }
    let mut seen = vec![Seen::No; needs.len()];
    (0..needs.len()).find_map(|place| visit(place, needs, &mut seen, &mut Vec::new()))
}
