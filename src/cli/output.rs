use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{complete, sanitise};
use crate::control::requests::OutputParams;

/// Prints what a session has written, as far back as it is kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond session output build
  missiond session output build -n 20
  missiond session output build --bytes > build.ansi     with its colours, byte for byte")]
pub struct OutputArgs {
    /// The session
    #[arg(value_name = "ID", add = complete::slots())]
    id: String,
    /// Only the last N lines
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<usize>,
    /// Byte for byte, with colours and all other control sequences; in JSON, `hex` has what is not UTF-8
    #[arg(long)]
    bytes: bool,
}

impl OutputArgs {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let mut client = context.connect().await?;
        let params = OutputParams {
            slot: self.id,
            lines: self.lines,
            ..OutputParams::default()
        };
        let mut answer = client.whole_output(params).await?;
        let bytes = answer.bytes();
        if !self.bytes {
            answer.text = crate::core::terminal::plain(&bytes);
            answer.hex = None;
        }
        if context.out.json {
            return context.out.json(&answer);
        }
        if answer.dropped_bytes > 0 && self.lines.is_none() {
            let dropped = answer.dropped_bytes;
            context
                .out
                .note(format!("the first {dropped} bytes are no longer kept"));
        }
        match self.bytes {
            true => context.out.raw(&bytes),
            false => context.out.raw(sanitise::text(&answer.text).as_bytes()),
        }
    }
}
