use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{complete, done};
use crate::control::requests::Clear as Request;
use crate::core::model::OneSlot;

/// Forgets the output of a session that is kept; its screen stays.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond session clear build")]
pub struct Clear {
    /// The session
    #[arg(value_name = "ID", add = complete::slots())]
    id: String,
}

impl Clear {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let done = context.ask::<Request>(OneSlot { slot: self.id }).await?;
        done::print(context, &[done], "cleared")
    }
}
