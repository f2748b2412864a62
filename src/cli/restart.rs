use crate::cli::context::Context;
use crate::cli::done;
use crate::cli::failure::Failure;
use crate::cli::slots::SomeSlots;
use crate::control::requests::Restart as Request;

/// Stops slots and starts them again (alias: respawn).
///
/// They take the settings that are on disk now. The conversation goes on where the slot's `resume` says so. Messages that
/// wait for the slot are dropped and named, as by `stop`; tasks wait on.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond restart coder
  missiond respawn @coder")]
pub struct Restart {
    #[command(flatten)]
    slots: SomeSlots,
}

impl Restart {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let select = self.slots.select();
        let done = context.ask_within::<Request>(select, None).await?;
        done::print(context, &done, "restarted")
    }
}
