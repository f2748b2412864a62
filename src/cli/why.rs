use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{complete, sanitise};
use crate::control::requests::Why as Request;
use crate::core::model::OneSlot;

/// Explains why a slot is read to be in its state: who says what.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond why coder
  missiond why coder --json")]
pub struct Why {
    /// The slot
    #[arg(add = complete::slots())]
    slot: String,
}

impl Why {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let answer = context.ask::<Request>(OneSlot { slot: self.slot }).await?;
        if context.out.json {
            return context.out.json(&answer);
        }
        context
            .out
            .line(format!("{}: {}", answer.slot, answer.state.name()))?;
        let wide = answer
            .evidence
            .iter()
            .map(|one| one.witness.len())
            .max()
            .unwrap_or(0);
        answer.evidence.iter().try_for_each(|one| {
            let says = sanitise::one_line(&one.says);
            context.out.line(format!("  {:wide$}  {says}", one.witness))
        })
    }
}
