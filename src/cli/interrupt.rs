use crate::cli::context::Context;
use crate::cli::done;
use crate::cli::failure::Failure;
use crate::cli::slots::SomeSlots;
use crate::control::requests::Interrupt as Request;
use crate::core::model::OneSlot;

/// Stops the turn of a slot, never its program.
///
/// An open dialog is declined; in an idle slot the message that is about to be sent is withdrawn, and no key is
/// pressed; else Claude is interrupted. Messages that wait behind it are sent. In a slot of a plain program,
/// Ctrl-C goes to the command that its shell waits for; one that goes on after 5 s is a failure (exit code 1).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond interrupt coder
  missiond interrupt --all")]
pub struct Interrupt {
    #[command(flatten)]
    slots: SomeSlots,
}

impl Interrupt {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut failures = Vec::new();
        for slot in self.slots.names(context).await? {
            match context.ask::<Request>(OneSlot { slot }).await {
                Ok(answer) if context.out.json => context.out.json(&answer)?,
                Ok(answer) => {
                    let effect = in_words(&answer.effect);
                    context.out.done(format!("{}: {effect}", answer.slot))?;
                }
                Err(failure) => failures.push(failure),
            }
        }
        done::settle(context, failures)
    }
}

fn in_words(effect: &str) -> &str {
    match effect {
        "nothing" => "nothing to interrupt",
        "declined" => "the dialog was declined",
        "withdrawn" => "the message that was about to be sent was withdrawn",
        other => other,
    }
}
