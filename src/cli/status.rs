use crate::cli::context::{ANSWER_LIMIT, Context, call};
use crate::cli::failure::Failure;
use crate::cli::slots::AnySlots;
use crate::cli::{columns, redrawn, sanitise, table};
use crate::control::client::Client;
use crate::control::requests::{Ping, Status as Request};
use crate::core::model::{Ailment, Nothing, Pong, SlotStatus};

/// Shows what every slot does, those that need you first.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  missiond status
  missiond status coder @reviewer
  missiond status --watch
  missiond status --json | jq -r '.[] | select(.state == \"idle\").slot'")]
pub struct Status {
    #[command(flatten)]
    slots: AnySlots,
    /// Go on showing it, until Ctrl-C
    #[arg(short, long)]
    watch: bool,
}

impl Status {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let select = self.slots.select();
        if self.watch {
            let rows = async || {
                let mut client = context.connect().await?;
                let select = select.clone();
                let statuses = call::<Request>(&mut client, select, Some(ANSWER_LIMIT)).await?;
                Ok(shown(context, &mut client, statuses).await)
            };
            return redrawn::each_second(context, rows).await;
        }
        let mut client = context.connect().await?;
        let statuses = call::<Request>(&mut client, select, Some(ANSWER_LIMIT)).await?;
        match context.out.json {
            true => context.out.json(&statuses),
            false if statuses.is_empty() => context.out.done(NONE),
            false => {
                let rows = shown(context, &mut client, statuses).await;
                context.out.line(rows.join("\n"))
            }
        }
    }
}

const NONE: &str = "no slots in the config; sessions are listed by: missiond session list";

/// The table, how to help those that wait, and what is wrong with the config that would hold otherwise.
async fn shown(
    context: &Context,
    client: &mut Client,
    mut statuses: Vec<SlotStatus>,
) -> Vec<String> {
    table::sort(&mut statuses);
    let table = table::render(&statuses, chrono::Utc::now(), columns::terminal_width());
    let help = table::call_for_help(&statuses, &context.target());
    // The table is the answer; a daemon that ends in this moment takes nothing from it.
    let daemon = call::<Ping>(client, Nothing {}, Some(ANSWER_LIMIT)).await;
    let daemon = daemon.ok();
    let not_taken = daemon.map(|pong| not_taken(&pong, &context.target()));
    let removed = table::removed(&statuses, &context.target());
    let table = table.lines().map(str::to_owned);
    table
        .chain(help)
        .chain(removed)
        .chain(not_taken.into_iter().flatten())
        .collect()
}

/// What stands on the disk and does not hold, with the next step.
pub fn not_taken(daemon: &Pong, target: &str) -> Vec<String> {
    let fault = daemon.config_fault.as_ref().map(|fault| {
        let fault = sanitise::one_line(fault);
        format!("the config on the disk is not taken: {fault}; see: missiond reload{target}")
    });
    let wider = daemon.wider_policies.iter().map(|role| {
        let role = sanitise::one_line(role);
        format!(
            "the policy {role} on the disk may allow more, and that waits: missiond reload{target}"
        )
    });
    let ill = daemon.health.iter();
    let ill = ill.map(|Ailment { text, remedy, .. }| format!("{text}; {remedy}"));
    let seen = daemon.lost.iter().cloned().chain(ill);
    let seen = seen.map(|text| sanitise::one_line(&text));
    fault.into_iter().chain(wider).chain(seen).collect()
}
