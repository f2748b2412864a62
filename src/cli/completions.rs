use crate::cli::context::Context;
use crate::cli::failure::Failure;
use clap_complete::env::Shells;

/// Prints what a shell needs to complete commands and live names.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  source <(missiond completions bash)
  missiond completions fish > ~/.config/fish/completions/missiond.fish")]
pub struct Completions {
    /// The shell
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(Shells::builtins().names()))]
    shell: String,
}

impl Completions {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let shells = Shells::builtins();
        let shell = shells
            .completer(&self.shell)
            .ok_or_else(|| Failure::usage(format!("no completions for {}", self.shell)))?;
        let mut script = Vec::new();
        shell
            .write_registration("COMPLETE", "missiond", "missiond", "missiond", &mut script)
            .map_err(|error| Failure::failed(format!("cannot write the script: {error}")))?;
        context.out.raw(&script)
    }
}
