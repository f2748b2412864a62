//! How a slot's tree of processes ends: asked to, then made to, until nobody is left.

use super::FromShim;
use super::run::{READ, Shim};
use super::tree::{self, LeftOfTree};
use crate::core::model::ExitReport;
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// Longer than anyone waits for an end, and short enough to be added to any time.
const MAX_GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// What the child leaves behind when it ends by itself belongs to the slot and has this long to end.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);

/// A tree that forks while it is killed is killed again after this long.
const KILL_AGAIN: Duration = Duration::from_millis(20);

/// How often it is tried on those that seem to be beyond reach.
const KILL_RARELY: Duration = Duration::from_secs(1);

/// Processes that are still there this long after the first KILL are another user's or hang in the
/// kernel; an end of the child is no longer held back for them.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// How far the tree of processes is on its way to the end.
#[derive(Debug)]
pub(super) enum EndPhase {
    Alive,
    /// TERM was sent.
    Terminating {
        kill_at: Instant,
    },
    /// KILL was sent, and is again; until `patience` it is not remarkable that some are left.
    Killing {
        again_at: Instant,
        patience: Option<Instant>,
    },
    /// The exit is recorded; only a daemon that notes it is waited for.
    Over,
}

impl Shim {
    /// A second stop can only make the end come sooner.
    pub(super) fn stop(&mut self, grace: Duration) {
        let wanted = Instant::now() + grace.min(MAX_GRACE);
        match &mut self.phase {
            EndPhase::Alive => {
                // Whoever is stopped can't hear TERM before it goes on.
                tree::signal_all(&[Signal::TERM, Signal::CONT]);
                self.hang_up();
                self.phase = EndPhase::Terminating { kill_at: wanted };
            }
            EndPhase::Terminating { kill_at } => *kill_at = wanted.min(*kill_at),
            EndPhase::Killing { .. } | EndPhase::Over => {}
        }
    }

    /// An interactive shell ignores TERM; that its terminal is gone it understands.
    fn hang_up(&self) {
        if self.exit.is_none() && tree::ignores(self.pty.child, Signal::TERM) {
            let _ = rustix::process::kill_process(self.pty.child, Signal::HUP);
        }
    }

    /// When `press` has something to do.
    pub(super) fn end_due(&self) -> Option<Instant> {
        match self.phase {
            EndPhase::Alive | EndPhase::Over => None,
            EndPhase::Terminating { kill_at } => Some(kill_at),
            EndPhase::Killing { again_at, .. } => Some(again_at),
        }
    }

    /// Goes on to harder means when the time for the softer ones is over.
    pub(super) fn press(&mut self, now: Instant) {
        match self.phase {
            EndPhase::Terminating { kill_at } if kill_at <= now => {
                self.kill(Some(now + KILL_PATIENCE))
            }
            EndPhase::Killing { again_at, patience } if again_at <= now => self.kill(patience),
            _ => {}
        }
    }

    fn kill(&mut self, patience: Option<Instant>) {
        let now = Instant::now();
        tree::signal_all(&[Signal::KILL]);
        let has_patience = patience.is_some_and(|until| now < until);
        if has_patience {
            let again_at = now + KILL_AGAIN;
            self.phase = EndPhase::Killing { again_at, patience };
            return;
        }
        self.phase = EndPhase::Killing {
            again_at: now + KILL_RARELY,
            patience: None,
        };
        if patience.is_some() {
            self.tell_who_is_left();
        }
        self.reap();
    }

    fn tell_who_is_left(&mut self) {
        let left: Vec<String> = tree::all()
            .iter()
            .map(|pid| pid.as_raw_nonzero().to_string())
            .collect();
        let text = format!(
            "these processes of the slot can't be ended: {}",
            left.join(" ")
        );
        self.trouble(text);
    }

    /// Collects whoever has ended, and moves on when that was the child or the last one.
    pub(super) fn reap(&mut self) {
        let child = self.pty.child;
        let exit = &mut self.exit;
        let left = tree::reap(|reaped| {
            if reaped.pid == child {
                *exit = Some(reaped.exit);
            }
        });
        match (&self.exit, left, &self.phase) {
            (_, _, EndPhase::Over) | (None, _, _) => {}
            (Some(_), LeftOfTree::None, _) => self.finish(),
            (Some(_), LeftOfTree::Some, EndPhase::Alive) => self.stop(LEFTOVER_GRACE),
            (Some(_), LeftOfTree::Some, EndPhase::Killing { patience: None, .. }) => self.finish(),
            (Some(_), LeftOfTree::Some, _) => {}
        }
    }

    /// All that was written is passed on before the exit is.
    fn finish(&mut self) {
        let Some(exit) = self.exit.clone() else {
            return;
        };
        // Bounded, for the case that a process which can't be killed goes on writing.
        const MOST: usize = (64 << 20) / READ;
        let _rounds = (0..MOST).take_while(|_| self.pump_output()).count();
        self.flush_text();
        for n in self.inputs.abandon() {
            let reason = "the program ended before it was written".to_owned();
            self.report(FromShim::Refused { n, reason });
        }
        self.recorder.record('m', &exit_mark(&exit));
        self.tell_news();
        self.phase = EndPhase::Over;
        self.ended_at = Some(chrono::Utc::now());
        self.report(FromShim::Exited(exit));
    }

    /// How the child ended, once nothing more will come of it.
    pub(super) fn reported_exit(&self) -> Option<ExitReport> {
        matches!(self.phase, EndPhase::Over)
            .then(|| self.exit.clone())
            .flatten()
    }
}

fn exit_mark(exit: &ExitReport) -> String {
    match (exit.code, exit.signal) {
        (_, Some(signal)) => format!("exit signal {signal}"),
        (Some(code), None) => format!("exit {code}"),
        (None, None) => "exit unknown".to_owned(),
    }
}
