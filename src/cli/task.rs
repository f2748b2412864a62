use crate::cli::context::{Context, unless_interrupted};
use crate::cli::duration;
use crate::cli::failure::{Blame, Failure};
use crate::cli::{
    ask, cancel, columns, complete, dialog, reconnect, sanitise, submit, table, tasks,
};
use crate::control::requests::{Pending, Task as Request, TaskParams};
use crate::core::model::{Fault, Select, TaskState, TaskStatus};
use chrono::Utc;
use std::time::Duration;

/// Gives messages to whoever is free, and takes the answers.
///
/// `missiond task ID` is short for `missiond task show ID`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  missiond task submit --role reviewer 'Review the last commit'
  missiond task list
  missiond task 5f0c21ab --wait
  missiond task run ci.toml"
)]
pub struct TaskArgs {
    #[command(subcommand)]
    verb: Option<TaskVerb>,
    #[command(flatten)]
    shown: Option<Task>,
}

#[derive(Debug, clap::Subcommand)]
enum TaskVerb {
    Submit(submit::Submit),
    Ask(ask::AskArgs),
    List(tasks::List),
    Show(Task),
    Cancel(cancel::Cancel),
    Run(tasks::RunTasks),
}

impl TaskArgs {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        match (self.verb, self.shown) {
            (Some(TaskVerb::Submit(verb)), _) => verb.run(context).await,
            (Some(TaskVerb::Ask(verb)), _) => verb.run(context).await,
            (Some(TaskVerb::List(verb)), _) => verb.run(context).await,
            (Some(TaskVerb::Show(verb)), _) | (None, Some(verb)) => verb.run(context).await,
            (Some(TaskVerb::Cancel(verb)), _) => verb.run(context).await,
            (Some(TaskVerb::Run(verb)), _) => verb.run(context).await,
            (None, None) => Err(Failure::usage("which task?").next("missiond task list")),
        }
    }
}

/// Shows a task: where it stands, who has it, and its answer.
///
/// With --wait it first waits for the end; then the exit code tells how that was: 1 where the task failed or was
/// cancelled, 5 where its slot asks something that needs you.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond task show 5f0c21ab
  missiond task show 5f0c21ab --wait --timeout 10m
  missiond task show 5f0c21ab --json | jq -r .answer")]
pub struct Task {
    /// The id, as `submit` printed it
    #[arg(add = complete::tasks())]
    id: String,
    /// Wait until it has ended or needs you
    #[arg(long)]
    wait: bool,
    /// With --wait: stop waiting after this time (exit code 124); the task goes on
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "wait")]
    timeout: Option<Duration>,
}

impl Task {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let task = match self.wait {
            true => wait(context, &self.id, self.timeout).await?,
            false => context.ask::<Request>(now(&self.id)).await?,
        };
        print(context, &task)?;
        match self.wait {
            true => judge(context, &task).await,
            false => Ok(()),
        }
    }
}

fn now(id: &str) -> TaskParams {
    TaskParams {
        id: id.to_owned(),
        wait: false,
        timeout_ms: None,
    }
}

/// Waits for the end of a task, or until it needs a person. Ctrl-C ends the waiting, not the task.
pub async fn wait(
    context: &Context,
    id: &str,
    timeout: Option<Duration>,
) -> Result<TaskStatus, Failure> {
    let answer = reconnect::ask::<Request>(context, timeout, |timeout_ms| TaskParams {
        wait: true,
        timeout_ms,
        ..now(id)
    });
    unless_interrupted(answer, || {
        Failure::interrupted("the task goes on").next(format!(
            "see it with: missiond task {id}\nend it with: missiond task cancel {id}"
        ))
    })
    .await
}

/// How a task that was waited for has ended is how the command ends.
pub async fn judge(context: &Context, task: &TaskStatus) -> Result<(), Failure> {
    let why = task.error.as_deref().unwrap_or("no reason is known");
    match task.state {
        TaskState::Failed | TaskState::Cancelled => Err(Failure::failed(format!(
            "task {} {}: {why}",
            task.id,
            if task.state == TaskState::Failed {
                "failed"
            } else {
                "was cancelled"
            }
        ))),
        TaskState::NeedsPerson => Err(needs_person(context, task).await),
        TaskState::Queued | TaskState::Running | TaskState::Done => Ok(()),
    }
}

async fn needs_person(context: &Context, task: &TaskStatus) -> Failure {
    let slot = task.slot.clone().unwrap_or_default();
    let slots = vec![slot.clone()];
    // Where the question can't be shown, the slot's name says where to look.
    let pending = context.ask::<Pending>(Select { slots }).await;
    for waiting in pending.unwrap_or_default() {
        if !context.out.json {
            let shown =
                dialog::render_pending(&slot, &waiting, &context.target(), columns::stderr_width());
            context.out.aside(shown);
        }
    }
    let message = format!(
        "{slot} needs you; task {} goes on once you answered",
        task.id
    );
    Failure::new(Blame::Fault(Fault::NeedsPerson), message).next(format!(
        "then wait for it with: missiond task {} --wait",
        task.id
    ))
}

fn print(context: &Context, task: &TaskStatus) -> Result<(), Failure> {
    if context.out.json {
        return context.out.json(task);
    }
    context.out.line(about(task))?;
    match &task.answer {
        Some(answer) => context.out.foreign(&format!("\n{answer}")),
        None => Ok(()),
    }
}

fn about(task: &TaskStatus) -> String {
    let taken = task
        .duration_ms
        .map(|ms| format!("{:.1}s", ms as f64 / 1000.0));
    let waited = Utc::now().signed_duration_since(task.submitted_at);
    let attempts = format!("{} of {}", task.attempts, task.retries + 1);
    let facts = [
        ("task", Some(task.id.clone())),
        ("state", Some(task.state.name().to_owned())),
        ("for", Some(task.to.clone())),
        ("slot", task.slot.clone()),
        ("session", task.session_id.clone()),
        (
            "submitted",
            Some(format!(
                "{} ago by {}",
                table::age(waited.num_seconds()),
                task.by
            )),
        ),
        ("took", taken),
        ("attempts", Some(attempts).filter(|_| task.retries > 0)),
        ("because", task.error.as_deref().map(sanitise::one_line)),
        ("text", Some(sanitise::one_line(&task.text))),
    ];
    let lines = facts
        .into_iter()
        .filter_map(|(name, fact)| Some(format!("{name:10} {}", fact?)));
    lines.collect::<Vec<_>>().join("\n")
}
