//! `cost`: what slots have used and cost, from the transcripts of Claude Code and the logs of the slots.

use crate::cli::columns::{Columns, terminal_width};
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::tail::parse_since;
use crate::cli::{logs, target};
use crate::config::{self, Config};
use crate::core::claude::usage::{Tokens, usage_of_line};
use crate::core::model::{Event, EventKind};
use crate::core::settings::SlotConfig;
use crate::core::text::dollars::Dollars;
use crate::core::timeline::{By, Spending, Spent, in_all, summed_up};
use crate::os::files::{self, LinesFromEnd};
use crate::slot::transcripts_of;
use chrono::{DateTime, Local, NaiveDate, Utc};
use clap::ValueEnum;
use comfy_table::Row;
use serde_json::json;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::path::Path;

/// Shows the tokens and the dollars that slots have used.
///
/// Tokens are those in the transcripts of Claude Code. Dollars are what Claude Code says that it costs: it is asked in slots that
/// have a `max_cost` or a `max_cost_per_day`. It works with the daemon down.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond cost
  missiond cost --by day --since 30d
  missiond cost --by role --json")]
pub struct CostArgs {
    /// What is summed up
    #[arg(long, value_name = "WHAT", default_value = "slot")]
    by: CostBy,
    /// From when on: 7d, 09:30, or a time such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_since, default_value = "7d")]
    since: DateTime<Utc>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CostBy {
    Slot,
    Role,
    Day,
}

/// The longest line of a transcript that is read; a longer one is a tool's result.
const LONGEST_LINE: u64 = 16 << 20;
/// Of a log.
const LONGEST_EVENT: u64 = 1 << 20;
const COST_EVENT: &str = "\"event\":\"cost\"";

impl CostArgs {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let config = config::load(&target::config_to_run(context)?)?;
        let state = context.env.state_dir()?.join(&config.daemon.name);
        let slots = config.slots.iter();
        let spent: Vec<Spent> = slots
            .flat_map(|slot| spent_by(slot, &config, &state, self.since))
            .collect();
        let (by, name) = match self.by {
            CostBy::Slot => (By::Slot, "SLOT"),
            CostBy::Role => (By::Role, "ROLE"),
            CostBy::Day => (By::Day, "DAY"),
        };
        print(context, name, &summed_up(&spent, by), &in_all(&spent))
    }
}

/// By day.
fn spent_by(slot: &SlotConfig, config: &Config, state: &Path, since: DateTime<Utc>) -> Vec<Spent> {
    let mut days = BTreeMap::<NaiveDate, (Tokens, Option<Dollars>)>::new();
    let mut answers = HashSet::new();
    for file in transcripts_of(state, &slot.name) {
        let file = files::open(&file).ok();
        for line in file.into_iter().flat_map(|file| newest(file, LONGEST_LINE)) {
            let Some(usage) = usage_of_line(&line) else {
                continue;
            };
            if usage.time < since {
                break;
            }
            if answers.insert(usage.answer) {
                days.entry(day(usage.time)).or_default().0 += usage.tokens;
            }
        }
    }
    for (time, more) in dollars_of(&config.daemon.logs, &slot.name, since) {
        let dollars = &mut days.entry(day(time)).or_default().1;
        *dollars = Some(dollars.unwrap_or(Dollars::ZERO).plus(more));
    }
    let spent = days.into_iter().map(|(day, (tokens, dollars))| Spent {
        slot: slot.name.clone(),
        role: slot.role.clone(),
        day,
        tokens,
        dollars,
    });
    spent.collect()
}

fn day(time: DateTime<Utc>) -> NaiveDate {
    DateTime::<Local>::from(time).date_naive()
}

/// From the last line to the first; what can't be read has none.
fn newest(file: File, longest: u64) -> impl Iterator<Item = String> {
    LinesFromEnd::new(file, longest).into_iter().flatten()
}

/// What the log of a slot says that it cost, and when.
fn dollars_of(directory: &Path, slot: &str, since: DateTime<Utc>) -> Vec<(DateTime<Utc>, Dollars)> {
    let file = logs::file_of(directory, slot, "events.jsonl");
    let files = file.ok().and_then(|file| files::with_rotated(&file).ok());
    let newest_first = files.into_iter().flatten().rev();
    let lines = newest_first.flat_map(|file| newest(file, LONGEST_EVENT));
    let events = lines
        .filter(|line| line.contains(COST_EVENT))
        .filter_map(|line| serde_json::from_str::<Event>(&line).ok())
        .take_while(|event| event.time >= since);
    let costs = events.filter_map(|event| match event.what {
        EventKind::Cost { dollars, .. } => Some((event.time, Dollars::from_f64(dollars)?)),
        _ => None,
    });
    costs.collect()
}

fn print(context: &Context, by: &str, sums: &[Spending], all: &Spending) -> Result<(), Failure> {
    if context.out.json {
        return context.out.json(&json!({"rows": sums, "total": all}));
    }
    if sums.is_empty() {
        context.out.note("no slot has used a token in that time");
        return Ok(());
    }
    let columns = Columns {
        header: &[
            by,
            "INPUT",
            "CACHE READ",
            "CACHE WRITE",
            "OUTPUT",
            "DOLLARS",
        ],
        right: &[1, 2, 3, 4, 5],
        gives_way: 0,
    };
    let rows = sums.iter().chain((sums.len() > 1).then_some(all)).map(row);
    context.out.line(columns.render(rows, terminal_width()))
}

fn row(sum: &Spending) -> Row {
    let day = sum.day.map(|day| day.to_string());
    let name = sum.slot.clone().or(sum.role.clone()).or(day);
    let dollars = sum.dollars;
    Row::from([
        name.unwrap_or_else(|| "all".to_owned()),
        shown(sum.tokens.input),
        shown(sum.tokens.cache_read),
        shown(sum.tokens.cache_write),
        shown(sum.tokens.output),
        dollars.map_or("-".to_owned(), |it| format!("{:.2}", it.as_f64())),
    ])
}

/// `940`, `12.3k`, `4.5M`.
fn shown(tokens: u64) -> String {
    match tokens {
        0 => "-".to_owned(),
        1..1000 => tokens.to_string(),
        1000..1_000_000 => format!("{:.1}k", tokens as f64 / 1e3),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}
