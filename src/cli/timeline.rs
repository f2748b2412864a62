//! `timeline`: who worked and who waited, from the logs of the slots.

mod svg;
mod text;

use crate::cli::columns::{is_ascii, terminal_width};
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::tail::parse_since;
use crate::cli::{complete, logs, slots, target};
use crate::core::timeline::{TimelineReport, Window};
use crate::lookback;
use chrono::{DateTime, Utc};
use std::path::{Path, PathBuf};

/// Shows when slots worked, waited for you, were idle or down.
///
/// It reads the logs of the slots, and works with the daemon down. Below the bands are the totals, how long people were waited
/// for, and which rule or reason has cost how much of that.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond timeline
  missiond timeline coder @reviewer --since 7d
  missiond timeline --since 09:00 --until 12:30
  missiond timeline --svg today.svg       a picture for a report")]
pub struct TimelineArgs {
    /// Slots by name, or @role for every slot of a role [default: all]
    #[arg(value_name = "SLOT", add = complete::slots())]
    slots: Vec<String>,
    /// From when on: 8h, 09:30, or a time such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_since, default_value = "8h")]
    since: DateTime<Utc>,
    /// Until when [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    until: Option<DateTime<Utc>>,
    /// Write a picture into this file too
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl TimelineArgs {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let now = Utc::now();
        let until = self.until.unwrap_or(now).min(now);
        if self.since >= until {
            return Err(Failure::usage("--since is not before --until"));
        }
        let directory = target::logs(context).await?;
        let named = slots::expanded(context, self.slots).await?;
        for slot in &named {
            logs::file_of(&directory, slot, "events.jsonl")?;
        }
        let report = lookback::report(&directory, &named, self.since, until);
        let report = report.map_err(|unread| Failure::failed(unread.to_string()))?;
        if let Some(file) = &self.svg {
            write(file, &svg::picture(&report))?;
            let shown = file.display();
            context.out.note(format!("the picture is in {shown}"));
        }
        print(context, &report)
    }
}

/// How times are written below the bands: as short as can be without being unclear.
fn axis_format(window: Window) -> &'static str {
    match window.length().num_minutes() {
        ..30 => "%H:%M:%S",
        30..=1440 => "%H:%M",
        _ => "%m-%d %H:%M",
    }
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let unwritten = |error| Failure::failed(format!("cannot write {}: {error}", file.display()));
    std::fs::write(file, text).map_err(unwritten)
}

fn print(context: &Context, report: &TimelineReport) -> Result<(), Failure> {
    if context.out.json {
        return context.out.json(report);
    }
    if report.slots.is_empty() {
        context.out.note("no slot ran in that time");
        return Ok(());
    }
    let width = terminal_width().map_or(80, |width| width.clamp(60, 160));
    let shown = text::shown(report, width.into(), is_ascii());
    context.out.raw(shown.as_bytes())
}
