use crate::cli::address::Addressed;
use crate::cli::context::Context;
use crate::cli::duration;
use crate::cli::failure::Failure;
use crate::cli::reconnect;
use crate::cli::spawn::milliseconds;
use crate::control::requests::{Submit as Request, SubmitParams};
use std::time::Duration;

/// Puts a task into the queue and prints its id.
///
/// A task is a prompt for a slot, or for the first slot of a role that is free. Until one is, it waits in a queue
/// that outlives the daemon. A full queue refuses it (exit code 4).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond task submit --role reviewer 'Review the last commit'
  missiond task submit coder - < task.md
  missiond task submit coder --id nightly-17 --timeout 30m 'Run the slow tests'
  id=$(missiond task submit --role coder 'Fix the build'); missiond task $id --wait")]
pub struct Submit {
    #[command(flatten)]
    addressed: Addressed,
    /// Let it fail, and interrupt its turn, this long after a slot has it
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,
}

impl Submit {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let params = SubmitParams {
            timeout_ms: self.timeout.map(milliseconds),
            ..self.addressed.params()?
        };
        let task = reconnect::ask_once::<Request>(context, params).await?;
        match context.out.json {
            true => context.out.json(&task),
            false => context.out.line(task.id),
        }
    }
}
