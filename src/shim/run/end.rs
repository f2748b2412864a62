//! How a slot's process tree ends: first by request, then by force, until no process is left.

use super::{READ, Shim};
use crate::core::model::ExitReport;
use crate::shim::FromShim;
use crate::shim::tree::{self, LeftOfTree};
use chrono::{DateTime, Utc};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// Longer than anyone waits for an end, and short enough to be added to any time.
const MAX_GRACE: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the descendants of a child that ended by itself have to end; they belong to the slot.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);

/// A tree that forks while it is killed is killed again after this time.
const KILL_AGAIN: Duration = Duration::from_millis(20);

/// How often to try again with processes that can't be killed.
const KILL_RARELY: Duration = Duration::from_secs(1);

/// Processes that still exist this long after the first KILL belong to another user or hang in the kernel; the end of the child
/// is no longer delayed for them.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// The progress of the process tree's end.
#[derive(Debug)]
enum EndPhase {
    Alive,
    /// TERM was sent.
    Terminating {
        kill_at: Instant,
    },
    /// KILL was sent, and is sent again; until `patience` it is normal that some are left.
    Killing {
        again_at: Instant,
        patience: Option<Instant>,
    },
    /// The exit is recorded; only a daemon's acknowledgement is missing.
    Over,
}

/// How often a shim whose program has ended checks whether a daemon could still find it.
const LOOK: Duration = Duration::from_secs(10);

/// The progress of the end of the program and its descendants, and of the shim after them.
#[derive(Debug)]
pub(super) struct ProgramEnd {
    phase: EndPhase,
    /// How the child ended; its descendants may still exist.
    exit: Option<ExitReport>,
    /// When nothing of it was left.
    ended_at: Option<DateTime<Utc>>,
    /// When to check the shim's own socket, once everything is over.
    look_due: Option<Instant>,
    /// Set when the shim itself may end once everything is over.
    dismissed: bool,
}

impl ProgramEnd {
    pub fn new() -> ProgramEnd {
        ProgramEnd {
            phase: EndPhase::Alive,
            exit: None,
            ended_at: None,
            look_due: None,
            dismissed: false,
        }
    }

    /// Nothing is left of the program, and its exit is recorded.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, EndPhase::Over)
    }

    /// Whether the shim may end.
    pub fn is_dismissed(&self) -> bool {
        self.dismissed && self.is_over()
    }

    pub fn dismiss(&mut self) {
        self.dismissed = true;
    }

    pub fn has_exited(&self) -> bool {
        self.exit.is_some()
    }

    pub fn exited(&mut self, exit: ExitReport) {
        self.exit = Some(exit);
    }

    pub fn ended_at(&self) -> Option<DateTime<Utc>> {
        self.ended_at
    }

    /// How the child ended, once no more output will come.
    pub fn reported_exit(&self) -> Option<ExitReport> {
        self.exit.clone().filter(|_| self.is_over())
    }

    /// When the next action is due.
    pub fn due(&self) -> Option<Instant> {
        match self.phase {
            EndPhase::Alive => None,
            EndPhase::Terminating { kill_at } => Some(kill_at),
            EndPhase::Killing { again_at, .. } => Some(again_at),
            EndPhase::Over => self.look_due,
        }
    }

    /// Whether to check the shim's own socket now.
    pub fn looks(&mut self, now: Instant) -> bool {
        let looks = self.is_over() && self.look_due.is_none_or(|due| due <= now);
        if looks {
            self.look_due = Some(now + LOOK);
        }
        looks
    }
}

impl Shim {
    /// A second stop can only make the end come sooner.
    pub(super) fn stop(&mut self, grace: Duration) {
        let wanted = Instant::now() + grace.min(MAX_GRACE);
        match &mut self.end.phase {
            EndPhase::Alive => {
                // A stopped process can't handle TERM before it continues.
                tree::signal_all(&[Signal::TERM, Signal::CONT]);
                self.hang_up();
                self.end.phase = EndPhase::Terminating { kill_at: wanted };
            }
            EndPhase::Terminating { kill_at } => *kill_at = wanted.min(*kill_at),
            EndPhase::Killing { .. } | EndPhase::Over => {}
        }
    }

    /// An interactive shell ignores TERM, but handles the loss of its terminal.
    fn hang_up(&self) {
        if self.end.exit.is_none() && tree::ignores(self.pty.child, Signal::TERM) {
            let _ = rustix::process::kill_process(self.pty.child, Signal::HUP);
        }
    }

    /// Escalates when the time for the current step is over.
    pub(super) fn press(&mut self, now: Instant) {
        match self.end.phase {
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
            self.end.phase = EndPhase::Killing { again_at, patience };
            return;
        }
        self.end.phase = EndPhase::Killing {
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

    /// Reaps ended processes, and continues when that was the child or the last one.
    pub(super) fn reap(&mut self) {
        let child = self.pty.child;
        let exit = &mut self.end.exit;
        let left = tree::reap(|reaped| {
            if reaped.pid == child {
                *exit = Some(reaped.exit);
            }
        });
        match (&self.end.exit, left, &self.end.phase) {
            (_, _, EndPhase::Over) | (None, _, _) => {}
            (Some(_), LeftOfTree::None, _) => self.finish(),
            (Some(_), LeftOfTree::Some, EndPhase::Alive) => self.stop(LEFTOVER_GRACE),
            (Some(_), LeftOfTree::Some, EndPhase::Killing { patience: None, .. }) => self.finish(),
            (Some(_), LeftOfTree::Some, _) => {}
        }
    }

    /// All output is passed on before the exit.
    fn finish(&mut self) {
        let Some(exit) = self.end.exit.clone() else {
            return;
        };
        // Bounded, in case a process that can't be killed continues to write.
        const MOST: usize = (64 << 20) / READ;
        let _rounds = (0..MOST).take_while(|_| self.pump_output()).count();
        self.flush_text();
        for n in self.inputs.abandon() {
            let reason = "the program ended before it was written".to_owned();
            self.report(FromShim::Refused { n, reason });
        }
        self.recorder.record('m', &exit_mark(&exit));
        self.tell_news();
        self.end.phase = EndPhase::Over;
        self.end.ended_at = Some(Utc::now());
        self.report(FromShim::Exited(exit));
    }
}

fn exit_mark(exit: &ExitReport) -> String {
    match (exit.code, exit.signal) {
        (_, Some(signal)) => format!("exit signal {signal}"),
        (Some(code), None) => format!("exit {code}"),
        (None, None) => "exit unknown".to_owned(),
    }
}
