//! Figures, and where they come from.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longest wait for any one fact.
const PATIENCE: Duration = Duration::from_secs(120);
/// A process that has used no time of the processor for so long has done its work.
const SETTLED: Duration = Duration::from_millis(300);

/// All figures: by row and by who was measured, one for each round.
#[derive(Default)]
pub struct Figures {
    pub rows: BTreeMap<Row, BTreeMap<&'static str, Vec<f64>>>,
}

/// What is measured. The order is that of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    Unmarked,
    Marked,
    Dialog,
    DialogP99,
    Status,
    StatusCpu,
    Search,
    TakeOverAnswer,
    TakeOver,
    TakeOverCpu,
    Idle,
}

impl Row {
    pub fn name(self) -> &'static str {
        match self {
            Row::Unmarked => "bytes of Claude Code, MB per CPU second",
            Row::Marked => "the same in marked frames, MB per CPU second",
            Row::Dialog => "dialog drawn -> told to a client, ms, median",
            Row::DialogP99 => "dialog drawn -> told to a client, ms, slowest of 100",
            Row::Status => "status by the shell, ms",
            Row::StatusCpu => "status by the shell, ms of CPU",
            Row::Search => "search of 10 MB of output, ms",
            Row::TakeOverAnswer => "take-over of slots with 10 MB each: first answer, ms",
            Row::TakeOver => "take-over of slots with 10 MB each: all known, ms",
            Row::TakeOverCpu => "take-over of slots with 10 MB each: ms of CPU",
            Row::Idle => "memory for each idle slot, MB of the daemon",
        }
    }

    /// Whether a larger figure is the better one.
    pub fn is_rate(self) -> bool {
        matches!(self, Row::Unmarked | Row::Marked)
    }
}

impl Figures {
    pub fn add(&mut self, row: Row, who: &'static str, figure: f64) {
        let by_name = self.rows.entry(row).or_default();
        by_name.entry(who).or_default().push(figure);
    }
}

pub fn median(figures: &[f64]) -> f64 {
    percentile(figures, 50)
}

pub fn percentile(figures: &[f64], percent: usize) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().saturating_sub(1);
    sorted
        .get(last * percent / 100)
        .copied()
        .unwrap_or(f64::NAN)
}

/// Nanoseconds on a clock that all processes share.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as u64)
}

/// In which the system counts the time of processes: 100 each second on every Linux.
const TICK_MS: f64 = 10.0;

/// Milliseconds of the processor that a process has used; of its children that have ended, with `children`.
pub fn cpu_ms(pid: u32, children: bool) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields = stat.rsplit(')').next().context("no fields")?;
    let field = |at: usize| -> Result<f64> {
        let field = fields.split_whitespace().nth(at).context("no field")?;
        Ok(field.parse()?)
    };
    let first = if children { 13 } else { 11 };
    Ok((field(first)? + field(first + 1)?) * TICK_MS)
}

/// The same for several, once they have done all their work.
pub fn settled_cpu_ms(pids: &[u32]) -> Result<f64> {
    let all = || -> Result<f64> { pids.iter().map(|pid| cpu_ms(*pid, false)).sum() };
    let (mut last, mut since) = (all()?, Instant::now());
    while since.elapsed() < SETTLED {
        std::thread::sleep(Duration::from_millis(20));
        let now = all()?;
        if now > last {
            (last, since) = (now, Instant::now());
        }
    }
    Ok(last)
}

/// Memory that a process shares with nobody, in MB.
pub fn private_mb(pid: u32) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    let mut sum = 0.0;
    for line in text.lines().filter(|line| line.starts_with("Private_")) {
        let figure = line.split_whitespace().nth(1).context("no figure")?;
        sum += figure.parse::<f64>()?;
    }
    Ok(sum / 1024.0)
}

/// Waits for a fact.
pub fn until<T>(what: &str, mut fact: impl FnMut() -> Option<T>) -> Result<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = fact() {
            return Ok(found);
        }
        anyhow::ensure!(Instant::now() < end, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}
