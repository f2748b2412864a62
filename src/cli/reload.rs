use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::control::requests::Reload as Request;
use crate::core::model::Nothing;

/// Takes the config and policies as they are now, wider ones too.
///
/// A file with an error changes nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond reload
  missiond reload --json")]
pub struct Reload {}

impl Reload {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let answer = context.ask::<Request>(Nothing {}).await?;
        if context.out.json {
            return context.out.json(&answer);
        }
        if answer.changes.is_empty() {
            return context.out.done("nothing has changed");
        }
        answer
            .changes
            .iter()
            .try_for_each(|change| context.out.done(change))
    }
}
