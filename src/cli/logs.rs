mod merged;

use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::follow::{self, LINES_BEFORE_FOLLOWING, Which};
use crate::cli::tail::{Since, parse_since};
use crate::cli::{complete, sanitise, slots, target};
use crate::core::settings;
use crate::core::text::diagnostic::nearest;
use crate::lookback;
use crate::os::local_time;
use chrono::{DateTime, Utc};
use std::path::{Path, PathBuf};

/// Shows the logs of slots; works with the daemon down.
///
/// The lines of several slots come in the order of their times, each with the slot's name. Without a name they are those of
/// all slots and sessions that have a log. The log directory is that of the config (-c or $MISSIOND_CONFIG), else that of the
/// daemon that answers. Times are those of the clock here, with the date if it was not today; --raw has them as the file has.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond logs -f                       all slots, as it happens
  missiond logs coder
  missiond logs coder @reviewer -f
  missiond logs coder --since 10m
  missiond logs coder -n 20 --json       the events of the slot, as JSON lines")]
pub struct Logs {
    /// Slots by name, or @role for every slot of a role [default: all]
    #[arg(value_name = "SLOT", add = complete::slots())]
    slots: Vec<String>,
    /// Every slot
    #[arg(long, conflicts_with = "slots")]
    all: bool,
    /// Go on with what is added
    #[arg(short, long)]
    follow: bool,
    /// Only the last N lines [default: all, 10 with -f]
    #[arg(short = 'n', long, visible_alias = "tail", value_name = "N")]
    lines: Option<usize>,
    /// Only what is newer: 10m, 2h, or a time such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<DateTime<Utc>>,
    /// Control characters as they are
    #[arg(long)]
    raw: bool,
}

impl Logs {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let directory = target::logs(context).await?;
        let named = slots::expanded(context, self.slots.clone()).await?;
        let extension = if context.out.json {
            "events.jsonl"
        } else {
            "log"
        };
        let which = Which {
            last: self.lines.or(self.follow.then_some(LINES_BEFORE_FOLLOWING)),
            follow: self.follow,
        };
        let [slot] = named.as_slice() else {
            let logs = merged::MergedLogs::open(&directory, extension, named, self.since)?;
            return logs
                .show(which, |slot, line| self.print(context, Some(slot), line))
                .await;
        };
        let file = file_of(&directory, slot, extension)?;
        let mut since = Since::new(self.since);
        let print = |line: &str| self.print(context, None, line);
        follow::lines(&file, which, |line| since.keeps(line), print).await
    }

    /// `slot` is there if the lines of several are shown; JSON has it in itself.
    fn print(&self, context: &Context, slot: Option<&str>, line: &str) -> Result<(), Failure> {
        let line = match (self.raw, context.out.json) {
            (true, _) => line.to_string(),
            (false, true) => sanitise::json(line),
            (false, false) => sanitise::text(&local_time::in_line(line)).into_owned(),
        };
        match slot.filter(|_| !context.out.json) {
            Some(slot) => context.out.beside(slot, &line),
            None => context.out.raw(format!("{line}\n").as_bytes()),
        }
    }
}

/// The file of a slot in the log directory.
pub fn file_of(directory: &Path, slot: &str, extension: &str) -> Result<PathBuf, Failure> {
    let file = directory.join(format!("{slot}.{extension}"));
    // The name becomes part of a path.
    if settings::is_name(slot) {
        if file.is_symlink() {
            let text = format!(
                "{} is a symbolic link, and none is followed",
                file.display()
            );
            return Err(Failure::failed(text).next("remove it: the log begins again in its place"));
        }
        if file.exists() {
            return Ok(file);
        }
    }
    Err(Failure::usage(format!(
        "no log of a slot `{slot}` in {}",
        directory.display()
    ))
    .next(known_logs(slot, directory)))
}

fn known_logs(wanted: &str, directory: &Path) -> String {
    instead(wanted, lookback::logged(directory)).map_or_else(
        || "no slot has a log there yet; name another config with -c FILE".to_owned(),
        |(meant, known)| format!("{meant}there are logs of: {known}"),
    )
}

/// What to say of a name that is none of these: the nearest one, as a question, and all of them.
pub fn instead(wanted: &str, mut names: Vec<String>) -> Option<(String, String)> {
    names.sort();
    names.dedup();
    // A session without a name of its own: there may be many.
    let is_nameless = |name: &String| uuid::Uuid::parse_str(name).is_ok();
    let (nameless, slots): (Vec<String>, Vec<String>) = names.into_iter().partition(is_nameless);
    let meant = nearest(wanted, slots.iter().map(String::as_str));
    let meant = meant.map(|meant| format!("did you mean `{meant}`? "));
    let others = match nameless.len() {
        0 => String::new(),
        1 => " and 1 session: missiond session list".to_owned(),
        count => format!(" and {count} sessions: missiond session list"),
    };
    let known = format!("{}{others}", slots.join(", "));
    (!slots.is_empty()).then(|| (meant.unwrap_or_default(), known))
}
