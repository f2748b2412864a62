use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::control::protocol::{Nothing, Stats as Request};

/// Counts the slots by what they do.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond stats
  missiond stats --json")]
pub struct Stats {}

impl Stats {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let stats = context.ask::<Request>(Nothing {}).await?;
        if context.out.json {
            return context.out.json(&stats);
        }
        context.out.line(format!(
            "{} slots: {} running ({} idle, {} busy), {} stopped",
            stats.total, stats.running, stats.idle, stats.busy, stats.stopped
        ))
    }
}
