use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::slots::AnySlots;
use crate::cli::{columns, dialog, table};
use crate::control::requests::{Pending as Request, PendingDialog};
use chrono::Utc;

/// Shows what waits for a person, and how to answer it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond pending
  missiond pending @coder
  missiond pending --json | jq -r '.[].dialog.text'")]
pub struct Pending {
    #[command(flatten)]
    slots: AnySlots,
}

impl Pending {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let pending = context.ask::<Request>(self.slots.select()).await?;
        if context.out.json {
            return context.out.json(&pending);
        }
        if pending.is_empty() {
            return context.out.done("no slot needs you");
        }
        let shown: Vec<String> = pending
            .iter()
            .map(|one| show(one, &context.target()))
            .collect();
        context.out.line(shown.join("\n").trim_end())
    }
}

fn show(pending: &PendingDialog, target: &str) -> String {
    let waited = Utc::now()
        .signed_duration_since(pending.since)
        .num_seconds();
    let slot = format!(
        "{} ({}, {})",
        pending.slot,
        pending.role,
        table::age(waited)
    );
    dialog::render_pending(&slot, pending, target, columns::terminal_width())
}
