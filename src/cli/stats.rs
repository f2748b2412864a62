use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::control::requests::Stats as Request;
use crate::core::model::Nothing;

/// Counts the slots by what they do, and the sessions.
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
            "{}: {} running ({} idle, {} busy), {} stopped",
            counted(stats.total, "slot"),
            stats.running,
            stats.idle,
            stats.busy,
            stats.stopped
        ))?;
        if stats.sessions + stats.sessions_ended == 0 {
            return Ok(());
        }
        context.out.line(format!(
            "{}: {} running, {} ended and kept",
            counted(stats.sessions + stats.sessions_ended, "session"),
            stats.sessions,
            stats.sessions_ended
        ))
    }
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}
