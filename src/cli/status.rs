use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::slots::AnySlots;
use crate::cli::{columns, table};
use crate::control::protocol::Status as Request;

/// Shows what every slot does, those that need you first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond status
  missiond status coder @reviewer
  missiond status --json | jq -r '.[] | select(.state == \"idle\").slot'")]
pub struct Status {
    #[command(flatten)]
    slots: AnySlots,
}

impl Status {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut statuses = context.ask::<Request>(self.slots.select()).await?;
        if context.out.json {
            return context.out.json(&statuses);
        }
        if statuses.is_empty() {
            return context
                .out
                .done("no slots in the config; sessions are listed by: missiond sessions");
        }
        table::sort(&mut statuses);
        let width = columns::terminal_width();
        context
            .out
            .line(table::render(&statuses, chrono::Utc::now(), width))?;
        match table::call_for_help(&statuses) {
            Some(line) => context.out.line(line),
            None => Ok(()),
        }
    }
}
