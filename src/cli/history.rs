use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{complete, dialog, sanitise};
use crate::control::requests::{History as Request, HistoryParams};
use crate::core::model::Turn;
use crate::os::local_time;
use serde_json::Value;

/// Shows the conversation of a slot.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond history coder
  missiond history coder -n 4
  missiond history coder --json | jq 'select(.role == \"tool_call\").input'")]
pub struct History {
    /// The slot
    #[arg(add = complete::slots())]
    slot: String,
    /// Only the last N entries
    #[arg(short = 'n', long, value_name = "N")]
    last: Option<usize>,
}

impl History {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let params = HistoryParams {
            slot: self.slot,
            last: self.last,
        };
        let answer = context.ask::<Request>(params).await?;
        if answer.left_out {
            context.out.aside(
                "older entries do not fit into one answer; `missiond search` reads all of them",
            );
        }
        for turn in answer.turns {
            if context.out.json {
                context.out.json(&turn)?;
            } else {
                context.out.line(show(&turn))?;
            }
        }
        Ok(())
    }
}

fn show(turn: &Turn) -> String {
    let time = turn.time.map_or(String::new(), |time| {
        format!("{} ", local_time::clock(time))
    });
    let failed = if turn.is_error == Some(true) {
        " (failed)"
    } else {
        ""
    };
    let tool = turn
        .tool
        .as_deref()
        .map_or(String::new(), |tool| format!(" {tool}"));
    let bold = anstyle::Style::new().bold();
    let heading = sanitise::one_line(&format!("{}{tool}{failed}", turn.role));
    let text = said(turn);
    let lines = sanitise::text(&text);
    let body: String = lines.lines().map(|line| format!("\n  {line}")).collect();
    format!("{time}{bold}{heading}{bold:#}{body}")
}

/// A call says what it is to do by its input; its text is only its id.
fn said(turn: &Turn) -> String {
    let Some(input) = turn.input.as_ref().and_then(Value::as_object) else {
        return turn.text.clone();
    };
    let parts = input
        .iter()
        .map(|(key, value)| dialog::argument(key, value));
    parts.collect::<Vec<_>>().join("\n")
}
