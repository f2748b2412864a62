use crate::cli::complete;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::control::requests::{Adopt as Request, AdoptParams};
use uuid::Uuid;

/// Lets a slot go on with a conversation that exists already.
///
/// The conversation must be one of the slot's own directory and home, and no other Claude Code may have it open. A
/// slot that is idle is started again with it at once; one that is stopped takes it up at its next start; one that is
/// at work is left alone.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond adopt coder 123e4567-e89b-42d3-a456-426614174000
  missiond adopt coder 123e4567-e89b-42d3-a456-426614174000 --start")]
pub struct Adopt {
    /// The slot
    #[arg(add = complete::slots())]
    slot: String,
    /// The id of the conversation, as in `claude --resume ID`
    #[arg(value_parser = whole_id)]
    session_id: Uuid,
    /// Start the slot with it, where it does not run
    #[arg(long)]
    start: bool,
}

impl Adopt {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let params = AdoptParams {
            slot: self.slot,
            session_id: self.session_id,
            start: self.start,
        };
        let answer = context.ask_within::<Request>(params, None).await?;
        if context.out.json {
            return context.out.json(&answer);
        }
        let when = match answer.running {
            true => "goes on with it",
            false => "goes on with it from its next start",
        };
        context.out.done(format!("{}: {when}", answer.slot))
    }
}

/// A part of an id may mean several conversations.
fn whole_id(text: &str) -> Result<Uuid, String> {
    text.parse().map_err(|_| {
        "the whole id is needed, such as 123e4567-e89b-42d3-a456-426614174000: \
         `claude --resume` lists the conversations of a directory, and `missiond status --json` has those of the slots"
            .to_owned()
    })
}
