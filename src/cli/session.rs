use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{
    clear, close, exec, info, output, resize, sessions, signal, spawn, type_line, watch,
};

/// Starts any program in a terminal of its own, types and reads.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond session spawn --id build -- bash
  missiond session type build 'cargo build' --wait
  missiond session exec -- cargo check
  missiond session list")]
pub struct SessionArgs {
    #[command(subcommand)]
    verb: SessionVerb,
}

#[derive(Debug, clap::Subcommand)]
enum SessionVerb {
    Spawn(spawn::Spawn),
    Exec(exec::Exec),
    Type(type_line::Type),
    List(sessions::SessionsArgs),
    Info(info::Info),
    Output(output::OutputArgs),
    Follow(watch::Follow),
    Clear(clear::Clear),
    Resize(resize::Resize),
    Signal(signal::Signal),
    Close(close::Close),
}

impl SessionArgs {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        match self.verb {
            SessionVerb::Spawn(verb) => verb.run(context).await,
            SessionVerb::Exec(verb) => verb.run(context).await,
            SessionVerb::Type(verb) => verb.run(context).await,
            SessionVerb::List(verb) => verb.run(context).await,
            SessionVerb::Info(verb) => verb.run(context).await,
            SessionVerb::Output(verb) => verb.run(context).await,
            SessionVerb::Follow(verb) => verb.run(context).await,
            SessionVerb::Clear(verb) => verb.run(context).await,
            SessionVerb::Resize(verb) => verb.run(context).await,
            SessionVerb::Signal(verb) => verb.run(context).await,
            SessionVerb::Close(verb) => verb.run(context).await,
        }
    }
}
