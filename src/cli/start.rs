use crate::cli::context::Context;
use crate::cli::done;
use crate::cli::failure::Failure;
use crate::cli::slots::SomeSlots;
use crate::control::requests::Start as Request;

/// Starts slots that are not running.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond start coder
  missiond start @reviewer
  missiond start --all")]
pub struct Start {
    #[command(flatten)]
    slots: SomeSlots,
}

impl Start {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let select = self.slots.select();
        let done = context.ask_within::<Request>(select, None).await?;
        done::print(context, &done, "started")
    }
}
