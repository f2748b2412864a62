//! The limits of a running slot, and what happens when one is exceeded: stalls, memory, turns, idle time, and the usage limit of
//! the account.

use super::life::Ending;
use super::up::{Hands, Up};
use super::*;
use crate::core::claude::keys;
use crate::core::settings::{OnLimit, OnStall};
use crate::core::text::dollars::Dollars;
use serde::{Deserialize, Serialize};

/// The result of a health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// Memory of its processes in bytes, if it was measured.
    pub memory: Option<u64>,
    /// How long it has shown no sign of life.
    pub quiet_for: Duration,
}

/// The history of a slot. It is kept on disk, so that limits apply across daemons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Past {
    /// Automatic restarts after a failure; a person's restarts do not count.
    pub restarts: u32,
    /// Since a person last started it, like the cost.
    pub turns: u32,
    pub cost: Dollars,
    /// The last cost figure of the current run.
    figure: Option<Dollars>,
    /// The figure that the current run began with, as far as it is known before any was heard.
    begins: Option<Dollars>,
    /// Whether the current run was given work, so that its first figure may have grown already.
    has_worked: bool,
    today: DayCost,
}

/// What a slot has cost on the last day on which it has cost anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct DayCost {
    day: i32,
    cost: Dollars,
    /// What all slots of its role have cost on that day. Each of them remembers its own part.
    #[serde(skip)]
    of_role: Dollars,
}

/// Ends of a day that differ by no more than this are the same one.
const SAME_END: Duration = Duration::from_secs(60);

/// The limits of a day, by their names in the config.
const OF_SLOT: &str = "max_cost_per_day";
const OF_ROLE: &str = "max_role_cost_per_day";

impl Past {
    /// The number of the last day on which it has cost anything, and how much that was.
    pub fn today(&self) -> (i32, Dollars) {
        (self.today.day, self.today.cost)
    }

    pub fn begin_anew(&mut self) {
        self.turns = 0;
        self.cost = Dollars::ZERO;
    }

    /// A resumed session begins with its last figure, or without one; a cleared session begins without one. So only the growth of
    /// the figure within a run counts. The growth is what comes back.
    fn add_figure(&mut self, figure: Dollars) -> Dollars {
        let before = match self.figure.replace(figure) {
            Some(before) => before,
            // Nobody heard what the run began with, for instance while the daemon was down.
            None if self.has_worked => self.begins.unwrap_or(figure),
            None => figure,
        };
        let grown = match before <= figure {
            true => figure.minus(before),
            false => figure,
        };
        self.cost = self.cost.plus(grown);
        grown
    }

    /// The next figure is the first of another run.
    pub fn begin_run(&mut self) {
        self.begins = self.figure.take().or(self.begins);
        self.has_worked = false;
    }

    /// The run begins a conversation, which has cost nothing.
    pub(super) fn begin_conversation(&mut self) {
        self.begins = Some(Dollars::ZERO);
    }

    /// What is heard from now on may have cost something.
    pub(super) fn works(&mut self) {
        self.has_worked = true;
    }
}

impl Machine {
    pub fn past(&self) -> Past {
        self.past
    }

    /// The conversation that is about to be resumed is another one: what it has cost so far is unknown.
    pub fn begins_elsewhere(&mut self) {
        self.past.begins = None;
    }

    /// The status line shows the cost of the session so far. At the limit the slot is stopped in the middle of its turn:
    /// otherwise an endless turn would have no limit.
    pub(super) fn costs(&mut self, figure: Dollars) {
        let grown = self.past.add_figure(figure);
        let cost = self.past.cost;
        if grown > Dollars::ZERO {
            self.tell(EventKind::Cost {
                dollars: grown.as_f64(),
                total: cost.as_f64(),
            });
            self.effects.push(Effect::DateCost(grown));
        }
        let Some(most) = self
            .config
            .supervision
            .max_cost
            .filter(|most| cost >= *most)
        else {
            return;
        };
        if self.is_up() {
            let text = format!("{cost} spent, {most} allowed");
            self.trouble("max_cost", &text);
            self.end(Ending::ByLimit(format!("max_cost: {text}")));
        }
    }

    /// Beyond the limit of a day nothing is cut off: the turn ends by itself, and messages wait.
    pub(super) fn cost_on(&mut self, day: i32, ends: Instant, grown: Dollars) {
        let today = self.today(day);
        today.cost = today.cost.plus(grown);
        self.hold_until_tomorrow(ends, false);
    }

    /// The same for what all slots of its role have cost together; a person is told once, not by each of them.
    pub(super) fn role_cost_on(&mut self, cost: RoleCost) {
        self.today(cost.day).of_role = cost.cost;
        self.hold_until_tomorrow(cost.ends, cost.is_told);
    }

    /// The count of this day; another day begins anew.
    fn today(&mut self, day: i32) -> &mut DayCost {
        let today = &mut self.past.today;
        if today.day != day {
            *today = DayCost {
                day,
                ..DayCost::default()
            };
        }
        today
    }

    fn hold_until_tomorrow(&mut self, ends: Instant, is_told: bool) {
        let Some((limit, spent, most)) = self.reached() else {
            return;
        };
        // An earlier daemon has told it, and its clock is not exactly this one's.
        let is_held = |until: Instant| until + SAME_END >= ends;
        let is_told = is_told || self.held_until.is_some_and(is_held);
        self.held_until = self.held_until.max(Some(ends));
        if !is_told {
            let who = match limit {
                OF_ROLE => format!(" by all slots of the role {}", self.running().role),
                _ => String::new(),
            };
            let text =
                format!("{spent} spent today{who}, {most} allowed: messages wait until tomorrow");
            self.trouble(limit, &text);
        }
    }

    /// The limit of a day that is reached: its name, what was spent, and what is allowed.
    fn reached(&self) -> Option<(&'static str, Dollars, Dollars)> {
        let (today, limits) = (self.past.today, &self.config.supervision);
        let all = [
            (OF_SLOT, today.cost, limits.max_cost_per_day),
            (OF_ROLE, today.of_role, limits.max_role_cost_per_day),
        ];
        all.into_iter().find_map(|(name, spent, most)| {
            let most = most.filter(|most| spent >= *most)?;
            Some((name, spent, most))
        })
    }

    /// Whether it has cost as much as it may on a day.
    pub(super) fn is_over_budget(&self) -> bool {
        self.reached().is_some()
    }

    /// Whether it claims to be working, so that silence means something.
    pub fn is_busy(&self) -> bool {
        self.up().is_some_and(Up::is_busy)
    }

    pub(super) fn measured(&mut self, measure: Measure, now: Instant) {
        let supervision = &self.config.supervision;
        if let (Some(most), Some(memory)) = (supervision.max_memory, measure.memory)
            && memory > most
        {
            let text = format!("{} in use, {} allowed", in_mb(memory), in_mb(most));
            self.trouble(Cause::TooMuchMemory.name(), &text);
            return self.end(Ending::Failing(Cause::TooMuchMemory, text));
        }
        let stall = supervision
            .stall_after
            .filter(|after| self.is_busy() && measure.quiet_for >= *after);
        let Some(up) = self.up_mut() else { return };
        let known = up.errors.stalled.is_some();
        up.errors.stalled = stall.map(|_| measure.quiet_for);
        if stall.is_some() && !known {
            self.stalled(measure.quiet_for, now);
        }
    }

    fn stalled(&mut self, quiet_for: Duration, now: Instant) {
        let text = no_sign_of_life(quiet_for);
        self.trouble(Cause::Stalled.name(), &text);
        match self.config.supervision.on_stall {
            OnStall::Report => {}
            OnStall::Interrupt => self.interrupt_stall(now),
            OnStall::Restart => self.end(Ending::Failing(Cause::Stalled, text)),
        }
    }

    /// One Esc, as a person would press it; none during a key sequence or at a dialog.
    fn interrupt_stall(&mut self, now: Instant) {
        let Some(up) = self.up() else { return };
        let busy = !up.hands_are_free() || up.typing.is_some();
        if busy || up.dialog().is_some() || up.state() == State::Starting {
            return;
        }
        self.press(Purpose::Declines, keys::ESC, "Esc", "it has stalled");
        if let Some(up) = self.up_mut() {
            up.hands = Hands::Interrupting {
                wanted: Vec::new(),
                effect: "interrupted",
                until: now + ESC_WORKS,
            };
        }
    }

    /// The answer of a turn is known; checks whether that was the last turn allowed.
    pub(super) fn turn_found(&mut self, answer: Answer, now: Instant) {
        let is_turn = self.up().is_some_and(|up| up.turn.is_some());
        if !self.found(answer, now) || !is_turn {
            return;
        }
        self.past.turns = self.past.turns.saturating_add(1);
        let turns = self.past.turns;
        let most = self.config.supervision.max_turns.map(u32::from);
        if most.is_some_and(|most| turns >= most) {
            let text = format!("{turns} turns, and no more are allowed");
            self.trouble("max_turns", &text);
            self.end(Ending::ByLimit(format!("max_turns: {text}")));
        }
    }

    /// Stops a slot that has been idle for long enough.
    pub(super) fn stop_at_rest(&mut self, now: Instant) {
        let idle_stop = self.config.supervision.idle_stop;
        let queue_is_empty = self.queue.is_empty();
        let Some(up) = self.up_mut() else { return };
        up.rests_since = match queue_is_empty && up.is_at_rest() {
            true => up.rests_since.or(Some(now)),
            false => None,
        };
        let rest = up
            .rests_since
            .map(|since| now.saturating_duration_since(since));
        let (Some(rest), Some(most)) = (rest, idle_stop) else {
            return;
        };
        if rest >= most {
            let text = format!("idle for {}", humantime::format_duration(most));
            self.trouble("idle_stop", &text);
            self.end(Ending::ByLimit(format!("idle_stop: {text}")));
        }
    }

    /// Whether nothing is in progress that another conversation would cut off.
    pub fn is_at_rest(&self) -> bool {
        match &self.life {
            Life::Down { .. } | Life::Waiting { .. } => true,
            Life::Unreached { .. } => false,
            Life::Up(up) => self.queue.is_empty() && up.is_at_rest(),
            Life::Launching { .. } | Life::Stopping { .. } => false,
        }
    }

    /// When the slot is stopped if nothing happens until then.
    pub(super) fn rest_ends(&self) -> Option<Instant> {
        let most = self.config.supervision.idle_stop?;
        Some(self.up()?.rests_since? + most)
    }

    /// An error above the input box that concerns more than one turn is reported once.
    pub(super) fn check_error(&mut self) {
        let Some(up) = self.up_mut() else { return };
        let error = up.last_error();
        if up.errors.told == error {
            return;
        }
        up.errors.told = error.clone();
        let Some(text) = error else { return };
        match cause::of_error(&text) {
            // Possibly from another day: the time that it names is not the next one.
            Some(Cause::UsageLimit) if up.errors.of_the_past => {}
            Some(Cause::UsageLimit) => self.effects.push(Effect::FindReset(text)),
            Some(cause) => self.trouble(cause.name(), &text),
            None => {}
        }
    }

    /// The account's usage limit is reached; it is reset at `until`, if the screen says when.
    pub(super) fn limited(&mut self, text: String, until: Option<Instant>) {
        self.trouble(Cause::UsageLimit.name(), &text);
        self.cause = Some(Cause::UsageLimit);
        match self.config.supervision.on_limit {
            OnLimit::Wait if self.is_over_budget() => self.held_until = self.held_until.max(until),
            OnLimit::Wait => self.held_until = until,
            OnLimit::Stop if self.is_up() => self.end(Ending::ByLimit(text)),
            OnLimit::Stop => {}
        }
    }

    /// When the usage limit is reset that messages or the next start wait for.
    pub fn held_until(&self) -> Option<Instant> {
        self.held_until
    }

    /// The messages that wait for the reset of the usage limit, for a person.
    pub(super) fn held_back(&self, now: Instant) -> Option<String> {
        let left = self.held_until?.checked_duration_since(now)?;
        let queued = self.queued_messages()?;
        let left = in_whole_seconds(left);
        let what = match self.reached() {
            Some((limit, ..)) => format!("{limit} counts anew"),
            None => "the usage limit is reset".to_owned(),
        };
        Some(format!("{queued}, until {what} in {left}"))
    }

    /// Whether messages wait for the reset of the usage limit.
    pub(super) fn is_held(&mut self, now: Instant) -> bool {
        if self.held_until.is_some_and(|until| until <= now) {
            self.held_until = None;
            if self.is_over_budget() {
                self.past.today = DayCost::default();
            }
        }
        self.held_until.is_some()
    }

    pub(super) fn trouble(&mut self, cause: &str, text: &str) {
        self.tell(EventKind::Trouble {
            cause: cause.to_owned(),
            text: text.to_owned(),
        });
    }
}

impl Up {
    fn is_busy(&self) -> bool {
        matches!(
            self.state(),
            State::Starting | State::Thinking | State::Responding | State::ToolRunning
        )
    }

    /// Its next turn has begun.
    pub(super) fn forget_failure(&mut self) {
        self.errors.failure = self.errors.failure.take().filter(|_| !self.is_busy());
    }

    /// A slot that is idle or asks is no longer stalled, and no health check would notice.
    pub(super) fn forget_stall(&mut self) {
        self.errors.stalled = self.errors.stalled.filter(|_| self.is_busy());
    }

    /// Nothing is in progress, in the foreground or in the background.
    fn is_at_rest(&self) -> bool {
        let background = self.sight.as_ref().map_or(0, |sight| sight.background);
        self.state() == State::Idle
            && self.turn.is_none()
            && self.hands_are_free()
            && self.typing.is_none()
            && background == 0
    }
}

pub(super) fn no_sign_of_life(quiet_for: Duration) -> String {
    let whole = Duration::from_secs(quiet_for.as_secs());
    format!("no sign of life for {}", humantime::format_duration(whole))
}

/// The rest of a wait, never zero while something is left.
pub(super) fn in_whole_seconds(left: Duration) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_secs(left.as_secs_f64().ceil() as u64))
}

fn in_mb(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
}
