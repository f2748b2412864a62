use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{complete, done};
use crate::control::requests::{Signal as Request, SignalParams};

/// Sends a signal to what runs in the foreground of a session.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond session signal build INT             what ctrl-c would do
  missiond session signal web HUP
  missiond session signal web 10")]
pub struct Signal {
    /// The session
    #[arg(value_name = "ID", add = complete::slots())]
    id: String,
    /// Its name, such as INT, TERM or HUP, or its number
    signal: String,
}

impl Signal {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let what = format!("signal {} sent", self.signal);
        let params = SignalParams {
            slot: self.id,
            signal: self.signal,
        };
        let done = context.ask::<Request>(params).await?;
        done::print(context, &[done], &what)
    }
}
