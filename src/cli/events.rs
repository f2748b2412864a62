use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::reader;
use crate::cli::reconnect::DaemonConnection;
use crate::cli::slots::AnySlots;
use crate::control::client::{CallError, Client, Notice};
use crate::control::requests::EventsParams;
use crate::core::model::{Fault, Select};
use futures_util::StreamExt;
use serde_json::Value;

/// Prints events as JSON lines: a snapshot, then what happens.
///
/// Each event has a position, `seq`, which goes on over restarts of the daemon. With --after POSITION there is no
/// snapshot: what has happened since then comes first, each event once. Events that are no longer kept, or were never
/// written, are told as one event `gap`: `after` is the last position before it, `first` the first one behind it. With
/// -f, a daemon that is killed and started again is followed in this way by itself; it may be away for 30 s. A listener
/// that reads too slowly is dropped and told so.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond events
  missiond events -f coder
  missiond events -f --data build
  missiond events --after 1207           what has happened since, and no more
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
    /// Begin behind this position, the `seq` of an event, in place of a snapshot
    #[arg(long, value_name = "POSITION")]
    after: Option<u64>,
}

/// How the stream of one daemon has ended.
enum End {
    /// All that was asked for is printed.
    Done,
    /// The daemon has gone.
    Lost(String),
}

impl Events {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        reader::while_read(self.listen(context)).await
    }

    async fn listen(self, context: &Context) -> Result<(), Failure> {
        let (mut daemon, mut client) = DaemonConnection::reach(context).await?;
        let Select { slots } = self.slots.clone().select();
        let mut params = EventsParams {
            slots,
            data: self.data,
            after: self.after,
        };
        loop {
            let before = params.after;
            let why = match self.print(context, client, &mut params).await? {
                End::Done => return Ok(()),
                End::Lost(why) => why,
            };
            if params.after != before {
                daemon.was_of_use();
            }
            let Some(position) = params.after.filter(|_| self.follow) else {
                return Err(Failure::failed(why));
            };
            client = daemon.again(&why, None).await.map_err(|failure| {
                let next = failure.next.clone().unwrap_or_default();
                failure.next(format!(
                    "{next}\nthen go on with: missiond events -f --after {position}"
                ))
            })?;
        }
    }

    /// Prints what comes on one connection, and keeps the position that was reached.
    async fn print(
        &self,
        context: &Context,
        client: Client,
        params: &mut EventsParams,
    ) -> Result<End, Failure> {
        let mut events = match client.events(params.clone()).await {
            Err(CallError::Lost(why)) => return Ok(End::Lost(why)),
            events => std::pin::pin!(events?),
        };
        while let Some(notice) = events.next().await {
            let seq = match notice {
                Ok(Notice::Event(event)) => {
                    context.out.json(&event)?;
                    Some(event.seq)
                }
                Ok(Notice::Unknown(event)) => {
                    context.out.json(&event)?;
                    event.get("seq").and_then(Value::as_u64)
                }
                Ok(Notice::Live { position }) if self.follow => position,
                Ok(Notice::Live { .. }) => return Ok(End::Done),
                Ok(Notice::Lagged { missed }) => return Err(dropped(missed, params.after)),
                Err(CallError::Lost(why)) => return Ok(End::Lost(why)),
                // What came after its last position is in the event log.
                Err(CallError::Rpc(error)) if error.fault == Fault::TooSlow => {
                    return Ok(End::Lost(error.message));
                }
                Err(error) => return Err(error.into()),
            };
            params.after = seq.or(params.after);
        }
        Ok(End::Lost("the daemon has ended the stream".to_owned()))
    }
}

fn dropped(missed: u64, position: Option<u64>) -> Failure {
    let failure = Failure::failed(format!(
        "too slow: the daemon dropped this listener, {missed} events were missed"
    ));
    match position {
        Some(position) => {
            failure.next(format!("go on with: missiond events -f --after {position}"))
        }
        None => {
            failure.next("every event is also in <slot>.events.jsonl: missiond logs SLOT --json")
        }
    }
}
