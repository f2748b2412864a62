//! Looking at a slot from time to time: whether it lives, and what it uses. What that means is for the machine.

use super::Slot;
use super::kind::ProgramKind;
use super::lookups::LookedUp;
use crate::core::machine::{Input, Measure, limit_reset_in};
use crate::core::text::dollars::Dollars;
use crate::os::usage::Usage;
use chrono::{DateTime, Datelike, Local, NaiveTime, TimeDelta, TimeZone, Utc};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

/// Between two looks, at most.
const PACE: Duration = Duration::from_secs(30);
/// Where memory has a limit: a tool can fill a machine in the time between two looks.
const MEMORY_PACE: Duration = Duration::from_secs(5);
/// So many looks fit into the time after which silence is a stall.
const LOOKS_PER_STALL: u32 = 4;
/// Tools that use less of a processor than this, in hundredths, only wait.
const WORKING: u32 = 1;

/// What was seen at the last look.
#[derive(Debug)]
pub(super) struct HealthCheck {
    looked: Instant,
    /// A look has begun.
    looking: bool,
    busy: bool,
    signs: SignsOfLife,
    tools_cpu: Option<Duration>,
    /// When the last sign of life was seen.
    active: Instant,
    /// The kernel's count when the program was started.
    memory_kills: u64,
}

/// What moves when something is done: the words on the screen and the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct SignsOfLife {
    words: u64,
    transcript: Option<u64>,
}

impl HealthCheck {
    pub fn new(now: Instant) -> HealthCheck {
        HealthCheck {
            looked: now,
            looking: false,
            busy: false,
            signs: SignsOfLife::default(),
            tools_cpu: None,
            active: now,
            memory_kills: memory_kills(),
        }
    }
}

impl<K: ProgramKind> Slot<K> {
    /// When the next look is due; never while there is nothing to find.
    pub(super) fn health_check_due(&self) -> Option<Instant> {
        let supervision = &self.machine.config().supervision;
        let stall = supervision.stall_after.filter(|_| self.machine.is_busy());
        let memory = supervision.max_memory.filter(|_| self.machine.is_up());
        let stall = stall.map(|after| (after / LOOKS_PER_STALL).min(PACE));
        if self.health.looking {
            return None;
        }
        let pace = [stall, memory.map(|_| MEMORY_PACE)].into_iter().flatten();
        Some(self.health.looked + pace.min()?)
    }

    /// Begins a look: at the transcript first, which may lie on a file system that does not answer.
    pub(super) fn begin_look(&mut self) {
        self.health.looking = true;
        let transcript = self.transcript();
        self.lookups.of_claude(
            move || transcript.and_then(|path| Some(std::fs::metadata(path).ok()?.len())),
            |length| LookedUp::TranscriptLength(length.ok()),
        );
    }

    /// The look itself. A transcript of unknown length is no sign of life.
    pub(super) async fn check_health(&mut self, transcript: Option<Option<u64>>) {
        let now = Instant::now();
        let busy = self.machine.is_busy();
        let screen = self.screen.terminal().screen();
        let signs = SignsOfLife {
            words: words(screen.lines.iter().map(|line| line.text.as_str())),
            transcript: transcript.unwrap_or(self.health.signs.transcript),
        };
        let mut alive = !busy || !self.health.busy || signs != self.health.signs;
        let counted = self.machine.config().supervision.max_memory.is_some();
        let usage = if counted || !alive {
            self.usage().await
        } else {
            None
        };
        let tools_cpu = usage.map(|usage| usage.tools_cpu);
        alive |= self.tools_work(tools_cpu, now);
        self.health = HealthCheck {
            looked: now,
            looking: false,
            busy,
            signs,
            tools_cpu,
            active: if alive { now } else { self.health.active },
            memory_kills: self.health.memory_kills,
        };
        let measure = Measure {
            memory: usage.map(|usage| usage.memory),
            quiet_for: now.saturating_duration_since(self.health.active),
        };
        self.input(Input::Measured(measure)).await;
    }

    /// Whether the kernel has ended any process for want of memory since the program was started.
    pub(super) fn kernel_killed(&self) -> bool {
        memory_kills() > self.health.memory_kills
    }

    async fn usage(&mut self) -> Option<Usage> {
        let pid = self.machine.pid()?;
        self.context.meter.of(vec![pid]).await.into_iter().next()?
    }

    /// The first count of a silence has nothing to be compared with: it is no sign of death.
    fn tools_work(&self, tools_cpu: Option<Duration>, now: Instant) -> bool {
        let (Some(tools_cpu), Some(before)) = (tools_cpu, self.health.tools_cpu) else {
            return false;
        };
        let since = now.saturating_duration_since(self.health.looked);
        tools_cpu.saturating_sub(before) * 100 > since * WORKING
    }
}

/// How many processes the kernel has killed for want of memory; 0 where it does not say.
fn memory_kills() -> u64 {
    let counts = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let count = counts
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// The letters alone: a spinner that turns and a clock that counts go on in a program that hangs.
fn words<'a>(lines: impl Iterator<Item = &'a str>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for line in lines {
        for letter in line.chars().filter(|letter| letter.is_alphabetic()) {
            letter.hash(&mut hasher);
        }
        '\n'.hash(&mut hasher);
    }
    hasher.finish()
}

pub(super) fn limited(text: String) -> Input {
    let until = limit_reset(&text);
    Input::Limited { text, until }
}

/// What was spent today.
pub(super) fn cost_today(grown: Dollars) -> Option<Input> {
    let (day, ends) = today()?;
    Some(Input::CostOn { day, ends, grown })
}

/// The number of this day, and its end; a day is that of the daemon's time zone.
pub(super) fn today() -> Option<(i32, Instant)> {
    let now = Local::now();
    let tomorrow = now.date_naive().succ_opt()?.and_time(NaiveTime::MIN);
    // A day may begin later than at midnight, when clocks are changed then.
    let tomorrow = Local.from_local_datetime(&tomorrow).earliest();
    let left = tomorrow.map_or(TimeDelta::days(1), |tomorrow| tomorrow - now);
    let ends = Instant::now().checked_add(left.to_std().ok()?)?;
    Some((now.date_naive().num_days_from_ce(), ends))
}

/// When the usage limit that these words tell of is lifted. The screen shows the time of the slot's surroundings,
/// which are those of the daemon.
pub(super) fn limit_reset(text: &str) -> Option<Instant> {
    let wait = limit_reset_in(text, Local::now())?;
    Instant::now().checked_add(wait)
}

/// This moment, for a daemon that comes after this one.
pub(super) fn by_the_clock(until: Instant) -> Option<DateTime<Utc>> {
    let left = until.saturating_duration_since(Instant::now());
    Utc::now().checked_add_signed(TimeDelta::from_std(left).ok()?)
}

/// This moment, as long as it is to come.
pub(super) fn moment_of(time: DateTime<Utc>) -> Option<Instant> {
    let left = time.signed_duration_since(Utc::now()).to_std().ok()?;
    Instant::now().checked_add(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_to_come_is_found_again_and_one_that_is_over_is_not() {
        let until = Instant::now() + Duration::from_secs(3600);
        let again = moment_of(by_the_clock(until).unwrap()).unwrap();
        let (early, late) = (until.min(again), until.max(again));
        assert!(late - early < Duration::from_secs(60));
        assert_eq!(moment_of(Utc::now() - TimeDelta::seconds(1)), None);
    }

    #[test]
    fn a_spinner_and_a_clock_are_no_signs_of_life() {
        let one = ["✻ Pondering… (12s · esc)", "❯"];
        let later = ["✽ Pondering… (604s · esc)", "❯"];
        let other = ["✽ Pondering… (604s · esc)", "❯ x"];
        let of = |lines: [&'static str; 2]| words(lines.into_iter());
        assert_eq!(of(one), of(later));
        assert_ne!(of(one), of(other));
    }
}
