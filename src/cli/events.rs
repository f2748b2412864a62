use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::reader;
use crate::cli::slots::AnySlots;
use crate::control::client::Notice;
use crate::control::protocol::{EventsParams, Select};
use futures_util::TryStreamExt;

/// Prints events as JSON lines: a snapshot, then what happens.
///
/// Each event has a number, `seq`; a listener that reads too slowly is dropped and told so.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond events
  missiond events -f coder
  missiond events -f --data build
  missiond events -f | jq --unbuffered 'select(.event == \"dialog\")'")]
pub struct Events {
    #[command(flatten)]
    slots: AnySlots,
    /// With what the programs write, recent output first
    #[arg(long)]
    data: bool,
    /// Go on with what happens from now
    #[arg(short, long)]
    follow: bool,
}

impl Events {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        reader::while_read(self.listen(context)).await
    }

    async fn listen(self, context: &Context) -> Result<(), Failure> {
        let client = context.connect().await?;
        let Select { slots } = self.slots.select();
        let data = self.data;
        let mut events = client.events(EventsParams { slots, data }).await?;
        while let Some(notice) = events.try_next().await? {
            match notice {
                Notice::Event(event) => context.out.json(&event)?,
                Notice::Unknown(event) => context.out.json(&event)?,
                Notice::Live if self.follow => {}
                Notice::Live => return Ok(()),
                Notice::Lagged { missed } => return Err(dropped(missed)),
            }
        }
        Err(Failure::failed("the daemon has ended the stream"))
    }
}

fn dropped(missed: u64) -> Failure {
    Failure::failed(format!(
        "too slow: the daemon dropped this listener, {missed} events were missed"
    ))
    .next("every event is also in <slot>.events.jsonl: missiond logs SLOT --json")
}
