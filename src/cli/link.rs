//! `link`: one moment of a slot as a page that can be sent to somebody.

mod gather;
mod page;

use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::tail::parse_since;
use crate::cli::{complete, slots, target};
use chrono::{DateTime, Utc};
use std::path::PathBuf;

/// Writes one moment of a slot as an HTML page, to show to others.
///
/// The page has the screen at that time, what was asked and what was decided by which rule, the events around it, and the
/// hashes of the audit. It needs nothing else, has no scripts, and secrets are masked. It works with the daemon down.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond link coder --at 09:37 -o incident.html
  missiond link coder --at 2026-01-31T09:37:12Z > incident.html
  missiond link coder --at 5m -o now.html         five minutes ago")]
pub struct LinkArgs {
    /// The slot
    #[arg(add = complete::slots())]
    slot: String,
    /// When: 09:37, 5m (five minutes ago), or a time such as 2026-01-31T12:00:00Z. If no dialog was up then, the first one
    /// within a minute is shown
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    at: DateTime<Utc>,
    /// The file to write [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl LinkArgs {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let logs = target::logs(context).await?;
        let states = context.env.state_dir()?;
        let slot = slots::one(context, self.slot).await?;
        let incident = gather::incident(&logs, &states, &slot, self.at)?;
        let page = page::html(&incident);
        let Some(file) = &self.output else {
            return context.out.raw(page.as_bytes());
        };
        let shown = file.display();
        let unwritten = |error| Failure::failed(format!("cannot write {shown}: {error}"));
        std::fs::write(file, page).map_err(unwritten)?;
        if context.out.json {
            return context
                .out
                .json(&serde_json::json!({"slot": slot, "file": file}));
        }
        context.out.note(format!("the page is in {shown}"));
        Ok(())
    }
}
