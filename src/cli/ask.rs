use crate::cli::address::Addressed;
use crate::cli::context::Context;
use crate::cli::duration;
use crate::cli::failure::Failure;
use crate::cli::{reconnect, task};
use crate::control::requests::Submit;
use std::time::Duration;

/// Puts a task into the queue, waits, and prints the answer.
///
/// The same as `submit` and `task ID --wait`. Where it is no longer waited for, by Ctrl-C or --timeout, the task goes
/// on, and `task ID` has its answer later. When its slot asks something that needs you, the question is shown and the
/// exit code is 5.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond task ask --role reviewer 'Is src/main.rs sound?'
  missiond task ask --role coder --timeout 10m --retries 1 - < task.md")]
pub struct AskArgs {
    #[command(flatten)]
    addressed: Addressed,
    /// Stop waiting after this time (exit code 124); the task goes on
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,
}

impl AskArgs {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let params = self.addressed.params()?;
        let submitted = reconnect::ask_once::<Submit>(context, params).await?;
        context.out.note(format!("task {}", submitted.id));
        let task = task::wait(context, &submitted.id, self.timeout).await?;
        if context.out.json {
            context.out.json(&task)?;
        } else if let Some(answer) = &task.answer {
            context.out.foreign(answer)?;
        }
        task::judge(context, &task).await
    }
}
