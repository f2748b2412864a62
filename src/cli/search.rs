use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{complete, sanitise};
use crate::control::requests::{Search as Request, SearchParams};

/// Searches a slot's output and conversation.
///
/// Its output is the screen and what has scrolled off it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond search coder 'error\\[E\\d+\\]'
  missiond search coder -n 5 '(?i)panicked'
  missiond search coder -F 'Vec<(u8, u8)>'")]
pub struct SearchArgs {
    /// The slot
    #[arg(add = complete::slots())]
    slot: String,
    /// The regular expression, or with -F the text
    pattern: String,
    /// Take the pattern as plain text: no character in it has a meaning of its own
    #[arg(short = 'F', long)]
    fixed_strings: bool,
    /// At most N matches
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,
}

impl SearchArgs {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let pattern = match self.fixed_strings {
            true => regex::escape(&self.pattern),
            false => self.pattern,
        };
        regex::Regex::new(&pattern).map_err(|error| {
            Failure::usage(format!("not a regular expression: {error}"))
                .next("-F takes it as plain text: missiond search -F SLOT TEXT")
        })?;
        let params = SearchParams {
            slot: self.slot,
            pattern,
            limit: self.limit,
        };
        let matches = context.ask::<Request>(params).await?;
        if matches.is_empty() {
            context.out.note("nothing matches");
        }
        for found in matches {
            if context.out.json {
                context.out.json(&found)?;
            } else {
                let text = sanitise::text(&found.text);
                context
                    .out
                    .line(format!("{}:{}: {text}", found.place, found.line))?;
            }
        }
        Ok(())
    }
}
