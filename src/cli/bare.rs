//! What `missiond` does with no command.

use crate::cli::context::{Context, block_on};
use crate::cli::failure::{Blame, Failure};
use crate::cli::run::Run;
use crate::cli::status::Status;
use crate::cli::steps;
use crate::cli::top::Top;
use crate::control::requests::Ping;
use crate::core::model::{Fault, Nothing};
use std::io::IsTerminal;

const FIRST_STEPS: &str = "\
first steps:
  missiond demo               see it work, with a stand-in for Claude Code
  missiond init               write a first config
  missiond doctor             see what is installed, and what would go wrong
  missiond up                 start the daemon and its slots
  missiond                    see what every slot does, and answer it
  missiond send SLOT 'TEXT'   send a message and print the answer
  missiond pending            see what the slots ask you
  missiond --help             all commands";

/// On a terminal a person looks: at the slots of the daemon that runs, or for a way to begin. Everything else starts a
/// daemon, as services do; so does a config that is named by -c.
pub fn run(context: &Context) -> Result<(), Failure> {
    let looks = is_terminal() && context.flags.config.is_none();
    match looks {
        true => block_on(look(context)),
        false => Run::default()
            .run(context)
            .map_err(|failure| unasked(context, failure)),
    }
}

/// Whoever gave neither a command nor a config may not know that this starts a daemon.
fn unasked(context: &Context, failure: Failure) -> Failure {
    let is_refused = failure.blame == Blame::Fault(Fault::Refused);
    if context.flags.config.is_some() || !is_refused {
        return failure;
    }
    let message = format!(
        "with no command and no terminal missiond starts a daemon, and: {}",
        failure.message
    );
    Failure { message, ..failure }
}

fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

async fn look(context: &Context) -> Result<(), Failure> {
    match context.ask::<Ping>(Nothing {}).await {
        Ok(_) if context.out.json => Status::default().run(context).await,
        Ok(_) => Top::default().run(context).await,
        Err(none) if none.blame == Blame::NoDaemon => {
            context.out.line(how_to_begin(context, &none))
        }
        Err(failure) => Err(failure),
    }
}

fn how_to_begin(context: &Context, none: &Failure) -> String {
    let next = none.next.as_deref().unwrap_or_default();
    let next = steps::addressed(next, &context.target());
    let next: String = next.lines().map(|line| format!("  {line}\n")).collect();
    format!("{}\n{next}\n{FIRST_STEPS}", none.message)
}
