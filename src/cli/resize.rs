use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{complete, done};
use crate::control::requests::{Resize as Request, ResizeParams};

/// Gives the terminal of a session another size.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond session resize build 200 50")]
pub struct Resize {
    /// The session
    #[arg(value_name = "ID", add = complete::slots())]
    id: String,
    /// Columns
    cols: u16,
    /// Rows
    rows: u16,
}

impl Resize {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let params = ResizeParams {
            slot: self.id,
            cols: self.cols,
            rows: self.rows,
        };
        let done = context.ask::<Request>(params).await?;
        done::print(context, &[done], &format!("{}x{}", self.cols, self.rows))
    }
}
