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

pub use run::RunTasks;

/// `tasks` and `tasks run`, as they were called before `task list` and `task run`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Tasks {
    #[command(flatten)]
    list: List,
    #[command(subcommand)]
    verb: Option<TasksVerb>,
}

#[derive(Debug, clap::Subcommand)]
enum TasksVerb {
    Run(RunTasks),
}

impl Tasks {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        match self.verb {
            Some(TasksVerb::Run(run)) => run.run(context).await,
            None => self.list.run(context).await,
        }
    }
}

/// Shows the tasks that wait or run.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond task list
  missiond task list --all --json | jq -r '.[] | select(.state == \"failed\").error'")]
pub struct List {
    /// Also those that have ended
    #[arg(long)]
    all: bool,
}

impl List {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
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
