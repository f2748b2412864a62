use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::lab::demo::{self, DemoError, DemoMode, DemoOptions, StageProgram};
use crate::launch::resolve_program;
use std::path::PathBuf;

/// Shows in a minute what missiond does, with no account.
///
/// Three slots are at work, with no Claude Code and no network.
/// It starts a daemon in a throw-away directory, with slots of a stand-in that draws the same kind of screens as
/// Claude Code. Everything else is the real thing: what is read, decided, pressed and written down. Ctrl-C ends it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond demo
  missiond demo --keep     leave the directory, to look at its logs, policies and slots.toml
  missiond demo --real     the installed Claude Code, with a scripted answer in the model's place: no account")]
pub struct Demo {
    /// Leave the directory behind, and say where it is
    #[arg(long)]
    keep: bool,
    /// Run the installed `claude` in the slots, with no account: a scripted endpoint on loopback answers it
    #[arg(long)]
    real: bool,
    /// With --real: the Claude Code to run [default: the one in $PATH]
    #[arg(long, value_name = "PROGRAM", requires = "real", value_hint = clap::ValueHint::ExecutablePath)]
    claude: Option<String>,
}

impl Demo {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let missiond = std::env::current_exe().map_err(|error| {
            Failure::failed(format!("this program's own path is unknown: {error}"))
        })?;
        let program = if self.real {
            StageProgram::Claude(self.claude(context)?)
        } else {
            StageProgram::StandIn
        };
        let options = DemoOptions {
            missiond,
            program,
            mode: DemoMode::of_process(context.out.json),
            keep: self.keep,
        };
        demo::run(options).await.map_err(failure)
    }

    fn claude(&self, context: &Context) -> Result<PathBuf, Failure> {
        let path = std::env::var("PATH").ok();
        let name = self.claude.as_deref().unwrap_or("claude");
        resolve_program(name, path.as_deref(), &context.env.cwd).map_err(|_| {
            Failure::usage(format!("there is no program `{name}` to be run")).next(
                "install it: npm install -g @anthropic-ai/claude-code\n\
                 or name it: missiond demo --real --claude PROGRAM\n\
                 or do without: missiond demo",
            )
        })
    }
}

fn failure(error: DemoError) -> Failure {
    match error {
        DemoError::ReaderGone => Failure::new(Blame::ReaderGone, error.to_string()),
        DemoError::Call(error) => error.into(),
        DemoError::Stage(_) => Failure::failed(error.to_string())
            .next("its directory is made in $TMPDIR, else in /tmp: is there room?"),
        error => Failure::failed(error.to_string()),
    }
}
