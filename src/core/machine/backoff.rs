//! When a slot that died may start again. Pure arithmetic on given instants.

use crate::core::settings::Supervision;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The delays between restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    pub first: Duration,
    pub most: Duration,
    /// A run that was idle for this long counts as healthy and clears the earlier failures.
    pub healthy: Duration,
    /// Give up after this many failures within `window`.
    pub tries: usize,
    pub window: Duration,
}

impl Pace {
    /// From the slot's settings. A first delay that is longer than the longest raises the longest.
    pub fn of(supervision: &Supervision) -> Pace {
        Pace {
            first: supervision.restart_delay,
            most: supervision.restart_delay_max.max(supervision.restart_delay),
            healthy: supervision.restart_reset,
            tries: supervision.restart_tries.into(),
            window: supervision.restart_window,
        }
    }
}

/// The recent failures of one slot, and the delay before its next start.
#[derive(Debug, Clone)]
pub struct Backoff {
    pace: Pace,
    /// Instants of recent failures, at most `tries` of them: older ones never matter.
    failures: VecDeque<Instant>,
    /// Failures since the last healthy run: the exponent of the delay.
    streak: u32,
    /// State of a small random generator, so that slots that died together do not start together.
    noise: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextTry {
    After(Duration),
    GiveUp,
}

impl Backoff {
    pub fn new(pace: Pace, seed: u64) -> Backoff {
        Backoff {
            pace,
            failures: VecDeque::new(),
            streak: 0,
            noise: seed | 1,
        }
    }

    /// Applies new settings; earlier failures still count.
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    /// The program died after it had been idle, and so healthy, for `healthy_for`.
    pub fn failed(&mut self, now: Instant, healthy_for: Duration) -> NextTry {
        if healthy_for >= self.pace.healthy {
            self.forget();
        }
        self.failures.push_back(now);
        while self.failures.len() > self.pace.tries {
            self.failures.pop_front();
        }
        let window = self.pace.window;
        self.failures
            .retain(|at| now.saturating_duration_since(*at) <= window);
        if self.failures.len() >= self.pace.tries {
            return NextTry::GiveUp;
        }
        let delay = self.delay();
        self.streak = self.streak.saturating_add(1);
        NextTry::After(delay)
    }

    /// Forgets the failures: a person took over, or a run was healthy.
    pub fn forget(&mut self) {
        self.failures.clear();
        self.streak = 0;
    }

    /// Doubles from `first` up to `most`, with up to 10% jitter.
    fn delay(&mut self) -> Duration {
        let factor = 1u32.checked_shl(self.streak.min(20)).unwrap_or(u32::MAX);
        let base = self.pace.first.saturating_mul(factor).min(self.pace.most);
        base + base.mul_f64(self.jitter() * 0.1)
    }

    /// Between 0 and 1, from a xorshift generator.
    fn jitter(&mut self) -> f64 {
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 7;
        self.noise ^= self.noise << 17;
        (self.noise >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual() -> Pace {
        Pace::of(&Supervision::default())
    }

    fn after(next: NextTry) -> Duration {
        match next {
            NextTry::After(delay) => delay,
            NextTry::GiveUp => panic!("gave up"),
        }
    }

    #[test]
    fn delays_double_and_stay_below_the_most() {
        let pace = Pace {
            tries: 100,
            ..usual()
        };
        let mut backoff = Backoff::new(pace, 7);
        let start = Instant::now();
        let delays: Vec<Duration> = (0..10)
            .map(|_| after(backoff.failed(start, Duration::ZERO)))
            .collect();
        for (index, delay) in delays.iter().enumerate() {
            let base = Duration::from_secs(1 << index.min(6)).min(pace.most);
            assert!(
                *delay >= base && *delay <= base.mul_f64(1.1),
                "{index}: {delay:?}"
            );
        }
    }

    #[test]
    fn the_fifth_failure_in_ten_minutes_is_the_last() {
        let mut backoff = Backoff::new(usual(), 7);
        let start = Instant::now();
        for minute in 0..4 {
            let now = start + Duration::from_secs(minute * 60);
            assert_ne!(backoff.failed(now, Duration::ZERO), NextTry::GiveUp);
        }
        let now = start + Duration::from_secs(4 * 60);
        assert_eq!(backoff.failed(now, Duration::ZERO), NextTry::GiveUp);
    }

    #[test]
    fn old_failures_do_not_count() {
        let mut backoff = Backoff::new(usual(), 7);
        let start = Instant::now();
        for hour in 0..50 {
            let now = start + Duration::from_secs(hour * 3600);
            assert_ne!(backoff.failed(now, Duration::ZERO), NextTry::GiveUp);
        }
    }

    #[test]
    fn a_healthy_run_starts_the_series_anew() {
        let mut backoff = Backoff::new(usual(), 7);
        let start = Instant::now();
        for _ in 0..4 {
            after(backoff.failed(start, Duration::ZERO));
        }
        let delay = after(backoff.failed(start, Duration::from_secs(301)));
        assert!(delay < Duration::from_millis(1101), "{delay:?}");
    }
}
