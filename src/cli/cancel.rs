use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{complete, done};
use crate::control::requests::{Cancel as Request, OneTask};

/// Cancels tasks that wait or run.
///
/// One that waits is taken out of the queue, one that runs is interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond task cancel 5f0c21ab
  missiond task list --json | jq -r '.[].id' | xargs missiond task cancel")]
pub struct Cancel {
    /// The ids, as `submit` printed them
    #[arg(required = true, value_name = "ID", add = complete::tasks())]
    ids: Vec<String>,
}

impl Cancel {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut failures = Vec::new();
        for id in self.ids {
            match context.ask::<Request>(OneTask { id }).await {
                Ok(task) if context.out.json => context.out.json(&task)?,
                Ok(task) => {
                    let why = task.error.unwrap_or_default();
                    context
                        .out
                        .done(format!("{}: {}: {why}", task.id, task.state.name()))?;
                }
                Err(failure) => failures.push(failure),
            }
        }
        done::settle(context, failures)
    }
}
