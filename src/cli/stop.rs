use crate::cli::context::Context;
use crate::cli::done;
use crate::cli::failure::Failure;
use crate::cli::slots::SomeSlots;
use crate::control::requests::Stop as Request;

/// Stops slots, with everything that they started.
///
/// They stay stopped until you start them. Messages that wait for them are dropped and named; tasks wait on.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond stop coder
  missiond stop --all --json")]
pub struct Stop {
    #[command(flatten)]
    slots: SomeSlots,
}

impl Stop {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let select = self.slots.select();
        let done = context.ask_within::<Request>(select, None).await?;
        done::print(context, &done, "stopped")
    }
}
