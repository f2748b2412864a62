mod progress;
mod run;

use crate::cli::columns::{self, Columns};
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{sanitise, table};
use crate::control::requests::{Tasks as Request, TasksParams};
use crate::core::model::{TaskState, TaskStatus};
use chrono::{DateTime, Utc};
use comfy_table::{Attribute, Cell, Color, Row};

const COLUMNS: Columns<'static> = Columns {
    header: &["TASK", "STATE", "FOR", "SLOT", "AGE", "TEXT"],
    right: &[4],
    gives_way: 5,
};

/// Shows tasks that wait or run; `tasks run` runs those of a file.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  missiond tasks
  missiond tasks run ci.toml
  missiond tasks --all --json | jq -r '.[] | select(.state == \"failed\").error'"
)]
pub struct Tasks {
    /// Also those that have ended
    #[arg(long)]
    all: bool,
    #[command(subcommand)]
    verb: Option<TaskVerb>,
}

#[derive(Debug, clap::Subcommand)]
enum TaskVerb {
    Run(run::RunTasks),
}

impl Tasks {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        if let Some(TaskVerb::Run(run)) = self.verb {
            return run.run(context).await;
        }
        let open = [
            TaskState::Queued,
            TaskState::Running,
            TaskState::NeedsPerson,
        ];
        let states = if self.all { Vec::new() } else { open.to_vec() };
        let tasks = context.ask::<Request>(TasksParams { states }).await?;
        if context.out.json {
            return context.out.json(&tasks);
        }
        if tasks.is_empty() {
            context.out.note(match self.all {
                true => "there are no tasks",
                false => "no task waits or runs; --all shows those that have ended",
            });
            return Ok(());
        }
        let now = Utc::now();
        let rows = tasks.iter().map(|task| row(task, now));
        context
            .out
            .line(COLUMNS.render(rows, columns::terminal_width()))
    }
}

fn row(task: &TaskStatus, now: DateTime<Utc>) -> Row {
    let age = now.signed_duration_since(task.submitted_at).num_seconds();
    let why = task.error.iter().map(|why| format!("({why}) "));
    let text = why.collect::<String>() + &task.text;
    Row::from([
        Cell::new(&task.id),
        coloured(task.state),
        Cell::new(&task.to),
        Cell::new(task.slot.as_deref().unwrap_or("-")),
        Cell::new(table::age(age)),
        Cell::new(sanitise::one_line(&text)),
    ])
}

fn coloured(state: TaskState) -> Cell {
    let cell = Cell::new(state.name());
    match state {
        TaskState::Queued => cell.add_attribute(Attribute::Dim),
        TaskState::Running => cell,
        TaskState::NeedsPerson => cell.fg(Color::Yellow),
        TaskState::Done => cell.fg(Color::Green),
        TaskState::Failed => cell.fg(Color::Red),
        TaskState::Cancelled => cell.fg(Color::DarkGrey),
    }
}
